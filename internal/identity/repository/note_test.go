package repository

import (
	"bytes"
	"errors"
	"testing"
)

func TestNotesOpenWithTheKeyOfTheirPartAlone(t *testing.T) {
	key, text := NewKey(), []byte(`{"snapshot":"x"}`)
	own := Passphrase(key, "copy-1")
	sealed, err := SealNote(own, "copy-1", text)
	if err != nil || bytes.Contains(sealed, []byte("snapshot")) {
		t.Fatalf("%q, %v", sealed, err)
	}
	if got, err := OpenNote(own, "copy-1", sealed); err != nil || !bytes.Equal(got, text) {
		t.Errorf("%q, %v", got, err)
	}
	for _, open := range []struct{ passphrase, part string }{{own, "copy-2"}, {Passphrase(key, "copy-2"), "copy-1"}, {Passphrase(NewKey(), "copy-1"), "copy-1"}} {
		if _, err := OpenNote(open.passphrase, open.part, sealed); !errors.Is(err, ErrNote) {
			t.Errorf("%+v: %v", open, err)
		}
	}
	if _, err := OpenNote(own, "copy-1", []byte("x")); !errors.Is(err, ErrNote) {
		t.Error(err)
	}
	plain, err := SealNote("", "copy-1", text)
	if got, errOpen := OpenNote("", "copy-1", plain); err != nil || errOpen != nil || !bytes.Equal(got, text) {
		t.Errorf("%q, %v, %v", got, err, errOpen)
	}
}
