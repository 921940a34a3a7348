// Package zone says which names databases have in the DNS zone of a home. It is pure.
//
// The names have RDS's own form. So programs that take RDS's names apart find their way in these:
//
//	<instance>.<hash>.<region>.<zone>
//	<cluster>.cluster-<hash>.<region>.<zone>             its writer
//	<cluster>.cluster-ro-<hash>.<region>.<zone>          its readers
//	<endpoint>.cluster-custom-<hash>.<region>.<zone>
//
// Two endpoints of a home never have the same name: identifiers are unique within a kind, an account
// and a region, and <hash> stands for the account and the region.
package zone

import (
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
)

// Zone is a DNS zone, in lower case and without a dot at its end. Parse makes one. "" is no zone.
type Zone string

// Setting is the home's zone as the state has it. A control plane that was started with a zone writes
// it.
type Setting struct {
	Zone Zone `json:"zone"`
}

// Said is what a control plane says of the zone, among all that it says of itself. Edges may read
// this, whatever release the control plane is of that lets them in.
type Said struct {
	Zone Zone `json:"dns_zone,omitempty"`
}

// Kind says what a name leads to.
type Kind string

// The kinds are what stands before the hash.
const (
	Instance Kind = ""
	Writer   Kind = "cluster-"
	Reader   Kind = "cluster-ro-"
	Custom   Kind = "cluster-custom-"
)

// Limits of DNS (RFC 1035, 2.3.4): characters of a label, and of a name without a dot at its end.
const (
	mostLabel = 63
	mostName  = 253
)

// ErrLong says that DNS knows no name of this length.
var ErrLong = errors.New("too long for DNS")

// Name returns the name of an endpoint by the identifier of the instance, cluster or custom endpoint.
// It is "" where there is no zone. It returns ErrLong if the name has more characters than DNS allows.
func (z Zone) Name(kind Kind, id, account, region string) (string, error) {
	if z == "" {
		return "", nil
	}
	name := strings.ToLower(id) + "." + string(kind) + Hash(account, region) + "." + strings.ToLower(region) + "." + string(z)
	if len(name) > mostName {
		return "", fmt.Errorf("the name %s has %d characters, and %d are the most: %w", name, len(name), mostName, ErrLong)
	}
	for label := range strings.SplitSeq(name, ".") {
		if len(label) > mostLabel {
			return "", fmt.Errorf("%s in the name %s has %d characters, and %d are the most: %w", label, name, len(label), mostLabel, ErrLong)
		}
	}
	return name, nil
}

// Hash returns what stands for an account and a region in names: twelve letters and digits that begin
// with a c, as RDS's do. It never changes, and is the same in each home. So a home that was made again
// from a backup has the same names.
func Hash(account, region string) string {
	sum := sha256.Sum256([]byte("howdah names\n" + account + "\n" + strings.ToLower(region)))
	return "c" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:10]))[:11]
}

// FQDN returns the zone as DNS messages have it, with a dot at its end.
func (z Zone) FQDN() string { return string(z) + "." }
