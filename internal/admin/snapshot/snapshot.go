// Package snapshot has the admin API's verbs on snapshots of databases for which RDS has no words: a
// copy in a repository that the caller names, and a download.
//
// Invariants: a copy is made by the same code as those that are asked for by RDS, so nothing is
// refused there and made here. A dry run goes as far as that code goes without a write. What is
// downloaded of a database whose storage was encrypted leaves only if the caller says that this is all
// right.
package snapshot

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"

	"howdah/api/rds"
	"howdah/internal/admin"
	"howdah/internal/admin/verb"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/snapshot"
	"howdah/internal/aws/wire"
	"howdah/internal/host/hostapi"
	"howdah/internal/model/backup"
)

// Config is what the verbs need. All fields are required.
type Config struct {
	Records *database.Source
	Hosts   Fetcher
	Log     *slog.Logger
}

// Fetcher fetches what jobs of hosts offer: hostapi.Fetcher.
type Fetcher interface {
	Fetch(ctx context.Context, host, address, job string) (*hostapi.Summed, error)
	Taken(ctx context.Context, host, address, job string) error
}

type service struct{ Config }

// Verbs returns the verbs on snapshots.
func Verbs(cfg Config) verb.Table {
	s := &service{cfg}
	return verb.Table{
		admin.VerbSnapshotCopy:     verb.On(verb.OfHome, s.copy),
		admin.VerbSnapshotDownload: verb.On(verb.OfHome, s.download),
		admin.VerbSnapshotFetch:    verb.On(verb.OfHome, s.fetch),
	}
}

// copy begins a copy of a snapshot, or says what it would copy.
func (s *service) copy(ctx context.Context, c front.Call, in admin.SnapshotCopyRequest) (out admin.SnapshotCopy, err error) {
	records := s.Records
	if err := records.State.Fresh(ctx); err != nil {
		return out, err
	}
	err = records.State.Retry(ctx, func() error {
		l := records.Of(c.Account)
		kind, from, err := find(l, c, in.Snapshot)
		if err == nil {
			err = c.Spared(c.ARN(kind.ARN, cmp.Or(wire.Lower(&in.Name), "*")))
		}
		if err != nil {
			return hinted(err, in.Snapshot)
		}
		repository := in.Repository
		if repository == "" {
			repository = from.Repository
		}
		made, err := kind.CopyTo(l.Look, c, from.Name, in.Name, repository)
		if err != nil {
			return hinted(err, in.Snapshot)
		}
		out = admin.SnapshotCopy{
			Snapshot: Shown(made.Snapshot), From: from.Name, FromRepository: from.Repository, Bytes: made.Bytes, DryRun: in.DryRun,
		}
		if in.DryRun {
			return nil
		}
		s.Log.Info("copy a snapshot", "snapshot", from.Name, "to", made.Snapshot.Name, "repository", repository, "by", c.Who.Key)
		return records.State.Commit(ctx, made.Ops...)
	})
	return out, err
}

// find returns a snapshot of the caller's account and region by its name, which may have its kind
// before it. Without that, it is an instance's if both kinds have the name. It refuses one that the
// caller's policies deny.
func find(l *database.Sight, c front.Call, name string) (*snapshot.Kind, backup.Snapshot, error) {
	kinds := []*snapshot.Kind{snapshot.Instance, snapshot.Cluster}
	word, bare, qualified := strings.Cut(name, "/")
	switch {
	case qualified && word == admin.KindInstance:
		kinds, name = kinds[:1], bare
	case qualified && word == admin.KindCluster:
		kinds, name = kinds[1:], bare
	}
	name = wire.Lower(&name)
	var missing error
	for _, k := range kinds {
		r, err := k.Find(l.Looks, c.Scope, name)
		if err == nil {
			return k, r.Value, c.Spared(r.Value.ARN(k.ARN, r.Value.Name))
		}
		if missing == nil {
			missing = err
		}
	}
	return nil, backup.Snapshot{}, missing
}

// Shown returns what is shown of a snapshot, as far as its own record says it.
func Shown(r backup.Snapshot) admin.Snapshot {
	out := admin.Snapshot{
		Name: r.Name, Kind: admin.KindInstance, Database: r.Common().Name, ResourceID: r.Database, Account: r.Account, Region: r.Region,
		Automated: r.Automated, State: string(r.State), Reason: r.Reason, Taken: r.Original(), Asked: r.Asked, Size: r.Size, Stored: r.Stored,
		Repository: r.Repository, Label: r.Label, Operation: r.Operation, CopyOf: r.CopyOf,
	}
	if r.Cluster != nil {
		out.Kind = admin.KindCluster
	}
	return out
}

// hints has what to do about errors of RDS.
var hints = map[string]string{
	rds.ErrDBSnapshotNotFound:             "see `howdah snapshot list`",
	rds.ErrDBClusterSnapshotNotFound:      "see `howdah snapshot list`",
	rds.ErrDBSnapshotAlreadyExists:        "choose another name",
	rds.ErrDBClusterSnapshotAlreadyExists: "choose another name",
	rds.ErrSnapshotQuotaExceeded:          "delete one that is not needed: howdah snapshot delete",
}

// hinted gives an error of RDS a hint, if it has none.
func hinted(err error, name string) error {
	e, ok := errors.AsType[*wire.Error](err)
	if !ok || e.Hint != "" {
		return err
	}
	if hint, known := hints[e.Code]; known {
		return e.WithHint(hint)
	}
	if e.Code == rds.ErrInvalidDBSnapshotState || e.Code == rds.ErrInvalidDBClusterSnapshotState {
		return e.WithHint("howdah snapshot show " + name)
	}
	return err
}
