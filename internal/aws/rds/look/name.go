package look

import (
	"crypto/rand"
	"encoding/base32"
	"strings"

	"howdah/api/rds"
	"howdah/internal/aws/wire"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// PlainARN is an ARN as policies write it. RDS looks neither at the partition nor at the case.
func PlainARN(arn string) string {
	arn = strings.TrimSpace(arn)
	parts := strings.SplitN(arn, ":", 4)
	if len(parts) < 4 || !strings.EqualFold(parts[0], "arn") || !strings.EqualFold(parts[2], "rds") {
		return arn
	}
	return "arn:aws:rds:" + strings.ToLower(parts[3])
}

// IsARN reports whether a text is meant to be an ARN.
func IsARN(text string) bool {
	text = strings.TrimSpace(text)
	return len(text) >= 4 && strings.EqualFold(text[:4], "arn:")
}

// NewResourceID makes an identifier that stays when a resource is renamed, in
// RDS's form: a prefix and 26 capital letters and digits.
func NewResourceID(prefix string) string {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic("look: no randomness: " + err.Error())
	}
	return prefix + base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:])
}

// ClusterKey is where the record of a cluster is.
func ClusterKey(c spec.Cluster) string { return state.Cluster(c.Account, c.Region, c.Name) }

// EndpointKey is where the record of a custom endpoint is.
func EndpointKey(e spec.Endpoint) string { return state.Endpoint(e.Account, e.Region, e.Name) }

// InstanceKey is where the record of an instance is.
func InstanceKey(i spec.Instance) string { return state.Instance(i.Account, i.Region, i.Name) }

// NameFree answers the error for a name that another instance has.
func (s *Source) NameFree(scope spec.Scope, name string) error {
	if _, _, taken := s.Cache.Raw(state.Instance(scope.Account, scope.Region, name)); taken {
		return wire.NewError(rds.ErrDBInstanceAlreadyExists, "DB instance already exists")
	}
	return nil
}

// Locate takes the ARN of a kind of resource apart, or takes a name to be in the
// caller's scope. Names are in lower case. An ARN of another account leads to a
// scope that the caller's look does not hold.
func Locate(scope spec.Scope, identifier, kind string) (spec.Scope, string) {
	identifier = strings.ToLower(strings.TrimSpace(identifier))
	parts := strings.SplitN(identifier, ":", 7) // names of automated snapshots have a colon
	if len(parts) == 7 && parts[0] == "arn" && parts[2] == "rds" && parts[5] == kind {
		return spec.Scope{Region: parts[3], Account: parts[4]}, parts[6]
	}
	return scope, identifier
}

// FindNamed finds what a user made in the caller's scope, by its name or the ARN of its
// kind; name is that which was asked for.
func FindNamed[T any](s *Source, scope spec.Scope, identifier, kind string, key func(account, region, name string) string) (r state.Record[T], name string, ok bool) {
	in, name := Locate(scope, identifier, kind)
	if in != scope || name == "" {
		return r, name, false
	}
	found, err := state.Load[T](s.Cache, key(in.Account, in.Region, name))
	if err != nil {
		return r, name, false
	}
	return found, name, true
}

// NameFor is how something in one region names a resource: by its name, or by its
// ARN if that is in another region.
func NameFor(in spec.Scope, c spec.Common, kind string) string {
	if c.Scope == in {
		return c.Name
	}
	return c.ARN(kind, c.Name)
}
