package spec

import (
	"strconv"
	"strings"

	"howdah/internal/model/kind"
)

// HomeAuthority is the home's own authority, as the API names it. It signs the
// certificates of servers whose users chose no other.
const HomeAuthority = "howdah-ca"

// AuthorityLine is a line of authorities that follow each other: they have keys of
// one kind, and the newest takes the place of those before it.
type AuthorityLine struct {
	Name string
	// Key is the kind of the authorities' keys, and ServerKey of the servers'.
	Key, ServerKey string
}

// AuthorityLines are all lines, the default first. All but the first have the names
// and the keys that RDS's have.
var AuthorityLines = []AuthorityLine{
	{HomeAuthority, kind.EC256, kind.EC256},
	{"rds-ca-rsa2048", kind.RSA2048, kind.RSA2048},
	{"rds-ca-rsa4096", kind.RSA4096, kind.RSA2048},
	{"rds-ca-ecc384", kind.EC384, kind.EC384},
}

// Authority is the name of an authority of a line: the generations count from 1.
func (l AuthorityLine) Authority(generation int) string {
	if l.Name == HomeAuthority && generation == 1 {
		return HomeAuthority
	}
	return l.Name + "-g" + strconv.Itoa(generation)
}

// ParseAuthority takes the name of an authority apart. It does not say whether there
// is one of that name.
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

// NewerAuthority is the newest of some authorities that is of the same line as one
// and newer than it.
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
