package audit

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

// Class is the name of the file that calls of one kind share.
type Class string

// The classes. Logs of earlier releases have all calls in the file of Changed.
const (
	Changed Class = "audit.jsonl"
	Looked  Class = "audit-looked.jsonl"
	Refused Class = "audit-refused.jsonl"
	// Opened has who read a secret. It is apart from the other two: no number of looks may hide
	// such a read, and whoever reads secrets all the time pushes out no record of a change.
	Opened Class = "audit-opened.jsonl"
)

var classes = []Class{Changed, Looked, Refused, Opened}

// readers are the beginnings of the names of actions that change nothing. readVerbs are the home's
// verbs that change nothing. A login to a database also changes nothing of the home.
var (
	readers   = []string{"Describe", "List", "Get", "Download"}
	readVerbs = []string{
		"status", "database", "failovers", "held", "key-list", "authority-list", "operations", "repository-list", "repository-show",
		"backups", "backup-show", "drills", "snapshots",
	}
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
	// MaxRecord bounds the texts of a record together, in bytes.
	MaxRecord = 8 << 10
	// maxField bounds each other text of a record, and maxName the name of a parameter, in bytes.
	maxField = 512
	maxName  = 128
)

// capped returns a record whose texts are no longer than MaxRecord. Parameters are kept in the
// order of their names as long as there is room. Those that are cut are counted.
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

// texts returns the texts that callers can influence, except for the parameters.
func (r *Record) texts() []*string {
	return []*string{&r.RequestID, &r.AccessKey, &r.User, &r.Account, &r.Region, &r.Service, &r.Action, &r.Source, &r.UserAgent, &r.Code}
}

// short returns at most this many bytes of a text, in whole characters.
func short(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// size returns how many bytes the texts of a record take, with what stands around them.
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
