package restore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"howdah/api/rds"
	"howdah/internal/admin"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/restore"
	"howdah/internal/aws/rds/rewind"
	"howdah/internal/aws/wire"
	"howdah/internal/model/backup"
	"howdah/internal/model/lsn"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// rewindPrefix is what the ids of these operations begin with.
const rewindPrefix = "rewind-"

// rewind begins to give an instance the data of an earlier moment in its place, or says what that would
// be.
func (s *service) rewind(ctx context.Context, c front.Call, in admin.RewindRequest) (out admin.RewindPlan, err error) {
	if !operation.ValidID(in.ID) || !strings.HasPrefix(in.ID, rewindPrefix) {
		return out, invalid(fmt.Sprintf("%.64q is no id for this operation.", in.ID), "it begins with "+rewindPrefix+", and has at most 63 lower-case letters, digits and hyphens")
	}
	if in.Latest {
		return out, invalid("A database has its newest data already.", "give a time, an LSN, a transaction, or a snapshot")
	}
	records := s.Records
	if err := records.State.Fresh(ctx); err != nil {
		return out, err
	}
	err = records.State.Retry(ctx, func() error {
		l := records.Of(c.Account)
		plan, ops, err := planRewind(l, c, in)
		if err != nil {
			return hinted(err, in.Name)
		}
		out = plan
		if in.DryRun || len(ops) == 0 {
			return nil
		}
		s.Log.Info("take a database back in its place", "id", in.ID, "name", plan.Name, "to", plan.To, "by", c.Who.Key)
		return records.State.Commit(ctx, ops...)
	})
	return out, err
}

// planRewind returns what is begun, with the writes that begin it. There are none if the same id has
// begun it before.
func planRewind(l *database.Sight, c front.Call, in admin.RewindRequest) (admin.RewindPlan, []state.Op, error) {
	if o, err := state.View[operation.Record](l.Cache, state.Operation(in.ID)); err == nil && !in.DryRun {
		p, err := begunBefore(*o.Value, in)
		return p, nil, err
	}
	r, err := findRewound(l, c, in.Name)
	if err != nil {
		return admin.RewindPlan{}, nil, err
	}
	if err := c.Spared(r.Value.ARN("db", r.Value.Name)); err != nil {
		return admin.RewindPlan{}, nil, err
	}
	if err := rewind.May(l, r.Value); err != nil {
		return admin.RewindPlan{}, nil, err
	}
	from := ""
	if in.Snapshot == "" {
		from = r.Value.Name
	}
	choice, err := choose(l, c, from, in.RestorePoint)
	if err != nil {
		return admin.RewindPlan{}, nil, err
	}
	p := lossOf(l, r.Value, choice, c.Now)
	p.Operation, p.Began, p.DryRun = in.ID, c.Now, in.DryRun
	if p.Snapshot = in.KeepAs; p.Snapshot == "" {
		p.Snapshot = keepAs(r.Value.Name, c.Now)
	}
	begun, ops, err := rewind.Begin(l, c, r, rewind.Wish{From: choice, ID: in.ID, Snapshot: p.Snapshot, To: p.To})
	if err != nil {
		return p, nil, err
	}
	p.NextResourceID, p.Hosts = begun.Beside.ResourceID, begun.Hosts
	if in.DryRun {
		p.NextResourceID = "" // it would be another one
	}
	return p, ops, nil
}

func begunBefore(o operation.Record, in admin.RewindRequest) (admin.RewindPlan, error) {
	if o.Kind != backup.Rewind.Name || !strings.EqualFold(o.About.Name, in.Name) && !strings.EqualFold(o.About.Database, in.Name) {
		return admin.RewindPlan{}, invalid("The operation "+in.ID+" is another one.", "choose another id")
	}
	return admin.RewindPlan{Operation: o.ID, Began: o.Began, Name: o.About.Name, ResourceID: o.About.Database, Hosts: []string{}}, nil
}

// findRewound finds the instance that is to go back. A cluster cannot.
func findRewound(l *database.Sight, c front.Call, name string) (state.Record[spec.Instance], error) {
	kind, bare := split(strings.ToLower(strings.TrimSpace(name)))
	r, err := l.FindInstance(c.Scope, bare)
	if err == nil && kind != admin.KindCluster {
		return r, nil
	}
	for _, cluster := range l.Clusters {
		if v := cluster.Value; v.Scope == c.Scope && v.Name == bare && !v.Deleting {
			return r, admin.NewError(admin.CodeRewindRefused, fmt.Sprintf("%s is a DB cluster, which cannot go back in its place yet.", v.Name),
				"restore it beside, and have clients use that: howdah db restore NEW --from cluster/"+v.Name+" --to TIME")
		}
	}
	if e, ok := errors.AsType[*wire.Error](err); ok && e.Code == rds.ErrDBInstanceNotFound {
		return r, e.WithHint("see `howdah db list`")
	}
	return r, err
}

// keepAs is the name of the snapshot that is made first, unless another one is given.
func keepAs(name string, now time.Time) string {
	return name + "-before-rewind-" + now.UTC().Format("20060102-150405")
}

// lossOf says what is gone back to, and what is lost by that.
func lossOf(l *database.Sight, i spec.Instance, from restore.Choice, now time.Time) admin.RewindPlan {
	p := admin.RewindPlan{
		Name: i.Name, ResourceID: i.ResourceID, FromID: from.Database, Repository: from.Repository, Label: from.Label, Until: from.Until, LSN: from.LSN, Before: from.Before,
		LostBytes: -1, Retention: i.BackupRetention, Hosts: []string{},
	}
	base, err := state.View[backup.Backup](l.Cache, state.Backup(from.Database, from.Repository, from.Label))
	if err == nil {
		p.Taken, p.Size = base.Value.Stop, base.Value.Size
	}
	switch {
	case from.Snapshot:
		p.Until, p.To = p.Taken, "the snapshot "+from.From
	case p.LSN != "":
		p.To = "the WAL position " + p.LSN
	case p.Before != "":
		p.To = "the moment before the transaction " + p.Before
	default:
		p.To = momentText(p.Until)
	}
	if !p.Until.IsZero() {
		p.LostSeconds = max(now.Sub(p.Until), 0).Seconds()
	}
	if end := endOf(l, i); err == nil && end != 0 && from.Database == i.ResourceID {
		p.LostBytes, p.LostAtMost = walSince(end, base.Value.StopLSN, from), p.LSN == "" && !from.Snapshot
	}
	return p
}

// walSince is how much WAL is lost. Of a moment nobody knows the position: it is not before the end of
// the backup that the restore begins with.
func walSince(end, base lsn.LSN, from restore.Choice) int64 {
	begin := base
	if at, err := lsn.Parse(from.LSN); err == nil {
		begin = at
	}
	return max(int64(end)-int64(begin), 0)
}

// endOf is the end of the WAL that the primary of an instance has written, as it last said; 0: nobody
// knows.
func endOf(l *database.Sight, i spec.Instance) lsn.LSN {
	f := l.InstanceFacts(i)
	primary, serving := f.Primary()
	if !serving {
		return 0
	}
	return f.Reports[member.ID(i.ResourceID, primary.Name)].LSN
}

// momentText is a moment to the microsecond.
func momentText(t time.Time) string {
	return strings.TrimSuffix(t.UTC().Format("2006-01-02 15:04:05.999999"), ".") + "Z"
}
