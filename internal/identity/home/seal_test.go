package home

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"howdah/internal/identity/certs"
)

func TestSealKeyStays(t *testing.T) {
	h, err := Ensure(filepath.Join(t.TempDir(), "home"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := h.Join()
	if err != nil {
		t.Fatal(err)
	}
	key, err := h.SealKey()
	if err != nil || len(key) != 32 {
		t.Fatalf("%d bytes, %v", len(key), err)
	}
	after, err := h.Join()
	if err != nil || after.AgentToken != tokens.AgentToken || after.ServerToken != tokens.ServerToken {
		t.Errorf("the tokens changed: %v", err)
	}
	if info, err := os.Stat(h.path(joinFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v, %v", info.Mode(), err)
	}
	other, err := certs.New("another")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.StoreCA(other); err != nil {
		t.Fatal(err)
	}
	if again, err := h.SealKey(); err != nil || !bytes.Equal(again, key) {
		t.Errorf("it changed with the authority: %v", err)
	}
	copied, err := Copy(filepath.Join(t.TempDir(), "copy"), h.Config, after, nil, other)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := copied.SealKey(); err != nil || !bytes.Equal(again, key) {
		t.Errorf("a control plane that joined has another one: %v", err)
	}
}

func TestSealKeyOfAHomeWithoutAnAuthority(t *testing.T) {
	h, err := Ensure(filepath.Join(t.TempDir(), "home"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(h.path("pki", "ca.key")); err != nil {
		t.Fatal(err)
	}
	if _, err := h.SealKey(); err == nil {
		t.Error("a key was made of nothing")
	}
}
