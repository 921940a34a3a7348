package plan

import (
	"errors"
	"strings"
)

// Problem holds the planner up, or is worth a person's attention.
type Problem struct {
	Kind Kind
	Host string // that it is about; "": none
	Text string // a sentence
	// Extensions are those that the host lacks, with commas between them.
	Extensions string
}

// Kind lets those who show problems tell them apart.
type Kind string

// The kinds of problems. Most problems have no kind: their text says it all.
const (
	// HostLost: a host with a member that counts is lost.
	HostLost Kind = "host-lost"
	// NoStandby: no standby is in sync.
	NoStandby Kind = "no-standby"
	// NoPlace: there is no host for a member.
	NoPlace Kind = "no-place"
	// LacksExtensions: hosts of a database do not have the same extensions.
	LacksExtensions Kind = "lacks-extensions"
	// OlderExtensions: hosts of a database do not have the same versions of them.
	OlderExtensions Kind = "older-extensions"
	// CannotClone: the database that it is to be a clone of is deleted.
	CannotClone Kind = "cannot-clone"
)

// errNoPlace is wrapped by errors of place.
var errNoPlace = errors.New("no host for a member")

// kindOf returns the kind of problem that an error of place is.
func kindOf(err error) Kind {
	if errors.Is(err, errNoPlace) {
		return NoPlace
	}
	return ""
}

// Texts returns the texts of all problems as one text.
func Texts(all []Problem) string {
	texts := make([]string, len(all))
	for i, p := range all {
		texts[i] = p.Text
	}
	return strings.Join(texts, "; ")
}
