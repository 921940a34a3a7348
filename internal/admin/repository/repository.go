// Package repository has the admin API's verbs on repositories for backups: where backups go, and
// the keys that open them.
//
// Invariants: a repository is recorded only after everything that it needs was seen to work, and
// after its place was marked with its id. Nothing in a place is deleted unless somebody asks for
// that by name. No key is told except by export.
package repository

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"howdah/internal/admin"
	"howdah/internal/admin/database"
	"howdah/internal/admin/verb"
	"howdah/internal/aws/front"
	"howdah/internal/identity/home"
	"howdah/internal/identity/repository"
	"howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/repository/place"
	"howdah/internal/repository/store"
	"howdah/internal/state"
)

// Prober asks a host whether it can work with a repository: hostapi.Prober.
type Prober interface {
	Probe(ctx context.Context, host, address string, r member.Repository, probe place.Probe) (why string, err error)
}

// Config is what the verbs need. All fields are required.
type Config struct {
	State     *state.Client
	Home      *home.Home
	Databases *database.Source
	Hosts     Prober
	Log       *slog.Logger
}

// service has the handlers.
type service struct {
	*state.Client
	Config
}

// These bound how long verbs may take: file systems and servers may be slow or away, and a large
// repository takes long to delete.
const (
	lookWithin   = 25 * time.Second
	checkWithin  = 2 * time.Minute
	removeWithin = 10 * time.Minute
)

// Verbs returns the verbs on repositories.
func Verbs(cfg Config) verb.Table {
	s := &service{cfg.State, cfg}
	return verb.Table{
		admin.VerbRepositoryAdd:       verb.On(verb.OfHome, s.add).Within(checkWithin),
		admin.VerbRepositoryList:      verb.On(verb.OfHome, s.list),
		admin.VerbRepositoryShow:      verb.On(verb.OfHome, s.show).Within(lookWithin),
		admin.VerbRepositoryCheck:     verb.On(verb.OfHome, s.check).Within(checkWithin),
		admin.VerbRepositoryDefault:   verb.On(verb.OfHome, s.makeDefault),
		admin.VerbRepositoryRemove:    verb.On(verb.OfHome, s.remove).Within(removeWithin),
		admin.VerbRepositoryKeyExport: verb.On(verb.OfKeys, s.exportKey),
		admin.VerbRepositoryKeyImport: verb.On(verb.OfKeys, s.importKey).Within(lookWithin),
	}
}

func (s *service) list(ctx context.Context, _ front.Call, _ admin.Nothing) (admin.RepositoryListAnswer, error) {
	if err := s.Fresh(ctx); err != nil {
		return admin.RepositoryListAnswer{}, err
	}
	out := admin.RepositoryListAnswer{Repositories: []admin.Repository{}}
	for _, r := range state.LoadAll[backup.Repository](s.Cache, state.RepositoryRoot) {
		out.Repositories = append(out.Repositories, s.shown(r.Value))
	}
	slices.SortFunc(out.Repositories, func(a, b admin.Repository) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// show also looks at the place: how much room there is, and whether the control plane reaches it.
func (s *service) show(ctx context.Context, _ front.Call, in admin.RepositoryRequest) (admin.Repository, error) {
	if err := s.Fresh(ctx); err != nil {
		return admin.Repository{}, err
	}
	r, err := s.named(in.Name)
	if err != nil {
		return admin.Repository{}, err
	}
	out := s.shown(r.Value)
	err = within(ctx, func() error {
		opened, err := s.open(r.Value)
		if err == nil {
			_, err = store.ReadMarker(ctx, opened)
		}
		var fs unix.Statfs_t
		if err == nil && out.Path != "" && unix.Statfs(out.Path, &fs) == nil {
			out.Size, out.Free = int64(fs.Blocks)*fs.Bsize, int64(fs.Bavail)*fs.Bsize
		}
		return err
	})
	if err != nil {
		return troubled(s.shown(r.Value), err), nil
	}
	return out, nil
}

func troubled(r admin.Repository, err error) admin.Repository {
	r.Trouble = err.Error()
	return r
}

// within returns when ctx ends, also if a file system does not answer. What waits for that ends
// when it does answer. So f may not write to what its caller uses after an error.
func within(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("it does not answer: %w", ctx.Err())
	}
}

// named returns the record of a repository.
func (s *service) named(name string) (state.Record[backup.Repository], error) {
	if !validName(name) {
		return state.Record[backup.Repository]{}, unknown(name)
	}
	r, err := state.Load[backup.Repository](s.Cache, state.Repository(name))
	if errors.Is(err, state.ErrNotFound) {
		return r, unknown(name)
	}
	return r, err
}

func unknown(name string) error {
	return admin.NewError(admin.CodeRepositoryNotFound, fmt.Sprintf("There is no repository %.64q.", name), "see `howdah repository list`")
}

// open opens the place of a repository that is recorded.
func (s *service) open(r backup.Repository) (store.Store, error) {
	sealer, err := s.sealer()
	if err != nil {
		return nil, err
	}
	access, err := sealer.Access(r, "")
	if err != nil {
		return nil, err
	}
	return place.Open(access)
}

func (s *service) sealer() (*repository.Sealer, error) {
	key, err := s.Home.SealKey()
	if err != nil {
		return nil, err
	}
	return repository.NewSealer(key)
}

// shown returns what a list shows of a repository.
func (s *service) shown(r backup.Repository) admin.Repository {
	out := admin.Repository{
		Name: r.Name, ID: r.ID, Kind: string(r.Kind), Path: r.Path, Endpoint: r.Endpoint, Region: r.Region, Bucket: r.Bucket, Prefix: r.Prefix,
		AccessKey: r.AccessKey, Default: r.Default, Copies: r.Copies, Encrypted: r.Encrypted(), Exported: r.Exported, Created: r.Created,
	}
	u := s.uses(r.Name)
	out.Databases, out.Backups, out.Snapshots, out.Stored = u.databases, u.backups, u.snapshots, u.stored
	out.Copied, out.Seconds = u.copied, u.seconds
	return out
}

// uses says what needs a repository.
type uses struct {
	databases          []string // names, or resource ids of those that are no more
	backups, snapshots int
	stored             int64
	copied             []admin.RepositoryCopy
	seconds            []string
}

func (u uses) any() bool { return len(u.databases)+u.backups+u.snapshots > 0 }

// text says what needs it, for people.
func (u uses) text() string {
	var parts []string
	if n := len(u.databases); n > 0 {
		parts = append(parts, "the databases "+strings.Join(u.databases[:min(n, 8)], ", "))
		if n > 8 {
			parts[0] += fmt.Sprintf(" and %d more", n-8)
		}
	}
	for n, what := range map[string]int{"backups": u.backups, "snapshots": u.snapshots} {
		if what > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", what, n))
		}
	}
	slices.Sort(parts[min(1, len(u.databases)):])
	return strings.Join(parts, ", ")
}

func (s *service) uses(name string) uses {
	var u uses
	ids := map[string]bool{}
	for _, r := range state.LoadAll[backup.Backup](s.Cache, state.BackupRoot) {
		if r.Value.Repository == name {
			ids[r.Value.Database] = true
			u.backups++
			u.stored += r.Value.Stored
		}
	}
	for _, root := range []string{state.SnapshotRoot, state.ClusterSnapshotRoot} {
		for _, r := range state.LoadAll[backup.Snapshot](s.Cache, root) {
			if r.Value.Repository != name {
				continue
			}
			u.snapshots++
			if r.Value.Part != "" {
				u.copied = append(u.copied, copyShown(r.Value))
			}
		}
	}
	slices.SortFunc(u.copied, func(a, b admin.RepositoryCopy) int {
		return cmp.Or(cmp.Compare(a.Snapshot, b.Snapshot), cmp.Compare(a.Account, b.Account), cmp.Compare(a.Region, b.Region))
	})
	for _, r := range state.LoadAll[backup.Automated](s.Cache, state.AutomatedRoot) {
		if r.Value.Repository == name || r.Value.Second == name {
			ids[r.Value.Database] = true
		}
		if r.Value.Second == name {
			u.seconds = append(u.seconds, r.Value.Name)
		}
	}
	slices.Sort(u.seconds)
	for _, r := range state.LoadAll[member.Assignment](s.Cache, state.AssignRoot) {
		a := r.Value
		if a.Want != member.Absent && a.Archive != nil && slices.Contains(a.Archive.Repositories, name) || a.Restore != nil && a.Restore.Repository == name {
			ids[a.Scope] = true
		}
	}
	for _, d := range s.Databases.All() {
		if ids[d.Want.ID] {
			u.databases = append(u.databases, d.Common.Name)
			delete(ids, d.Want.ID)
		}
	}
	for id := range ids {
		u.databases = append(u.databases, id)
	}
	slices.Sort(u.databases)
	if u.databases == nil {
		u.databases = []string{}
	}
	return u
}

func copyShown(s backup.Snapshot) admin.RepositoryCopy {
	return admin.RepositoryCopy{
		Snapshot: s.Name, Database: s.Common().Name, Account: s.Account, Region: s.Region, State: string(s.State), Taken: s.Original(), Stored: s.Stored,
	}
}
