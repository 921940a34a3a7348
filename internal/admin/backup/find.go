package backup

import (
	"context"
	"fmt"
	"strings"

	"howdah/internal/admin"
	"howdah/internal/admin/database"
	"howdah/internal/aws/front"
	"howdah/internal/model/backup"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// named is a database as people know it.
type named struct {
	spec.Scope
	Name    string
	deleted bool
}

// names has all databases of which anything is known, by resource id.
type names map[string]named

// of returns how to call a database. It is its resource id if nobody knows a name.
func (n names) of(id string) named {
	if known, ok := n[id]; ok {
		return known
	}
	return named{Name: id, deleted: true}
}

func (s *service) names() names {
	all := names{}
	for _, r := range allSnapshots(s.Cache) {
		all[r.Value.Database] = named{r.Value.Scope, r.Value.Common().Name, true}
		all[r.Value.Holder()] = all[r.Value.Database] // a copy has a part of its own
	}
	for _, r := range state.ViewAll[backup.Automated](s.Cache, state.AutomatedRoot) {
		all[r.Value.Database] = named{r.Value.Scope, r.Value.Name, true}
	}
	for _, d := range s.Databases.All() {
		if !d.Common.Hidden() {
			all[d.Want.ID] = named{d.Common.Scope, d.Common.Name, false}
		}
	}
	return all
}

// wanted returns whether a database, by its resource id, is one that a list was asked for. Databases
// that were deleted are found as long as something of them is kept.
func (s *service) wanted(ctx context.Context, c front.Call, name string) (func(id string) bool, error) {
	if err := s.Fresh(ctx); err != nil {
		return nil, err
	}
	if name == "" {
		return func(string) bool { return true }, nil
	}
	wanted := map[string]bool{}
	for _, d := range s.matching(c, name) {
		if err := spared(c, d, name); err != nil {
			return nil, err
		}
		wanted[d.Want.ID] = true
	}
	for id, n := range s.names() {
		if n.deleted && (n.Name == strings.ToLower(name) || strings.EqualFold(id, name)) {
			wanted[id] = true
		}
	}
	for _, r := range state.ViewAll[backup.Backup](s.Cache, state.BackupRoot) {
		if strings.EqualFold(r.Value.Database, name) {
			wanted[r.Value.Database] = true
		}
	}
	if len(wanted) == 0 {
		return nil, unknown(name)
	}
	return func(id string) bool { return wanted[id] }, nil
}

func unknown(name string) error {
	return admin.NewError(admin.CodeDatabaseNotFound, fmt.Sprintf("There is no database %.64q.", name), "see `howdah db list`")
}

// find returns the one database that lives and is meant by a name.
func (s *service) find(c front.Call, name string) (database.Subject, error) {
	all := s.matching(c, name)
	switch len(all) {
	case 0:
		return database.Subject{}, unknown(name)
	case 1:
		return all[0], spared(c, all[0], name)
	}
	return database.Subject{}, admin.NewError(admin.CodeInvalidRequest, fmt.Sprintf("%d databases are called %.64q.", len(all), name),
		"say instance/NAME or cluster/NAME, or the resource id, which `howdah db show` has")
}

// matching returns the databases that live and may be meant by a name: those of the caller's account
// and region, or, if there is none, those of others.
func (s *service) matching(c front.Call, name string) []database.Subject {
	kind, bare, qualified := strings.Cut(strings.ToLower(name), "/")
	if !qualified {
		kind, bare = "", kind
	}
	var own, others []database.Subject
	for _, d := range s.Databases.All() {
		switch is := kindOf(d); {
		case d.Common.Hidden(), kind != "" && kind != is, !d.Has(bare) && !strings.EqualFold(d.Want.ID, bare):
		case d.Common.Scope == c.Scope:
			own = append(own, d)
		default:
			others = append(others, d)
		}
	}
	if len(own) > 0 {
		return own
	}
	return others
}

func kindOf(d database.Subject) string {
	if d.Cluster != nil {
		return admin.KindCluster
	}
	return admin.KindInstance
}

// spared refuses a database that the caller's policies deny.
func spared(c front.Call, d database.Subject, name string) error {
	_, bare, qualified := strings.Cut(strings.ToLower(name), "/")
	if !qualified {
		bare = strings.ToLower(name)
	}
	for _, arn := range d.Named(bare) {
		if err := c.Spared(arn); err != nil {
			return err
		}
	}
	return nil
}
