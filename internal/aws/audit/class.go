package audit

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

// Class is what calls have in common that are in one file: its name.
type Class string

// The classes. Logs of earlier releases have all calls in the file of Changed.
const (
	Changed Class = "audit.jsonl"
	Looked  Class = "audit-looked.jsonl"
	Refused Class = "audit-refused.jsonl"
	// Opened: who read a secret. It is apart from both: no number of looks may hide it, and
	// whoever reads one all the time pushes out nothing that was changed.
	Opened Class = "audit-opened.jsonl"
)

var classes = []Class{Changed, Looked, Refused, Opened}

// readers are the beginnings of the names of actions that change nothing, and readVerbs
// those of the home that do not; a login to a database changes nothing of the home's.
var (
	readers   = []string{"Describe", "List", "Get", "Download"}
	readVerbs = []string{"status", "database", "failovers", "held", "key-list", "authority-list"}
)

func classOf(r Record) Class {
	switch {
	case r.Status >= http.StatusBadRequest || r.Code != "":
		return Refused
	case r.Service == "secretsmanager" && r.Action == "GetSecretValue":
		return Opened
	case r.Service == "howdah" && slices.Contains(readVerbs, r.Action), r.Service == "rds-db",
		slices.ContainsFunc(readers, func(p string) bool { return strings.HasPrefix(r.Action, p) }):
		return Looked
	}
	return Changed
}

const (
	// MaxRecord is how many bytes the texts of a record may have together.
	MaxRecord = 8 << 10
	// maxField is how many bytes the other texts of a record may have each, and maxName
	// the name of a parameter.
	maxField = 512
	maxName  = 128
)

// capped is a record whose texts are no longer than MaxRecord: parameters are kept in the
// order of their names, as long as there is room, and those that are cut are counted.
func capped(r Record) Record {
	for _, text := range r.texts() {
		*text = short(*text, maxField)
	}
	bare := r
	bare.Parameters = nil
	room := MaxRecord - size(bare)
	kept := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(r.Parameters)) {
		value := short(r.Parameters[name], min(MaxText, max(0, room-len(name))))
		if len(name) > maxName || room < len(name)+len(value) || value == "" && r.Parameters[name] != "" {
			r.Cut++
			continue
		}
		if value != r.Parameters[name] {
			r.Cut++
		}
		kept[name] = value
		room -= len(name) + len(value)
	}
	if r.Parameters != nil {
		r.Parameters = kept
	}
	return r
}

// texts are what callers have a say in, but for the parameters.
func (r *Record) texts() []*string {
	return []*string{&r.RequestID, &r.AccessKey, &r.User, &r.Account, &r.Region, &r.Service, &r.Action, &r.Source, &r.UserAgent, &r.Code}
}

// short is at most so many bytes of a text, in whole characters.
func short(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// size is how many bytes the texts of a record have, and what stands around them.
func size(r Record) int {
	const around = 300 // of names, times and numbers
	n := around
	for _, text := range r.texts() {
		n += len(*text)
	}
	for name, value := range r.Parameters {
		n += len(name) + len(value)
	}
	return n
}
