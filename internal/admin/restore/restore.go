// Package restore has the admin API's verbs that make databases of backups: those that RDS has, and
// those for which RDS has no words: a position in WAL, and a transaction.
//
// Invariants: a restored database is made by the same code as those that are asked for by RDS, so
// nothing is refused there and made here. A dry run goes as far as that code goes without a write.
package restore

import (
	"context"
	"log/slog"

	"howdah/api/rds"
	"howdah/internal/admin"
	"howdah/internal/admin/verb"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/cluster"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/instance"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/rds/restore"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// Config is what the verbs need. All fields are required.
type Config struct {
	Records *database.Source
	Log     *slog.Logger
}

type service struct{ Config }

// Verbs returns the verbs on restores.
func Verbs(cfg Config) verb.Table {
	s := &service{cfg}
	return verb.Table{admin.VerbRestore: verb.On(verb.OfHome, s.restore), admin.VerbRewind: verb.On(verb.OfHome, s.rewind)}
}

// restore makes a new database of a backup, or says what it would make.
func (s *service) restore(ctx context.Context, c front.Call, in admin.RestoreRequest) (out admin.RestorePlan, err error) {
	if err := spec.CheckName("name", wire.Lower(&in.Name)); err != nil {
		return out, err
	}
	records := s.Records
	if err := records.State.Fresh(ctx); err != nil {
		return out, err
	}
	err = records.State.Retry(ctx, func() error {
		l := records.Of(c.Account)
		choice, err := choose(l, c, in.From, in.RestorePoint)
		if err == nil {
			err = sparedNew(c, choice, in.Name)
		}
		if err != nil {
			return err
		}
		plan, ops, err := planned(l, c, choice, in)
		if err != nil {
			return hinted(err, choice.Common().Name)
		}
		out = plan
		if in.DryRun {
			return nil
		}
		s.Log.Info("restore a database", "name", plan.Name, "from", plan.From, "label", plan.Label, "by", c.Who.Key)
		return records.State.Commit(ctx, ops...)
	})
	return out, err
}

// planned returns what is made of a choice, with the writes that make it.
func planned(l *database.Sight, c front.Call, from restore.Choice, in admin.RestoreRequest) (admin.RestorePlan, []state.Op, error) {
	if from.Cluster != nil {
		return makeCluster(l, c, from, in)
	}
	asked := &rds.RestoreDBInstanceFromDBSnapshotMessage{
		DBInstanceIdentifier: &in.Name, DBInstanceClass: wire.Text(in.Class), AllocatedStorage: wire.Amount(int(in.StorageGiB)), Port: wire.Amount(int(in.Port)),
		MultiAZ: in.MultiAZ, DBParameterGroupName: wire.Text(in.ParameterGroup), DeletionProtection: &in.Protect, AvailabilityZone: wire.Text(c.ZoneName(in.Zone)),
	}
	if in.MultiAZ == nil && in.Zone == "" && !in.Live {
		asked.MultiAZ = &from.Instance.MultiAZ
	}
	i, ops, err := instance.Restored(l, c, from, asked)
	if err != nil {
		return admin.RestorePlan{}, nil, err
	}
	p := planOf(l, from, in)
	p.Kind, p.ResourceID, p.Class, p.StorageGiB, p.MultiAZ = admin.KindInstance, i.ResourceID, i.Class, i.Storage, i.MultiAZ
	p.Hosts, err = l.WhereTo(i.Common, plan.ForInstance(i, plan.Links{}))
	p.Thin = p.Live && thin(l, p.Hosts)
	return p, append(ops, state.Swap(look.InstanceKey(i), 0, i)), err
}

func makeCluster(l *database.Sight, c front.Call, from restore.Choice, in admin.RestoreRequest) (admin.RestorePlan, []state.Op, error) {
	if in.MultiAZ != nil || in.Zone != "" || in.StorageGiB != 0 {
		return admin.RestorePlan{}, nil, admin.NewError(admin.CodeInvalidRequest, "A DB cluster has its zones and its storage by its kind.", "leave multi-az, az and storage away")
	}
	asked := &rds.RestoreDBClusterFromSnapshotMessage{
		DBClusterIdentifier: &in.Name, Port: wire.Amount(int(in.Port)), DBClusterParameterGroupName: wire.Text(in.ParameterGroup), DeletionProtection: &in.Protect,
		DBClusterInstanceClass: wire.Text(in.Class),
	}
	made, ops, err := cluster.Restored(l, c, from, asked)
	if err != nil {
		return admin.RestorePlan{}, nil, err
	}
	p := planOf(l, from, in)
	p.Kind, p.ResourceID, p.Class, p.StorageGiB, p.MultiAZ = admin.KindCluster, made.ResourceID, made.Class, made.Storage, made.MultiAZ()
	if p.Live && p.MultiAZ {
		first := spec.Instance{Common: made.Common, Class: made.Class, Storage: made.Storage}
		if p.Hosts, err = l.WhereTo(made.Common, plan.ForCluster(made, []spec.Instance{first}, plan.Links{})); err != nil {
			return p, nil, err
		}
		p.Thin = thin(l, p.Hosts)
	}
	return p, append(ops, state.Swap(look.ClusterKey(made), 0, made)), nil
}
