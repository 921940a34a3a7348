package gateway

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"howdah/internal/identity/signature"
)

// BenchmarkThroughput writes and reads an object, directly and through the gateway. It prints how
// much processor time both sides take for a MB.
func BenchmarkThroughput(b *testing.B) {
	text := make([]byte, 64<<20)
	sum := signature.Hash(text)
	r := newRig(b, directory(b), Config{})
	file := filepath.Join(b.TempDir(), "file")
	signed := func(method, hash string) *http.Request {
		q := r.request(b, method, "/main/db-1/x", nil)
		q.Body, q.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
		q.Header.Set("X-Amz-Content-Sha256", hash)
		sign(b, q, secret, time.Now())
		return q
	}
	put := func(hash string) func() error {
		return func() error { return do(r, signed(http.MethodPut, hash)) }
	}
	for _, c := range []struct {
		name string
		f    func() error
	}{
		{"put/file", func() error { return writeFile(file, text) }},
		{"put/gateway", put(sum)},
		{"put/gateway-unsigned", put(unsigned)},
		{"get/file", func() error { return readFile(file) }},
		{"get/gateway", func() error { return do(r, r.request(b, http.MethodGet, "/main/db-1/x", nil)) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			before := cpu()
			for b.Loop() {
				must(b, c.f())
			}
			b.ReportMetric((cpu()-before).Seconds()*1e9/float64(b.N)/float64(len(text)), "cpu-ns/byte")
		})
	}
}

func cpu() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func writeFile(path string, text []byte) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := io.Copy(file, bytes.NewReader(text)); err != nil {
		return err
	}
	return file.Sync()
}

func readFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	buffer := make([]byte, sendSize)
	_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{file}, buffer)
	return err
}

func do(r *rig, q *http.Request) error {
	response, err := r.client.Do(q)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s", response.Status)
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, response.Body, make([]byte, sendSize))
	return err
}
