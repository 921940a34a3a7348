package automated

import (
	"context"
	"errors"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/model/backup"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// startReplication has the automated backups of an instance of another region be copied, into the
// home's repository for copies. Users see the copies in the region of the call.
func (s *service) startReplication(ctx context.Context, c front.Call, in *rds.StartDBInstanceAutomatedBackupsReplicationMessage) (*rds.StartDBInstanceAutomatedBackupsReplicationResult, error) {
	out, err := s.replicate(ctx, c, in.SourceDBInstanceArn, func(l *database.Sight, i spec.Instance, a *backup.Automated) error {
		if err := mayReplicate(l, c, i, *a, in); err != nil {
			return err
		}
		to, ok := l.Looks.CopyRepository()
		if !ok || to.Name == a.Repository {
			return wire.NewError(rds.ErrInvalidDBInstanceAutomatedBackupState, "This home has no repository for copies beside the one that %s is backed up to: make one with `howdah repository add --copies`.", i.Name)
		}
		if i.StorageKey != "" && !to.Encrypted() {
			return wire.NewError(api.ErrInvalidParameterCombination, "The DB instance %s is encrypted, and the repository %s, where the copies would lie, encrypts nothing: make one that does with `howdah repository add --copies`.", i.Name, to.Name)
		}
		a.Second, a.SecondRegion = to.Name, c.Region
		return copyKey(l, c, i, a, in.KmsKeyId)
	})
	if err != nil {
		return nil, err
	}
	return &rds.StartDBInstanceAutomatedBackupsReplicationResult{DBInstanceAutomatedBackup: out}, nil
}

// mayReplicate refuses what has no automated backups, or has copies already, and what would have no
// effect.
func mayReplicate(l *database.Sight, c front.Call, i spec.Instance, a backup.Automated, in *rds.StartDBInstanceAutomatedBackupsReplicationMessage) error {
	switch status := l.Status(i); {
	case i.Region == c.Region:
		return wire.NewError(api.ErrInvalidParameterValue, "SourceDBInstanceArn %s is of the region %s: call another region, in which the copies are to be.", *in.SourceDBInstanceArn, c.Region)
	case status != plan.Available:
		return wire.NewError(rds.ErrInvalidDBInstanceState, "The DB instance %s is not in the available state: it is %s.", i.Name, status)
	case i.BackupRetention == 0 || i.Cluster != "" || i.Follows():
		return wire.NewError(rds.ErrInvalidDBInstanceState, "The DB instance %s has no automated backups of its own: see its BackupRetentionPeriod.", i.Name)
	case a.Second != "":
		return wire.NewError(rds.ErrInvalidDBInstanceAutomatedBackupState, "The automated backups of %s are copied to the region %s already.", i.Name, a.SecondRegion)
	case int(wire.Or(in.BackupRetentionPeriod, int32(i.BackupRetention))) != i.BackupRetention:
		return wire.NewError(api.ErrInvalidParameterValue, "Invalid BackupRetentionPeriod %d: copies are kept as long as what they are copies of, %d days.", *in.BackupRetentionPeriod, i.BackupRetention)
	}
	if len(in.Tags) > 0 {
		return wire.NewError(api.ErrInvalidParameterCombination, "Copies have the tags of their DB instance: leave Tags, with Key and Value of each, away.")
	}
	return nil
}

// copyKey is the KMS key that a database which is made of the copies is encrypted with.
func copyKey(l *database.Sight, c front.Call, i spec.Instance, a *backup.Automated, named *string) error {
	if i.StorageKey == "" {
		if named != nil {
			return wire.NewError(api.ErrInvalidParameterCombination, "KmsKeyId is for encrypted DB instances, and %s is not: leave it away.", i.Name)
		}
		return nil
	}
	if named == nil {
		return wire.NewError(api.ErrInvalidParameterCombination, "The DB instance %s is encrypted: give KmsKeyId, a key of the region %s.", i.Name, c.Region)
	}
	key, err := l.UsableKey(c.Scope, *named)
	a.SecondKey = key.Value.ID
	return err
}

// stopReplication ends the copying. What was copied goes.
func (s *service) stopReplication(ctx context.Context, c front.Call, in *rds.StopDBInstanceAutomatedBackupsReplicationMessage) (*rds.StopDBInstanceAutomatedBackupsReplicationResult, error) {
	out, err := s.replicate(ctx, c, in.SourceDBInstanceArn, func(_ *database.Sight, i spec.Instance, a *backup.Automated) error {
		if a.Second == "" || a.SecondRegion != c.Region {
			return wire.NewError(rds.ErrInvalidDBInstanceState, "The automated backups of the DB instance %s are not copied to the region %s.", i.Name, c.Region)
		}
		a.Second, a.SecondRegion, a.SecondKey = "", "", ""
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &rds.StopDBInstanceAutomatedBackupsReplicationResult{DBInstanceAutomatedBackup: out}, nil
}

// replicate changes what is recorded of the automated backups of an instance that lives, and answers
// the copies.
func (s *service) replicate(ctx context.Context, c front.Call, arn *string, change func(*database.Sight, spec.Instance, *backup.Automated) error) (*rds.DBInstanceAutomatedBackup, error) {
	var shown Held
	err := s.State.Retry(ctx, func() error {
		l := s.Of(c.Account)
		r, err := source(l, c.Scope, wire.Or(arn, ""))
		if err != nil {
			return err
		}
		held, err := state.Load[backup.Automated](l.Cache, state.Automated(r.Value.ResourceID))
		if err != nil && !errors.Is(err, state.ErrNotFound) {
			return err
		}
		i, a := r.Value, held.Value
		if held.Revision == 0 { // it has no backup yet
			a = backup.Automated{Scope: i.Scope, Name: i.Name, Database: i.ResourceID, Repository: l.RepositoryOf(i.ResourceID), Retention: i.BackupRetention, Created: c.Now}
			a.Keep(&i, nil)
		}
		if err := change(l, i, &a); err != nil {
			return err
		}
		of := i
		of.StorageKey = a.SecondKey
		shown = Held{CopyOf: true}
		shown.Instance = &of
		return s.State.Commit(ctx, state.Swap(state.Automated(i.ResourceID), held.Revision, a), state.Unchanged(r.Key, r.Revision))
	})
	if err != nil {
		return nil, err
	}
	return instanceOut(c.Scope, shown), nil
}

// source is the instance of any region that an ARN names.
func source(l *database.Sight, scope spec.Scope, arn string) (state.Record[spec.Instance], error) {
	if !look.IsARN(arn) {
		return state.Record[spec.Instance]{}, look.OrBlank(arn, "SourceDBInstanceArn",
			wire.NewError(api.ErrInvalidParameterValue, "Invalid SourceDBInstanceArn: %s is no ARN of a DB instance.", arn))
	}
	return l.FindSource(scope, arn)
}
