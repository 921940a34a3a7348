package bucket

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"howdah/internal/model/member"
	"howdah/internal/model/spec"
)

var role = spec.BucketRole{
	Account: "123456789012", Name: "exports", Endpoint: "https://s3:1", Region: "r", Bucket: "b", Prefix: "p/", CA: "ca", AccessKey: "ak",
}

func sealer(t *testing.T, key string) *Sealer {
	t.Helper()
	s, err := NewSealer([]byte(strings.Repeat(key, 32)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestASecretIsSealed(t *testing.T) {
	t.Parallel()
	s := sealer(t, "k")
	r := s.Seal(role, "s3cret")
	if text, err := json.Marshal(r); err != nil || bytes.Contains(text, []byte("s3cret")) {
		t.Errorf("%s, %v", text, err)
	}
	want := member.Bucket{Role: "exports", Endpoint: "https://s3:1", Region: "r", Bucket: "b", Prefix: "p/", CA: "ca", AccessKey: "ak", Secret: "s3cret"}
	if got, err := s.Access(r); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := sealer(t, "x").Access(r); err == nil {
		t.Error("it opens with the key of another home")
	}
}

// Whoever writes the state gets no secret sent elsewhere.
func TestASecretIsBound(t *testing.T) {
	t.Parallel()
	s := sealer(t, "k")
	for name, change := range map[string]func(*spec.BucketRole){
		"another account":    func(r *spec.BucketRole) { r.Account = "210987654321" },
		"another name":       func(r *spec.BucketRole) { r.Name = "other" },
		"another server":     func(r *spec.BucketRole) { r.Endpoint = "https://evil" },
		"another bucket":     func(r *spec.BucketRole) { r.Bucket = "other" },
		"another prefix":     func(r *spec.BucketRole) { r.Prefix = "" },
		"another access key": func(r *spec.BucketRole) { r.AccessKey = "other" },
		"another authority":  func(r *spec.BucketRole) { r.CA = "other" },
		"no secret":          func(r *spec.BucketRole) { r.Secret = nil },
	} {
		r := s.Seal(role, "s3cret")
		change(&r)
		if got, err := s.Access(r); err == nil {
			t.Errorf("%s: it opens: %+v", name, got)
		}
	}
}
