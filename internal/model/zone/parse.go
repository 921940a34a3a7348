package zone

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"golang.org/x/net/publicsuffix"
)

var (
	// ErrForm says that a text is no name of a zone.
	ErrForm = errors.New("not a DNS zone")
	// ErrPublic says that a name belongs to the public DNS.
	ErrPublic = errors.New("a public name")
	// ErrUnfit says that resolvers treat a name in a way of its own, so that they would never ask.
	ErrUnfit = errors.New("not a name that resolvers ask for")
)

var (
	labelForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	allDigits = regexp.MustCompile(`^[0-9]+$`)
)

// mostZone leaves room for what stands before the zone: an identifier of a few characters, the hash
// and the region. An identifier for which no room is left is refused when it is asked for.
const mostZone = 200

// unfit has names at the top that resolvers do not ask DNS servers for, and why.
var unfit = map[string]string{
	"local":     "resolvers look for it by multicast (RFC 6762)",
	"localhost": "resolvers answer for it themselves (RFC 6761)",
	"invalid":   "it is reserved for names that do not exist (RFC 6761)",
	"alt":       "it is reserved for names outside DNS (RFC 9476)",
	"onion":     "it is Tor's (RFC 7686)",
}

// homeNetwork is the one name below a public one that RFC 8375 gives to private networks.
const homeNetwork = "home.arpa"

// Parse returns the zone that a user asked for. It may be in capital letters, and end with a dot.
//
// It refuses every name whose last label is one of the public DNS. There a name has an owner, whose
// own servers answer for it, and who may give names below it to others. Whoever answers in the owner's
// place takes all of these names away from the clients, and the server's certificate, which a private
// authority signed, would say a public name. Left are the names that are for private use: .internal
// and .test, home.arpa, and those at the top that nobody has registered, such as .lan, .corp or
// .localdomain. Which names are public is in the list of public suffixes, as the library has it.
//
// It refuses names of one label, too: it would take, for instance, all of .internal, which clouds use
// for machines.
func Parse(text string) (Zone, error) {
	name := strings.ToLower(strings.TrimSuffix(strings.TrimSpace(text), "."))
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if len(label) > mostLabel || !labelForm.MatchString(label) {
			return "", fmt.Errorf("%q is %w: its parts are 1 to %d letters, digits and hyphens, as in howdah.internal", text, ErrForm, mostLabel)
		}
	}
	last := labels[len(labels)-1]
	switch {
	case len(name) > mostZone:
		return "", fmt.Errorf("%q is %w: it has %d characters, and more than %d leave no room for names in it", text, ErrForm, len(name), mostZone)
	case allDigits.MatchString(last):
		return "", fmt.Errorf("%q is %w: its last part is a number", text, ErrForm)
	case unfit[last] != "":
		return "", fmt.Errorf("%q is %w: %s; take one such as howdah.internal", text, ErrUnfit, unfit[last])
	case len(labels) == 1 || name == homeNetwork:
		return "", fmt.Errorf("%q is %w of Howdah's own: take a name in it, as howdah.%s", text, ErrForm, name)
	case public(name, last):
		return "", fmt.Errorf("%q is %w: .%s belongs to the public DNS; take a private one, such as howdah.internal, howdah.test or howdah.home.arpa", text, ErrPublic, last)
	}
	return Zone(name), nil
}

// public reports whether a name is one of the public DNS. The list has top-level domains below which
// all names are suffixes, but not these domains themselves. So it is asked for a name below.
func public(name, last string) bool {
	if strings.HasSuffix(name, "."+homeNetwork) {
		return false
	}
	_, icann := publicsuffix.PublicSuffix("a." + last)
	return icann
}
