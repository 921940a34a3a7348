package postgres

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"howdah/internal/model/extension"
)

var defaultVersion = regexp.MustCompile(`(?m)^\s*default_version\s*=\s*'([^']*)'`)

// Extensions returns what is installed of the extensions that users may create, and of the
// libraries that may be preloaded: the version of each by its name in the table of extensions, and
// "" for a library without an extension. What needs a library counts only with it. The answer is not
// to be altered.
func (i Install) Extensions() (extension.Installed, error) {
	share, err := i.shareDir()
	if err != nil {
		return nil, err
	}
	changed, err := lastChange(share, filepath.Join(filepath.Dir(i.BinDir), "lib"))
	if err != nil {
		return nil, err
	}
	found.Lock()
	defer found.Unlock()
	if last, known := found.in[share]; known && last.changed == changed {
		return last.versions, nil
	}
	versions := extension.Installed{}
	for _, e := range extension.All() {
		if e.Refused != "" || e.Library != "" && !i.Extension(e.Library) {
			continue
		}
		if !e.Creatable() {
			versions[e.Name] = ""
			continue
		}
		text, err := os.ReadFile(filepath.Join(share, e.Name+".control"))
		if err != nil {
			continue // it is not installed
		}
		if match := defaultVersion.FindSubmatch(text); match != nil {
			versions[e.Name] = string(match[1])
		}
	}
	found.in[share] = installedExtensions{changed, versions}
	return versions, nil
}

// found holds what was found in a directory. Agents look often, and packages change seldom.
var found = struct {
	sync.Mutex
	in map[string]installedExtensions // by directory; the maps are never altered
}{in: map[string]installedExtensions{}}

type installedExtensions struct {
	changed  string
	versions extension.Installed
}

// shareDir returns the directory of the control files. It is where the programs were built to look.
func (i Install) shareDir() (string, error) {
	prefix := filepath.Dir(i.BinDir)
	for _, dir := range []string{
		fmt.Sprintf("/usr/share/postgresql/%d/extension", i.Major), filepath.Join(prefix, "share/extension"), filepath.Join(prefix, "share/postgresql/extension"),
	} {
		packaged := filepath.Dir(prefix) == "/usr/lib/postgresql"
		if packaged != (dir[:len("/usr/share")] == "/usr/share") {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, "plpgsql.control")); err == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("find the extensions of PostgreSQL %s: %w", i.Full, fs.ErrNotExist)
}

// lastChange tells when files were last added to each of these directories, or removed.
func lastChange(dirs ...string) (string, error) {
	var times []string
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil {
			return "", fmt.Errorf("look for extensions: %w", err)
		}
		times = append(times, info.ModTime().Format(time.RFC3339Nano))
	}
	return strings.Join(times, " "), nil
}
