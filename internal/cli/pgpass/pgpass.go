// Package pgpass keeps the passwords that the command line made, in a password file of libpq ("The
// Password File" of PostgreSQL's documentation), mode 0600.
//
// Endpoint addresses are used again when a database is gone, and libpq takes the first line that
// fits. So each line has a comment before it that names its database, and the lines of databases
// that no longer exist are dropped.
package pgpass

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"howdah/internal/identity/home"
)

// lockTimeout is how long another program may take to write the file.
const lockTimeout = 5 * time.Second

// Entry is one password.
type Entry struct {
	ResourceID string // of the database
	Host, Port string
	User       string
	Password   string
}

// String keeps the password out of logs and errors.
func (e Entry) String() string { return e.User + "@" + e.Host + ":" + e.Port }

// GoString keeps the password out of %#v.
func (e Entry) GoString() string { return e.String() }

// File is a password file, with the lock that those who change it share.
type File struct{ Path, Lock string }

const mark = "# howdah "

// Put adds an entry in place of any other for the same address.
func (f File) Put(e Entry) error {
	return f.change(func(all []Entry) []Entry {
		var kept []Entry
		for _, old := range all {
			if old.Host != e.Host {
				kept = append(kept, old)
			}
		}
		return append(kept, e)
	})
}

// Keep drops the entries of databases for which alive is false. It writes nothing if there are
// none.
func (f File) Keep(alive func(resourceID string) bool) error {
	all, _, err := f.read()
	if err != nil || len(dead(all, alive)) == 0 {
		return err
	}
	return f.change(func(all []Entry) []Entry {
		var kept []Entry
		for _, e := range all {
			if alive(e.ResourceID) {
				kept = append(kept, e)
			}
		}
		return kept
	})
}

// Move makes the entries of a database those of another one that has taken its place. It writes nothing
// if there are none.
func (f File) Move(from, to string) error {
	if !f.Has(from) {
		return nil
	}
	return f.change(func(all []Entry) []Entry {
		for n := range all {
			if all[n].ResourceID == from {
				all[n].ResourceID = to
			}
		}
		return all
	})
}

func dead(all []Entry, alive func(string) bool) []Entry {
	var gone []Entry
	for _, e := range all {
		if !alive(e.ResourceID) {
			gone = append(gone, e)
		}
	}
	return gone
}

// Has reports whether there is an entry for a database.
func (f File) Has(resourceID string) bool {
	all, _, err := f.read()
	for _, e := range all {
		if err == nil && e.ResourceID == resourceID {
			return true
		}
	}
	return false
}

func (f File) change(to func([]Entry) []Entry) error {
	lock, err := f.lock()
	if err != nil {
		return err
	}
	defer lock.Release()
	all, others, err := f.read()
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, line := range others {
		b.WriteString(line + "\n")
	}
	for _, e := range to(all) {
		fmt.Fprintf(&b, "%s%s\n%s\n", mark, e.ResourceID, e.line())
	}
	return f.write(b.String())
}

func (f File) lock() (*home.Lock, error) {
	deadline := time.Now().Add(lockTimeout)
	for {
		lock, err := home.LockFile(f.Lock)
		if !errors.Is(err, home.ErrLocked) || time.Now().After(deadline) {
			return lock, err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// read returns our entries and all other lines.
func (f File) read() (all []Entry, others []string, err error) {
	text, err := os.ReadFile(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read password file: %w", err)
	}
	id := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		e, ok := parse(line)
		switch next, marked := strings.CutPrefix(line, mark); {
		case marked:
			id = next
			continue
		case id != "" && ok:
			e.ResourceID = id
			all = append(all, e)
		case line != "":
			others = append(others, line)
		}
		id = ""
	}
	return all, others, nil
}

func (f File) write(text string) error {
	tmp, err := os.CreateTemp(filepath.Dir(f.Path), "."+filepath.Base(f.Path)+".")
	if err != nil {
		return fmt.Errorf("write password file: %w", err)
	}
	defer os.Remove(tmp.Name())
	_, writeErr := tmp.WriteString(text) // os.CreateTemp makes files with mode 0600
	if err := errors.Join(writeErr, tmp.Sync(), tmp.Close()); err != nil {
		return fmt.Errorf("write password file: %w", err)
	}
	if err := os.Rename(tmp.Name(), f.Path); err != nil {
		return fmt.Errorf("write password file: %w", err)
	}
	return nil
}

var escaper = strings.NewReplacer(`\`, `\\`, `:`, `\:`)

func (e Entry) line() string {
	return strings.Join([]string{
		escaper.Replace(e.Host), escaper.Replace(e.Port), "*", escaper.Replace(e.User), escaper.Replace(e.Password),
	}, ":")
}

// parse reads a line of libpq's form.
func parse(line string) (Entry, bool) {
	var fields []string
	field := ""
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '\\' && i+1 < len(line):
			i++
			field += string(line[i])
		case line[i] == ':':
			fields, field = append(fields, field), ""
		default:
			field += string(line[i])
		}
	}
	fields = append(fields, field)
	if len(fields) != 5 || fields[2] != "*" {
		return Entry{}, false
	}
	return Entry{Host: fields[0], Port: fields[1], User: fields[3], Password: fields[4]}, true
}

const (
	passwordLength = 24
	// alphabet has characters that need no quoting anywhere, without look-alikes.
	alphabet = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789"
)

// Generate returns a new password, of 139 bits.
func Generate() string {
	password := make([]byte, 0, passwordLength)
	var b [1]byte
	for len(password) < passwordLength {
		if _, err := rand.Read(b[:]); err != nil {
			panic("pgpass: no randomness: " + err.Error())
		}
		// A value that would favour some letters is thrown away.
		if limit := 256 - 256%len(alphabet); int(b[0]) < limit {
			password = append(password, alphabet[int(b[0])%len(alphabet)])
		}
	}
	return string(password)
}
