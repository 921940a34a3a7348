package view

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"howdah/internal/control/plan"
	"howdah/internal/model/spec"
	"howdah/internal/model/zone"
	"howdah/internal/state"
)

// Database is one database that is wanted, with the records that it comes from. It is shared:
// nothing in it may be altered.
type Database struct {
	Want    plan.Database
	Owner   spec.Common                    // of the API resource that it belongs to
	Specs   []state.Record[*spec.Instance] // instances: itself, or those of the cluster
	Cluster *state.Record[spec.Cluster]    // nil: it is an instance's own
	Custom  []spec.Endpoint                // of the cluster

	origin origin
}

// origin is what a database is wanted by: as long as it is the same, so is what is
// wanted. One that follows another one depends on that, too, and has none.
type origin struct {
	own       int64  // revision of the record of the instance or cluster
	instances string // of the cluster, and its custom endpoints, with their revisions
	followers string
	groups    string // all parameter groups
	networks  int64  // all security groups, and edges that hide clients
	zones     string // of its subnet group
	archive   string // the repositories of its WAL
	dns       zone.Zone
}

// As reports whether a database is wanted as it was, and has the same records; old may be nil.
func (d *Database) As(old *Database) bool {
	return d == old || old != nil && d.origin.own == old.origin.own && d.origin.instances == old.origin.instances && reflect.DeepEqual(d.Want, old.Want)
}

// Upstream is the resource id of the database that this one follows, if it does.
func (d *Database) Upstream() (id string, ok bool) {
	if d.Cluster != nil || len(d.Specs) == 0 || !d.Specs[0].Value.Follows() {
		return "", false
	}
	return d.Specs[0].Value.Source, true
}

// Addresses are those of the database's own records, which go with it, also such as
// their endpoints are just leaving.
func (d *Database) Addresses() []string {
	var all []string
	for _, s := range d.Specs {
		all = append(append(all, s.Value.Address), s.Value.Former...)
	}
	if d.Cluster != nil {
		c := d.Cluster.Value
		all = slices.Concat(all, []string{c.Address, c.ReaderAddress}, c.Former, c.ReaderFormer)
	}
	all = slices.DeleteFunc(all, func(a string) bool { return a == "" })
	slices.Sort(all)
	return slices.Compact(all)
}

// served are the addresses that clients may verify in the server's certificate.
func (d *Database) served() []string {
	all := d.Addresses()
	if d.Owner.Expects != "" {
		all = append(all, d.Owner.Expects)
	}
	for _, e := range d.Custom {
		if !e.Deleting {
			all = append(append(all, e.Address), e.Former...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// revisions tells lists of records apart.
func revisions[T any](records []state.Record[T]) string {
	var text strings.Builder
	for _, r := range records {
		fmt.Fprintf(&text, "%s@%d ", r.Key, r.Revision)
	}
	return text.String()
}

// shared are the values of shared records.
func shared[T any](records []state.Record[*T]) []T {
	all := make([]T, len(records))
	for i, r := range records {
		all[i] = *r.Value
	}
	return all
}

func values[T any](records []state.Record[T]) []T {
	all := make([]T, len(records))
	for i, r := range records {
		all[i] = r.Value
	}
	return all
}
