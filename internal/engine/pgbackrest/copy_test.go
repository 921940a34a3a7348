package pgbackrest

import (
	"encoding/hex"
	"strings"
	"testing"
)

// What openssl encrypts opens:
// printf '[backrest]\nx' | openssl enc -aes-256-cbc -md sha1 -S 0102030405060708 -pass pass:one
func TestTheFormIsThatOfOpenssl(t *testing.T) {
	data, err := hex.DecodeString("53616c7465645f5f0102030405060708" + "296b7c60ac35fa5548d409f594ad14ae")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Engine{}.Reseal(data, "one", "")
	if err != nil || string(got) != plainBegin+"x" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestHeadsOpenWithOnePassphrase(t *testing.T) {
	for _, plain := range []string{plainBegin, plainBegin + "backrest-format=5\n", plainBegin + strings.Repeat("x", 5)} {
		one, err := sealed([]byte(plain), "one")
		if err != nil {
			t.Fatal(err)
		}
		two, err := Engine{}.Reseal(one, "one", "two")
		if err != nil || strings.Contains(string(two), "backrest") {
			t.Fatalf("%q, %v", two, err)
		}
		got, err := Engine{}.Reseal(two, "two", "")
		if err != nil || string(got) != plain {
			t.Errorf("%q came back as %q, %v", plain, got, err)
		}
		for name, bad := range map[string][]byte{
			"other passphrase": one, "cut off": two[:len(two)-1], "too short": two[:16], "nothing": nil, "in the clear": []byte(plain),
		} {
			if _, err := (Engine{}).Reseal(bad, "two", ""); err == nil {
				t.Errorf("%s opens", name)
			}
		}
	}
	if _, err := (Engine{}).Reseal([]byte("anything"), "", "two"); err == nil {
		t.Error("what is no head is sealed")
	}
}
