package automated

import (
	"context"
	"strings"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/page"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/rds/restore"
	"howdah/internal/aws/wire"
	"howdah/internal/identity/kms"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

type service struct{ *database.Source }

// Actions are those on automated backups.
func Actions(from *database.Source) map[string]front.Action {
	s := &service{from}
	return map[string]front.Action{
		"DeleteDBClusterAutomatedBackup":             front.On(s.deleteDBClusterAutomatedBackup),
		"DeleteDBInstanceAutomatedBackup":            front.On(s.deleteDBInstanceAutomatedBackup),
		"DescribeDBClusterAutomatedBackups":          front.On(s.describeDBClusterAutomatedBackups),
		"DescribeDBInstanceAutomatedBackups":         front.On(s.describeDBInstanceAutomatedBackups),
		"StartDBInstanceAutomatedBackupsReplication": front.On(s.startReplication),
		"StopDBInstanceAutomatedBackupsReplication":  front.On(s.stopReplication),
	}
}

// describeDBInstanceAutomatedBackups lists the automated backups of instances.
func (s *service) describeDBInstanceAutomatedBackups(ctx context.Context, c front.Call, in *rds.DescribeDBInstanceAutomatedBackupsMessage) (*rds.DBInstanceAutomatedBackupMessage, error) {
	filters, err := look.ReadFilters(in.Filters, "status", "db-instance-id", "dbi-resource-id")
	if err != nil {
		return nil, err
	}
	wanted := func(h Held) bool {
		of := h.common()
		return (in.DBInstanceIdentifier == nil || wire.Lower(in.DBInstanceIdentifier) == of.Name) && filters.Match(map[string][]string{
			"status": {h.status()}, "db-instance-id": {of.Name, of.ARN("db", of.Name)}, "dbi-resource-id": {of.ResourceID},
		})
	}
	found, marker, err := s.describe(ctx, c, Instance, in.DbiResourceId, in.DBInstanceAutomatedBackupsArn, wanted, in.MaxRecords, in.Marker)
	if err != nil {
		return nil, err
	}
	out := &rds.DBInstanceAutomatedBackupMessage{Marker: marker, DBInstanceAutomatedBackups: []rds.DBInstanceAutomatedBackup{}}
	for _, h := range found {
		out.DBInstanceAutomatedBackups = append(out.DBInstanceAutomatedBackups, *instanceOut(c.Scope, h))
	}
	return out, nil
}

// describeDBClusterAutomatedBackups lists the automated backups of clusters.
func (s *service) describeDBClusterAutomatedBackups(ctx context.Context, c front.Call, in *rds.DescribeDBClusterAutomatedBackupsMessage) (*rds.DBClusterAutomatedBackupMessage, error) {
	filters, err := look.ReadFilters(in.Filters, "status", "db-cluster-id", "db-cluster-resource-id")
	if err != nil {
		return nil, err
	}
	wanted := func(h Held) bool {
		of := h.common()
		return (in.DBClusterIdentifier == nil || wire.Lower(in.DBClusterIdentifier) == of.Name) && filters.Match(map[string][]string{
			"status": {h.status()}, "db-cluster-id": {of.Name, of.ARN("cluster", of.Name)}, "db-cluster-resource-id": {of.ResourceID},
		})
	}
	found, marker, err := s.describe(ctx, c, Cluster, in.DbClusterResourceId, nil, wanted, in.MaxRecords, in.Marker)
	if err != nil {
		return nil, err
	}
	out := &rds.DBClusterAutomatedBackupMessage{Marker: marker, DBClusterAutomatedBackups: []rds.DBClusterAutomatedBackup{}}
	for _, h := range found {
		out.DBClusterAutomatedBackups = append(out.DBClusterAutomatedBackups, *clusterOut(s.Looks, h))
	}
	return out, nil
}

func (s *service) describe(ctx context.Context, c front.Call, k *Kind, resource, arn *string, wanted func(Held) bool, size *int32, marker *string) ([]Held, *string, error) {
	if err := s.State.Fresh(ctx); err != nil {
		return nil, nil, err
	}
	l := s.Of(c.Account)
	all := k.held(l.Look, c.Scope)
	if resource != nil || arn != nil {
		h, err := k.asked(l.Look, c.Scope, resource, arn)
		if err != nil {
			return nil, nil, err
		}
		all = []Held{h}
	}
	return page.OfSome(all, Held.key, wanted, size, marker)
}

// asked is what is held of a database, by its resource id or by the ARN of its backups.
func (k *Kind) asked(l *look.Look, scope spec.Scope, resource, arn *string) (Held, error) {
	switch {
	case resource != nil && strings.TrimSpace(*resource) == "":
		return Held{}, front.Blank(k.resource)
	case resource != nil:
		return k.find(l, scope, *resource)
	case strings.TrimSpace(*arn) == "":
		return Held{}, front.Blank("DBInstanceAutomatedBackupsArn")
	}
	database, ok := k.database(scope, *arn)
	if !ok {
		return Held{}, wire.NewError(k.notFound, "No automated backup is found: %s.", *arn)
	}
	return k.find(l, scope, database)
}

// deleteDBInstanceAutomatedBackup deletes the automated backups of an instance that is gone.
func (s *service) deleteDBInstanceAutomatedBackup(ctx context.Context, c front.Call, in *rds.DeleteDBInstanceAutomatedBackupMessage) (*rds.DeleteDBInstanceAutomatedBackupResult, error) {
	if (in.DbiResourceId == nil) == (in.DBInstanceAutomatedBackupsArn == nil) {
		return nil, wire.NewError(api.ErrInvalidParameterCombination, "Exactly one of DbiResourceId and DBInstanceAutomatedBackupsArn must be given.")
	}
	gone, err := s.remove(ctx, c, Instance, in.DbiResourceId, in.DBInstanceAutomatedBackupsArn)
	if err != nil {
		return nil, err
	}
	out := instanceOut(c.Scope, gone)
	out.Status = wire.Some("deleting")
	return &rds.DeleteDBInstanceAutomatedBackupResult{DBInstanceAutomatedBackup: out}, nil
}

// deleteDBClusterAutomatedBackup deletes the automated backups of a cluster that is gone.
func (s *service) deleteDBClusterAutomatedBackup(ctx context.Context, c front.Call, in *rds.DeleteDBClusterAutomatedBackupMessage) (*rds.DeleteDBClusterAutomatedBackupResult, error) {
	gone, err := s.remove(ctx, c, Cluster, in.DbClusterResourceId, nil)
	if err != nil {
		return nil, err
	}
	out := clusterOut(s.Looks, gone)
	out.Status = wire.Some("deleting")
	return &rds.DeleteDBClusterAutomatedBackupResult{DBClusterAutomatedBackup: out}, nil
}

// remove removes the record. Package control/backup removes what nobody needs in the repository then.
func (s *service) remove(ctx context.Context, c front.Call, k *Kind, resource, arn *string) (gone Held, err error) {
	err = s.State.Retry(ctx, func() error {
		if gone, err = k.asked(s.Of(c.Account).Look, c.Scope, resource, arn); err != nil {
			return err
		}
		if gone.Kept == nil || gone.CopyOf {
			return wire.NewError(k.badState, "The automated backups of %s are %s: they go when it is deleted with DeleteAutomatedBackups, or its BackupRetentionPeriod becomes 0.", gone.common().Name, gone.status())
		}
		return s.State.Commit(ctx, state.Remove(gone.Kept.Key, gone.Kept.Revision))
	})
	return gone, err
}

func windowOut(w restore.Window) *rds.RestoreWindow {
	if w.Until.IsZero() {
		return nil
	}
	return &rds.RestoreWindow{EarliestTime: wire.Moment(w.From), LatestTime: wire.Moment(w.Until)}
}

// vpc is the one network that a home has.
const vpc = "vpc-howdah"

// instanceOut is what is held of an instance, as the API shows it in a scope.
func instanceOut(scope spec.Scope, h Held) *rds.DBInstanceAutomatedBackup {
	i := h.Instance
	out := &rds.DBInstanceAutomatedBackup{
		DBInstanceArn: wire.Some(i.ARN("db", i.Name)), DbiResourceId: wire.Some(i.ResourceID), Region: wire.Some(i.Region), DBInstanceIdentifier: wire.Some(i.Name),
		RestoreWindow: windowOut(h.Window), AllocatedStorage: wire.Number(i.Storage), Status: wire.Some(h.status()), Port: wire.Number(i.Port),
		AvailabilityZone: wire.Text(i.ZoneName(i.Zone)), VpcId: wire.Some(vpc), InstanceCreateTime: wire.Moment(i.Created), MasterUsername: wire.Some(i.MasterUser),
		Engine: wire.Some(i.Engine), EngineVersion: wire.Some(i.Version), LicenseModel: wire.Some(i.License), Iops: wire.Amount(i.IOPS),
		StorageThroughput: wire.Amount(i.Throughput), OptionGroupName: wire.Some(i.OptionGroup), Encrypted: wire.Some(i.StorageKey != ""),
		StorageType: wire.Some(i.StorageType), IAMDatabaseAuthenticationEnabled: wire.Some(i.IAMAuth), BackupRetentionPeriod: wire.Number(h.days()),
		PreferredBackupWindow: wire.Some(i.BackupWindow), DBInstanceAutomatedBackupsArn: wire.Some(Instance.ARNOf(scope, i.ResourceID)),
		BackupTarget: wire.Some("region"), TagList: look.TagsOut(i.Tags), DedicatedLogVolume: wire.Some(false),
		DBInstanceAutomatedBackupsReplications: []rds.DBInstanceAutomatedBackupsReplication{},
	}
	if i.StorageKey != "" {
		out.KmsKeyId = wire.Some(kms.ARN(scope, i.StorageKey))
	}
	if h.Away != "" {
		there := spec.Scope{Account: i.Account, Region: h.Away}
		out.DBInstanceAutomatedBackupsReplications = append(out.DBInstanceAutomatedBackupsReplications, rds.DBInstanceAutomatedBackupsReplication{
			DBInstanceAutomatedBackupsArn: wire.Some(Instance.ARNOf(there, i.ResourceID)),
		})
	}
	return out
}

// clusterOut is what is held of a cluster, as the API shows it.
func clusterOut(l *look.Source, h Held) *rds.DBClusterAutomatedBackup {
	c := h.Cluster
	out := &rds.DBClusterAutomatedBackup{
		Engine: wire.Some(c.Engine), VpcId: wire.Some(vpc), DBClusterAutomatedBackupsArn: wire.Some(Cluster.ARNOf(c.Scope, c.ResourceID)),
		DBClusterIdentifier: wire.Some(c.Name), RestoreWindow: windowOut(h.Window), MasterUsername: wire.Some(c.MasterUser), DbClusterResourceId: wire.Some(c.ResourceID),
		Region: wire.Some(c.Region), LicenseModel: wire.Some(look.License), Status: wire.Some(h.status()), IAMDatabaseAuthenticationEnabled: wire.Some(c.IAMAuth),
		ClusterCreateTime: wire.Moment(c.Created), StorageEncrypted: wire.Some(c.StorageKey != ""), AllocatedStorage: wire.Number(max(c.Storage, 1)),
		EngineVersion: wire.Some(c.Version), DBClusterArn: wire.Some(c.ARN("cluster", c.Name)), BackupRetentionPeriod: wire.Number(h.days()),
		PreferredBackupWindow: wire.Some(c.BackupWindow), EngineMode: wire.Some("provisioned"), AvailabilityZones: l.ZonesOf(*c), Port: wire.Number(c.Port),
		StorageType: wire.Text(c.StorageType), Iops: wire.Amount(c.IOPS), TagList: look.TagsOut(c.Tags),
	}
	if c.StorageKey != "" {
		out.KmsKeyId = wire.Some(kms.ARN(c.Scope, c.StorageKey))
	}
	return out
}

// days is the retention period.
func (h Held) days() int {
	if h.Kept != nil {
		return h.Kept.Value.Retention
	}
	return h.common().BackupRetention
}
