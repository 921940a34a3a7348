package spec

import (
	"strconv"
	"strings"

	"howdah/internal/model/kind"
)

// HomeAuthority is the home's own authority, as the API names it. It signs the
// certificates of servers whose users chose no other.
const HomeAuthority = "howdah-ca"

// AuthorityLine is a line of authorities that follow each other. All have keys of one kind, and the
// newest replaces the earlier ones.
type AuthorityLine struct {
	Name string
	// Key is the kind of the authorities' keys, ServerKey that of the servers' keys.
	Key, ServerKey string
}

// AuthorityLines lists all lines, the default first. All other lines have the names and the keys of
// RDS's authorities.
var AuthorityLines = []AuthorityLine{
	{HomeAuthority, kind.EC256, kind.EC256},
	{"rds-ca-rsa2048", kind.RSA2048, kind.RSA2048},
	{"rds-ca-rsa4096", kind.RSA4096, kind.RSA2048},
	{"rds-ca-ecc384", kind.EC384, kind.EC384},
}

// Authority returns the name of an authority of the line. Generations count from 1.
func (l AuthorityLine) Authority(generation int) string {
	if l.Name == HomeAuthority && generation == 1 {
		return HomeAuthority
	}
	return l.Name + "-g" + strconv.Itoa(generation)
}

// ParseAuthority splits the name of an authority into its line and its generation. It does not know
// whether that authority exists.
func ParseAuthority(id string) (line AuthorityLine, generation int, ok bool) {
	for _, l := range AuthorityLines {
		if id == l.Authority(1) {
			return l, 1, true
		}
		digits, found := strings.CutPrefix(id, l.Name+"-g")
		n, err := strconv.Atoi(digits)
		if found && err == nil && n > 1 && l.Authority(n) == id {
			return l, n, true
		}
	}
	return AuthorityLine{}, 0, false
}

// NewerAuthority returns the newest authority in all that is of the same line as id and newer than
// it. ok is false if there is none.
func NewerAuthority(id string, all []string) (newest string, ok bool) {
	line, last, known := ParseAuthority(id)
	if !known {
		return "", false
	}
	for _, other := range all {
		if l, n, known := ParseAuthority(other); known && l == line && n > last {
			newest, last, ok = other, n, true
		}
	}
	return newest, ok
}
