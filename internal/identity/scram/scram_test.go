package scram

import (
	"encoding/base64"
	"strings"
	"testing"
)

// The vector was made by PostgreSQL 15's own password_encryption for the password
// "correct horse".
func TestVerifierAsPostgreSQLMakesIt(t *testing.T) {
	const want = "SCRAM-SHA-256$4096:aywGQXeIxDLGpyTLqyLW7w==$iFYbs1E/vemZaKDcG2JzGvS8haN1DV4W0yTqJIiBrEE=:Q4cVMLAVWwHvns2sXbzLWRsQCaG5aiKK+qQw60gSGew="
	head, _, _ := strings.Cut(strings.TrimPrefix(want, "SCRAM-SHA-256$4096:"), "$")
	salt, err := base64.StdEncoding.DecodeString(head)
	if err != nil {
		t.Fatal(err)
	}
	got, err := verifier("correct horse", salt, 4096)
	if err != nil || got != want {
		t.Errorf("%s, %v", got, err)
	}
	if !Matches("correct horse", want) || Matches("wrong horse", want) {
		t.Error("the password is not recognised")
	}
}

func TestVerifierIsSalted(t *testing.T) {
	a, err := Verifier("secret99")
	if err != nil {
		t.Fatal(err)
	}
	b, err := Verifier("secret99")
	if err != nil {
		t.Fatal(err)
	}
	if a == b || strings.Contains(a, "secret99") {
		t.Errorf("%s and %s", a, b)
	}
}

func TestMatchesRefusesJunk(t *testing.T) {
	for _, kept := range []string{"", "md5abc", "SCRAM-SHA-256$", "SCRAM-SHA-256$x:y$z:w", "SCRAM-SHA-256$4096:!!$a:b"} {
		if Matches("secret99", kept) {
			t.Errorf("%q matches", kept)
		}
	}
}
