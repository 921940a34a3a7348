// Package network says who may connect to databases. It has the security groups that users made
// with the EC2 API, and derives from their rules what applies to a database. It does no I/O.
package network

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"
	"time"

	"howdah/internal/model/network/cidr"
	"howdah/internal/model/spec"
)

// VPC is the id of the one network that a home has.
const VPC = "vpc-howdah"

// DefaultName is the name of the group that each account has in each region.
const DefaultName = "default"

// Protocols of rules that matter to databases. Rules for other protocols are only kept.
const (
	AnyProtocol = "-1"
	TCP         = "tcp"
)

// Group is a security group.
type Group struct {
	spec.Scope
	ID          string     `json:"id"`
	Name        string     `json:"name"`
	Description string     `json:"description"`
	Rules       []Rule     `json:"rules"`
	Tags        []spec.Tag `json:"tags"`
	Created     time.Time  `json:"created"`
	// Generation grows with every change, and when a database begins to use it.
	Generation int64 `json:"generation"`
}

// Rule admits clients from a network to a range of ports.
type Rule struct {
	ID       string `json:"id"`
	Protocol string `json:"protocol"`
	// From and To are the first and the last port. Both are -1 for all ports, and for a protocol
	// that has no ports.
	From        int          `json:"from"`
	To          int          `json:"to"`
	Source      netip.Prefix `json:"source"`
	Description string       `json:"description,omitempty"`
}

// Admits reports whether the rule admits TCP connections to this port.
func (r Rule) Admits(port int) bool {
	return r.Protocol == AnyProtocol || r.Protocol == TCP && r.From <= port && port <= r.To
}

// Same reports whether two rules admit the same connections, whatever their ids and descriptions
// are.
func (r Rule) Same(other Rule) bool {
	return r.Protocol == other.Protocol && r.From == other.From && r.To == other.To && r.Source == other.Source
}

// ARN is the group's resource name.
func (g Group) ARN() string { return ARN(g.Scope, "security-group", g.ID) }

// ARN returns the resource name of a resource of EC2.
func ARN(scope spec.Scope, kind, id string) string {
	return strings.Join([]string{"arn:aws:ec2", scope.Region, scope.Account, kind + "/" + id}, ":")
}

// Default returns the default group of a scope, as it is until somebody changes it. It admits
// everyone, so that a database without a named group can be reached.
func Default(scope spec.Scope) Group {
	sum := sha256.Sum256([]byte(DefaultName + "/" + scope.Account + "/" + scope.Region))
	id := hex.EncodeToString(sum[:])[:17]
	return Group{
		Scope: scope, ID: "sg-" + id, Name: DefaultName, Description: "default VPC security group",
		Rules: []Rule{{ID: "sgr-" + id, Protocol: AnyProtocol, From: -1, To: -1, Source: cidr.Everyone}},
	}
}

// IsDefault reports whether the group is the default group of its scope.
func (g Group) IsDefault() bool { return g.Name == DefaultName }

// Book finds groups by scope and id. The default groups are always in it.
type Book map[spec.Scope]map[string]Group

// NewBook makes a book of stored groups.
func NewBook(groups []Group) Book {
	b := Book{}
	for _, g := range groups {
		if b[g.Scope] == nil {
			b[g.Scope] = map[string]Group{}
		}
		b[g.Scope][g.ID] = g
	}
	return b
}

// Find finds a group.
func (b Book) Find(scope spec.Scope, id string) (Group, bool) {
	if g, ok := b[scope][id]; ok {
		return g, true
	}
	g := Default(scope)
	return g, g.ID == id
}

// In returns the groups of a scope, sorted by id, with the default group.
func (b Book) In(scope spec.Scope) []Group {
	d, _ := b.Find(scope, Default(scope).ID)
	all := []Group{d}
	for _, g := range b[scope] {
		if g.ID != d.ID {
			all = append(all, g)
		}
	}
	slices.SortFunc(all, func(a, b Group) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// Admitted returns the networks from which clients may connect to a port of a database that is in
// these groups, in the shortest form. A database in no group counts as in the default group. A
// group that does not exist admits nobody.
func (b Book) Admitted(scope spec.Scope, ids []string, port int) []netip.Prefix {
	if len(ids) == 0 {
		ids = []string{Default(scope).ID}
	}
	all := []netip.Prefix{}
	for _, id := range ids {
		g, _ := b.Find(scope, id)
		if g.ID != id {
			continue
		}
		for _, r := range g.Rules {
			if r.Admits(port) {
				all = append(all, r.Source)
			}
		}
	}
	return cidr.Minimal(all)
}
