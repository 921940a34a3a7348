package home

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"howdah/internal/system/plainfile"
)

// Belongings returns the paths, in the home, of all files that are needed to make the home again,
// apart from its etcd: identity, authority, keys and tokens. The first path is the configuration.
func (h *Home) Belongings() ([]string, error) {
	all := []string{ConfigFile, secretFile, joinFile}
	err := filepath.WalkDir(h.CertDir(), func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(h.Dir, path)
		all = append(all, name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find what belongs to the home: %w", err)
	}
	return all, nil
}

// Reinstate copies the belongings of a home back from another directory. The configuration comes
// last, and with it the home exists. Reinstate may be called again.
func Reinstate(from, dir string) (*Home, error) {
	old, err := OpenAny(from)
	if err != nil {
		return nil, err
	}
	paths, err := old.Belongings()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make home: %w", err)
	}
	if err := OpenWay(dir, filepath.Join(dir, "pki")); err != nil {
		return nil, err
	}
	for _, name := range []string{"log", "run"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return nil, fmt.Errorf("make home: %w", err)
		}
	}
	slices.Reverse(paths)
	for _, path := range paths {
		if err := reinstate(from, dir, path); err != nil {
			return nil, fmt.Errorf("put %s back: %w", path, err)
		}
	}
	return OpenAny(dir)
}

// reinstate copies one file. What others must read stays readable: certificates and the
// configuration.
func reinstate(from, dir, path string) error {
	text, err := os.ReadFile(filepath.Join(from, path))
	if err != nil {
		return err
	}
	mode := os.FileMode(0o600) // for keys and tokens
	if path == ConfigFile || filepath.Ext(path) == ".crt" {
		mode = 0o644
	}
	full := filepath.Join(dir, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
		return err
	}
	return plainfile.Replace(full, text, mode)
}
