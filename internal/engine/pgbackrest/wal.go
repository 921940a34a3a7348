package pgbackrest

import (
	"path"
	"regexp"
	"strings"

	"howdah/internal/engine/backup"
)

// ArchivePrefix is the directory of the stanza.
func (e Engine) ArchivePrefix(p backup.Place) string { return "archive/" + p.Database + "/" }

// walForm matches the names of files of WAL, which have the checksum of their content, and those of
// timelines' histories.
var walForm = regexp.MustCompile(`^([0-9A-F]{24})-[0-9a-f]{40}(?:\.[a-z0-9]+)?$|^([0-9A-F]{8}\.history)(?:\.[a-z0-9]+)?$`)

// WALOf reads the name of a file in the archive.
func (e Engine) WALOf(key string) (name string, ok bool) {
	if !strings.HasPrefix(key, "archive/") {
		return "", false
	}
	match := walForm.FindStringSubmatch(path.Base(key))
	if match == nil {
		return "", false
	}
	return match[1] + match[2], true
}
