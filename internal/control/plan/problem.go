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
}

// Kind is what somebody who shows problems may tell apart.
type Kind string

// The kinds of problems. Most have none: their text says it.
const (
	// HostLost: a host with a member that counts is lost.
	HostLost Kind = "host-lost"
	// NoStandby: none is in sync.
	NoStandby Kind = "no-standby"
	// NoPlace: there is no host for a member.
	NoPlace Kind = "no-place"
)

// errNoPlace is wrapped by errors of place.
var errNoPlace = errors.New("no host for a member")

// kindOf is that of an error of place.
func kindOf(err error) Kind {
	if errors.Is(err, errNoPlace) {
		return NoPlace
	}
	return ""
}

// Texts are those of all problems, in one.
func Texts(all []Problem) string {
	texts := make([]string, len(all))
	for i, p := range all {
		texts[i] = p.Text
	}
	return strings.Join(texts, "; ")
}
