package sigv4

import "testing"

func BenchmarkVerify(b *testing.B) {
	r := signedRequest()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Verify(r, testBody, testLookup, signedAt); err != nil {
			b.Fatal(err)
		}
	}
}
