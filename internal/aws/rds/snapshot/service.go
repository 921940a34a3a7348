package snapshot

import (
	"context"

	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/database"
	"howdah/internal/model/backup"
	"howdah/internal/state"
)

type service struct{ *database.Source }

// Actions are those on snapshots of both kinds.
func Actions(from *database.Source) map[string]front.Action {
	s := &service{from}
	return map[string]front.Action{
		"CopyDBClusterSnapshot":               front.On(s.copyDBClusterSnapshot),
		"CopyDBSnapshot":                      front.On(s.copyDBSnapshot),
		"CreateDBClusterSnapshot":             front.On(s.createDBClusterSnapshot),
		"CreateDBSnapshot":                    front.On(s.createDBSnapshot),
		"DeleteDBClusterSnapshot":             front.On(s.deleteDBClusterSnapshot),
		"DeleteDBSnapshot":                    front.On(s.deleteDBSnapshot),
		"DescribeDBClusterSnapshotAttributes": front.On(s.describeDBClusterSnapshotAttributes),
		"DescribeDBClusterSnapshots":          front.On(s.describeDBClusterSnapshots),
		"DescribeDBSnapshotAttributes":        front.On(s.describeDBSnapshotAttributes),
		"DescribeDBSnapshots":                 front.On(s.describeDBSnapshots),
		"ModifyDBClusterSnapshotAttribute":    front.On(s.modifyDBClusterSnapshotAttribute),
		"ModifyDBSnapshot":                    front.On(s.modifyDBSnapshot),
		"ModifyDBSnapshotAttribute":           front.On(s.modifyDBSnapshotAttribute),
	}
}

// change alters a snapshot of the caller's, with what change answers, again while others are
// quicker.
func (s *service) change(ctx context.Context, c front.Call, k *Kind, identifier *string, change func(*backup.Snapshot) ([]state.Op, error)) (backup.Snapshot, error) {
	var changed backup.Snapshot
	err := s.State.Retry(ctx, func() error {
		r, err := k.Find(s.Looks, c.Scope, text(identifier))
		if err != nil {
			return err
		}
		changed = r.Value
		ops, err := change(&changed)
		if err != nil {
			return err
		}
		return s.State.Commit(ctx, append(ops, state.Swap(r.Key, r.Revision, changed))...)
	})
	return changed, err
}

func text(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

func (s *service) instanceOut(v backup.Snapshot) *rds.DBSnapshot { return instanceOut(s.Looks, &v) }

func (s *service) clusterOut(v backup.Snapshot) *rds.DBClusterSnapshot {
	return clusterOut(s.Looks, &v)
}
