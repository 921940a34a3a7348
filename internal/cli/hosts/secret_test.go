package hosts

import (
	"os"
	"path/filepath"
	"testing"
)

func TestOnLoopback(t *testing.T) {
	for url, want := range map[string]bool{
		"https://127.31.0.1:7443": true, "https://localhost:1": true, "https://[::1]:1": true,
		"https://10.0.0.1:7443": false, "https://db.example:1": false, "::": false,
	} {
		if onLoopback(url) != want {
			t.Errorf("%s: not %v", url, want)
		}
	}
}

func TestWriteSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	if err := writeSecret(path, "x"); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v: %v", info.Mode(), err)
	}
	if err := writeSecret(path, "y"); err == nil {
		t.Error("a file that is there was written over")
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "x\n" {
		t.Errorf("%q, %v", text, err)
	}
}
