package pgpool

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFinding(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	there, file := filepath.Join(dir, "pgpool"), filepath.Join(dir, "no-program")
	if err := errors.Join(os.WriteFile(there, []byte("#!/bin/sh\necho '  pgpool-II version 4.3.5 (x)'\n"), 0o600), os.Chmod(there, 0o700), os.WriteFile(file, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if path, err := find("no-such-program-of-howdah", there); err != nil || path != there {
		t.Errorf("%s, %v", path, err)
	}
	if text, err := Version(t.Context(), there); err != nil || text != "pgpool-II version 4.3.5 (x)" {
		t.Errorf("%q, %v", text, err)
	}
	_, err := find("no-such-program-of-howdah", file)
	if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "sudo scripts/install --pgpool") {
		t.Errorf("%v", err)
	}
}
