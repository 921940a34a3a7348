package postgres

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// ModuleFile is what the module is called in its directory.
const ModuleFile = "howdah.so"

var ErrNoModule = errors.New("the module howdah is not installed for it: run scripts/install")

// Modules is the directory with our PostgreSQL modules for a major version.
func Modules(major int) (string, error) {
	for _, prefix := range Prefixes() {
		dir := filepath.Join(prefix, "lib", strconv.Itoa(major))
		if _, err := os.Stat(filepath.Join(dir, ModuleFile)); err == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("PostgreSQL %d: %w", major, ErrNoModule)
}
