// Package status has the admin API's verbs that show: the whole home at one moment, one database,
// and how failovers went. What is wrong is a problem, with the command that mends it. The package
// changes nothing.
package status

import (
	"context"
	"slices"
	"strings"
	"time"

	"howdah/internal/admin"
	"howdah/internal/admin/database"
	"howdah/internal/admin/verb"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/look"
	"howdah/internal/failover/fence"
	"howdah/internal/failover/postmortem"
	"howdah/internal/identity/home"
	"howdah/internal/state"
	"howdah/internal/view"
)

// Held knows what databases wait for since the home was restored: home.Held.
type Held interface {
	// Why returns why a database waits to be taken over. It returns "" if it does not wait.
	Why(database string) string
	// Strangers returns problems of data whose database the home does not know.
	Strangers() []admin.Problem
}

// Etcd asks etcd's members how they are: etcd.Members.
type Etcd interface {
	Ask(ctx context.Context) []admin.EtcdMember
}

// Backups knows the backups of databases at one moment: backup.Sight.
type Backups interface {
	// Short returns nil for a database that has no backups, and shall have none.
	Short(d database.Subject) *admin.DatabaseBackups
	Problems(d database.Subject) []admin.Problem
}

// Config is what the verbs need. All fields are required.
type Config struct {
	State     *state.Client
	Home      *home.Home
	Looks     *look.Source
	Databases *database.Source
	Held      Held
	Etcd      Etcd
	// Late returns the problems of operations that should have ended: of one database, or with ""
	// of all.
	Late func(now time.Time, database string) []admin.Problem
	// NoBackup returns why the last backup of the home was not taken, or "".
	NoBackup func() string
	// Repositories returns the problems of repositories.
	Repositories func() []admin.Problem
	// Backups looks at the backups of databases.
	Backups func() Backups
	Version string
}

// service has the handlers.
type service struct {
	*state.Client
	Config
}

// Verbs returns the verbs that show.
func Verbs(cfg Config) verb.Table {
	s := &service{cfg.State, cfg}
	return verb.Table{
		admin.VerbStatus:    verb.On(verb.OfHome, s.status),
		admin.VerbDatabase:  verb.On(verb.OfAccount, s.database),
		admin.VerbFailovers: verb.On(verb.OfHome, s.failovers),
	}
}

// status returns the whole truth about the home. It asks each member of etcd how it is. It takes
// everything else from the mirror of the state, after Fresh.
func (s *service) status(ctx context.Context, c front.Call, _ admin.Nothing) (admin.Status, error) {
	if err := s.Fresh(ctx); err != nil {
		return admin.Status{}, err
	}
	out := admin.Status{
		Home: s.Home.ID, Version: s.Version, Account: c.Account, Region: c.Region,
		Disposable: s.Home.Disposable, Zone: string(view.DNSZone(s.Cache)), Time: c.Now,
		Control: s.controlOut(), Etcd: s.Etcd.Ask(ctx), Edges: s.edgesOut(), Hosts: s.hostsOut(),
		Databases: []admin.Database{}, Fences: []admin.Fence{}, Problems: []admin.Problem{},
	}
	subjects, backups := s.Databases.All(), s.Backups()
	for _, d := range subjects {
		if !d.Common.Hidden() { // the operation tells of it
			out.Databases = append(out.Databases, s.databaseOut(d, backups))
		}
		for _, open := range state.LoadAll[fence.Case](s.Cache, state.FencePrefix(d.Want.ID)) {
			out.Fences = append(out.Fences, fenceOut(d, open.Value))
		}
	}
	if newest := s.postmortems("", 1); len(newest) > 0 {
		out.LastFailover = &newest[0]
	}
	out.Problems = append(out.Problems, homeProblems(out)...)
	out.Problems = append(out.Problems, s.hostProblems(out.Hosts)...)
	for _, d := range subjects {
		out.Problems = append(out.Problems, s.databaseProblems(d, backups)...)
	}
	out.Problems = append(out.Problems, s.Late(c.Now, "")...)
	out.Problems = append(out.Problems, s.Held.Strangers()...)
	out.Problems = append(out.Problems, s.Repositories()...)
	if why := s.NoBackup(); why != "" {
		out.Problems = append(out.Problems, admin.Problem{Code: admin.ProblemBackup, Subject: "backup", Text: "no backup of the home could be taken: " + why})
	}
	return out, nil
}

// database does for one name what status does for all.
func (s *service) database(ctx context.Context, c front.Call, in admin.DatabaseRequest) (admin.DatabaseAnswer, error) {
	if err := s.Fresh(ctx); err != nil {
		return admin.DatabaseAnswer{}, err
	}
	out := admin.DatabaseAnswer{Databases: []admin.Database{}, Problems: []admin.Problem{}}
	backups := s.Backups()
	for _, d := range s.Databases.All() {
		if name := strings.ToLower(in.Name); d.Common.Scope == c.Scope && d.Has(name) {
			for _, arn := range d.Named(name) {
				if err := c.Spared(arn); err != nil {
					return admin.DatabaseAnswer{}, err
				}
			}
			out.Databases = append(out.Databases, s.databaseOut(d, backups))
			out.Problems = append(out.Problems, s.databaseProblems(d, backups)...)
			out.Problems = append(out.Problems, s.Late(c.Now, d.Want.ID)...)
		}
	}
	return out, nil
}

// failovers returns post-mortems, newest first.
func (s *service) failovers(ctx context.Context, _ front.Call, in admin.FailoversRequest) (admin.FailoversAnswer, error) {
	if in.Limit < 0 {
		return admin.FailoversAnswer{}, admin.NewError(admin.CodeInvalidRequest, "A limit cannot be negative.", "")
	}
	if err := s.Fresh(ctx); err != nil {
		return admin.FailoversAnswer{}, err
	}
	return admin.FailoversAnswer{Failovers: s.postmortems(strings.ToLower(in.Name), in.Limit)}, nil
}

// postmortems returns the post-mortems of the database that has this name, or had it at the time,
// or that has this resource id. With "" it returns all.
func (s *service) postmortems(name string, limit int) []postmortem.Record {
	now := map[string]bool{}
	for _, d := range s.Databases.All() {
		if d.Has(name) {
			now[d.Want.ID] = true
		}
	}
	all := []postmortem.Record{}
	for _, r := range state.LoadAll[postmortem.Record](s.Cache, state.FailoverRoot) {
		if name == "" || r.Value.Name == name || strings.EqualFold(r.Value.Database, name) || now[r.Value.Database] {
			all = append(all, r.Value)
		}
	}
	slices.SortFunc(all, func(a, b postmortem.Record) int { return strings.Compare(b.ID, a.ID) })
	if limit > 0 && len(all) > limit {
		all = all[:limit]
	}
	return all
}
