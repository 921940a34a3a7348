package repository

import (
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
)

// Exported is a key as an operator keeps it.
type Exported struct {
	Name string // of the repository, for people
	ID   string // of the repository
	Key  []byte
}

// exportTitle is the first line of an exported key.
const exportTitle = "Howdah repository key, version 1"

// A key is written in groups of letters and digits that nobody takes for each other: base32 has no
// 0, 1, 8 and 9. lookalikes reads those that somebody typed as the letters that they look like.
var (
	letters    = base32.StdEncoding.WithPadding(base32.NoPadding)
	lookalikes = strings.NewReplacer("0", "O", "1", "I", "8", "B", "-", "", " ", "")
)

const group = 4

// Text returns the key as lines of text. Whoever reads it can read the backups.
func (e Exported) Text() string {
	return strings.Join([]string{
		exportTitle,
		"name:  " + e.Name,
		"id:    " + e.ID,
		"key:   " + grouped(letters.EncodeToString(e.Key)),
		"check: " + grouped(e.check()),
	}, "\n") + "\n"
}

func grouped(text string) string {
	var groups []string
	for ; len(text) > group; text = text[group:] {
		groups = append(groups, text[:group])
	}
	return strings.Join(append(groups, text), "-")
}

// check returns letters that find mistakes in the id and in the key. They tell nothing of the key
// that would help to guess it, as a key is random.
func (e Exported) check() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "howdah repository export v1 %q %q", e.ID, e.Key))
	return letters.EncodeToString(sum[:5])
}

// ErrExport says that a text is no exported key, or has a mistake.
var ErrExport = errors.New("not an exported key")

// Parse reads what Text returns, also if a person typed it: letters may be small, and spaces and
// hyphens do not count in the key.
func Parse(text string) (Exported, error) {
	var e Exported
	var check string
	for line := range strings.Lines(text) {
		name, value, found := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch name = strings.ToLower(strings.TrimSpace(name)); {
		case name == "" || !found && strings.HasPrefix(name, "howdah repository key"):
			if name != "" && name != strings.ToLower(exportTitle) {
				return Exported{}, fmt.Errorf("%w: it has another version: %.80q", ErrExport, strings.TrimSpace(line))
			}
		case name == "name":
			e.Name = value
		case name == "id":
			e.ID = strings.ToLower(value)
		case name == "key":
			var err error
			if e.Key, err = letters.DecodeString(plain(value)); err != nil || len(e.Key) != Size {
				return Exported{}, fmt.Errorf("%w: its key has not %d letters and digits of base32: look for one that is missing or mistyped",
					ErrExport, letters.EncodedLen(Size))
			}
		case name == "check":
			check = plain(value)
		}
	}
	switch {
	case e.ID == "" || e.Key == nil || check == "":
		return Exported{}, fmt.Errorf("%w: it needs the lines id, key and check", ErrExport)
	case check != e.check():
		return Exported{}, fmt.Errorf("%w: the line check does not fit the id and the key: one of the three has a mistake", ErrExport)
	}
	return e, nil
}

func plain(typed string) string { return lookalikes.Replace(strings.ToUpper(typed)) }
