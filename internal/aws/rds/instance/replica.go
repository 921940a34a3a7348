package instance

import (
	"context"
	"strings"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/group"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/model/event"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// createDBInstanceReadReplica makes a database of its own that follows another
// one: an instance, a replica, or a cluster, also in another region.
func (s *service) createDBInstanceReadReplica(ctx context.Context, c front.Call, in *rds.CreateDBInstanceReadReplicaMessage) (*rds.CreateDBInstanceReadReplicaResult, error) {
	if err := replicaNotAvailable(in); err != nil {
		return nil, err
	}
	made, err := s.create(ctx, c, func(l *database.Sight) (spec.Instance, []state.Op, error) { return newReplica(l, c, in) })
	if err != nil {
		return nil, err
	}
	return &rds.CreateDBInstanceReadReplicaResult{DBInstance: made}, nil
}

// newReplica is the record that a request asks for. The source's is written too.
func newReplica(l *database.Sight, c front.Call, in *rds.CreateDBInstanceReadReplicaMessage) (spec.Instance, []state.Op, error) {
	from, err := sourceOf(l, c, in)
	if err != nil {
		return spec.Instance{}, nil, err
	}
	i, err := replicaRecord(l, c, from, in)
	if err != nil {
		return i, nil, err
	}
	ops, err := l.EncryptReplica(c, &i.Common, from.Common, in.KmsKeyId)
	if err != nil {
		return i, nil, err
	}
	return i, append(ops, from.touch), l.CanPlace(i.Common, plan.ForInstance(i, l.Links(i)))
}

func replicaNotAvailable(in *rds.CreateDBInstanceReadReplicaMessage) error {
	return look.First(look.RefuseAsked(map[string]bool{
		"Domain": in.Domain != nil, "DomainFqdn": in.DomainFqdn != nil,
		"CustomIamInstanceProfile": in.CustomIamInstanceProfile != nil,
		"ReplicaMode":              in.ReplicaMode != nil,
		"AdditionalStorageVolumes": len(in.AdditionalStorageVolumes) > 0,
		"DedicatedLogVolume":       wire.Or(in.DedicatedLogVolume, false),
		"ProcessorFeatures":        len(in.ProcessorFeatures) > 0,
		"EnableCustomerOwnedIp":    wire.Or(in.EnableCustomerOwnedIp, false),
		"DomainIAMRoleName":        in.DomainIAMRoleName != nil, "DomainOu": in.DomainOu != nil, "DomainAuthSecretArn": in.DomainAuthSecretArn != nil, "DomainDnsIps": len(in.DomainDnsIps) > 0,
		"TagSpecifications": len(in.TagSpecifications) > 0, "BackupTarget": wire.Or(in.BackupTarget, "region") != "region",
		"DBCapacityReservationIdentifier": in.DBCapacityReservationIdentifier != nil,
	}), database.CheckKept(in.PerformanceInsightsRetentionPeriod, nil))
}

// source is the database that a new replica follows.
type source struct {
	spec.Common
	class  string
	disk   spec.Storage
	memory int64 // that its shared settings are made for
	auto   bool
	// touch writes the source's record, so that it cannot be deleted meanwhile.
	touch state.Op
}

// sourceOf finds what to follow, and checks that it can be followed.
func sourceOf(l *database.Sight, c front.Call, in *rds.CreateDBInstanceReadReplicaMessage) (source, error) {
	switch {
	case (in.SourceDBInstanceIdentifier == nil) == (in.SourceDBClusterIdentifier == nil):
		return source{}, wire.NewError(api.ErrInvalidParameterCombination,
			"Exactly one of SourceDBInstanceIdentifier and SourceDBClusterIdentifier must be given.")
	case in.SourceDBClusterIdentifier != nil:
		return sourceCluster(l, c, *in.SourceDBClusterIdentifier)
	}
	r, err := l.FindSource(c.Scope, *in.SourceDBInstanceIdentifier)
	if strings.TrimSpace(*in.SourceDBInstanceIdentifier) == "" {
		return source{}, front.Blank("SourceDBInstanceIdentifier")
	}
	if err != nil {
		return source{}, err
	}
	i := r.Value
	if i.Cluster != "" {
		return source{}, wire.NewError(api.ErrInvalidParameterCombination,
			"The DB instance %s is a member of a DB cluster: give SourceDBClusterIdentifier.", i.Name)
	}
	if status := l.Status(i); status != plan.Available {
		return source{}, wire.NewError(rds.ErrInvalidDBInstanceState, "DB instance %s is not in the available state: it is %s.", i.Name, status)
	}
	i.Generation++
	return source{
		Common: i.Common, class: i.Class, disk: i.Disk(), memory: l.SharedMemory(i.ResourceID), auto: i.AutoMinor,
		touch: state.Swap(r.Key, r.Revision, i),
	}, look.First(l.Excluded(operation.Change, i.ResourceID, rds.ErrInvalidDBInstanceState), followable(l, i.Common))
}

func sourceCluster(l *database.Sight, c front.Call, identifier string) (source, error) {
	r, err := l.FindCluster(c.Scope, identifier)
	if err != nil {
		return source{}, err
	}
	cluster := r.Value
	if status := l.ClusterStatus(cluster); status != plan.Available || len(l.Members[cluster.ResourceID]) == 0 {
		return source{}, look.ClusterState(cluster, status, plan.Available+" with a DB instance")
	}
	from := source{
		Common: cluster.Common, class: cluster.Class, disk: cluster.Disk(), memory: cluster.SharedMemory, auto: cluster.AutoMinor,
	}
	if from.class == "" {
		from.class = l.InstancesOf(cluster.ResourceID)[0].Class
	}
	cluster.Generation++
	from.touch = state.Swap(r.Key, r.Revision, cluster)
	return from, followable(l, cluster.Common)
}

func followable(l *database.Sight, c spec.Common) error {
	if len(l.Followers[c.ResourceID]) >= look.MaxFollowers {
		return wire.NewError(rds.ErrInstanceQuotaExceeded, "%s has %d read replicas already.", c.Name, look.MaxFollowers)
	}
	return nil
}

// replicaRecord takes from the source what is not given. Backups are off, as on
// RDS, and the master user is the source's.
func replicaRecord(l *database.Sight, c front.Call, from source, in *rds.CreateDBInstanceReadReplicaMessage) (spec.Instance, error) {
	i := spec.Instance{
		Common: spec.Common{
			Scope: c.Scope, Name: wire.Lower(in.DBInstanceIdentifier), ResourceID: look.NewResourceID("db-"), Created: c.Now, Generation: 1,
			Engine: spec.Postgres, Version: from.Version, Major: from.Major, Port: int(wire.Or(in.Port, int32(from.Port))),
			MasterUser: from.MasterUser, Verifier: from.Verifier, PasswordSerial: from.PasswordSerial, DBName: from.DBName,
			SubnetGroup:    wire.Or(in.DBSubnetGroupName, look.DefaultSubnetGroup),
			SecurityGroups: in.VpcSecurityGroupIds, DeletionProtection: wire.Or(in.DeletionProtection, false),
			CopyTagsToSnapshot: wire.Or(in.CopyTagsToSnapshot, false), IAMAuth: wire.Or(in.EnableIAMDatabaseAuthentication, false),
			MonitoringInterval: int(wire.Or(in.MonitoringInterval, 0)), MonitoringRole: wire.Or(in.MonitoringRoleArn, ""),
			CACertificate: wire.Or(in.CACertificateIdentifier, l.Authorities.Default(c.Scope)),
			NetworkType:   wire.Or(in.NetworkType, "IPV4"), Tags: look.TagsIn(in.Tags),
		},
		Class: wire.Or(in.DBInstanceClass, from.class), MaxStorage: int(wire.Or(in.MaxAllocatedStorage, 0)), MultiAZ: wire.Or(in.MultiAZ, false),
		License: look.License, AutoMinor: wire.Or(in.AutoMinorVersionUpgrade, from.auto), Public: wire.Or(in.PubliclyAccessible, false),
		Tier: 1, Source: from.ResourceID,
	}
	i.BackupWindow, i.MaintenanceWindow = spec.FillWindows(i.ResourceID, "", "")
	i.ParameterGroup = wire.Or(in.DBParameterGroupName, group.Default(i.Common))
	i.OptionGroup = wire.Or(in.OptionGroupName, look.DefaultOptionGroup(i.Common))
	if err := replicaDisk(&i, from.disk, in); err != nil {
		return i, err
	}
	if class, _ := spec.LookupClass(i.Class); class.Memory < from.memory {
		i.SharedMemory = from.memory
	}
	return i, look.First(spec.CheckName("DBInstanceIdentifier", i.Name),
		l.Nameable("DBInstanceIdentifier", look.InstanceNames, i.Scope, i.Name), l.Check(&i.Common, rds.ErrDBParameterGroupNotFound),
		checkInstance(l, &i, in.AvailabilityZone))
}

// replicaDisk is as large as the source's, or larger.
func replicaDisk(i *spec.Instance, from spec.Storage, in *rds.CreateDBInstanceReadReplicaMessage) error {
	disk := from
	if disk.GiB == 0 {
		disk = spec.Storage{GiB: defaultReplicaStorage} // of a cluster whose storage has no size
	}
	disk = diskLike(disk, in.AllocatedStorage, in.Iops, in.StorageThroughput, in.StorageType)
	if disk.GiB < from.GiB {
		return wire.NewError(api.ErrInvalidParameterCombination, "The AllocatedStorage of a read replica must be at least that of its source, %d GiB.", from.GiB)
	}
	disk, err := spec.CheckStorage(disk)
	i.SetDisk(disk)
	return err
}

// diskLike is storage as another one, but for what is given. Another type forgets what belonged to
// the one before.
func diskLike(disk spec.Storage, size, iops, throughput *int32, kind *string) spec.Storage {
	if kind != nil && *kind != disk.Type {
		disk.Type, disk.IOPS, disk.MiBps = *kind, 0, 0
	}
	wire.Set(&disk.GiB, database.Ints(size))
	wire.Set(&disk.IOPS, database.Ints(iops))
	wire.Set(&disk.MiBps, database.Ints(throughput))
	return disk
}

// defaultReplicaStorage is for a replica of an Aurora cluster that names no size.
const defaultReplicaStorage = 100

// promoteReadReplica makes a replica a database of its own, at once and for good.
func (s *service) promoteReadReplica(ctx context.Context, c front.Call, in *rds.PromoteReadReplicaMessage) (*rds.PromoteReadReplicaResult, error) {
	if err := look.RefuseAsked(map[string]bool{"TagSpecifications": len(in.TagSpecifications) > 0}); err != nil {
		return nil, err
	}
	i, err := s.Change(ctx, c, in.DBInstanceIdentifier, func(l *database.Sight, i *spec.Instance) ([]state.Op, error) {
		return promote(l, c, i, in)
	})
	if err != nil {
		return nil, err
	}
	return &rds.PromoteReadReplicaResult{DBInstance: i}, nil
}

// promote checks the request, and changes the record.
func promote(l *database.Sight, c front.Call, i *spec.Instance, in *rds.PromoteReadReplicaMessage) ([]state.Op, error) {
	if err := mayPromote(l, *i); err != nil {
		return nil, err
	}
	wire.Set(&i.BackupWindow, in.PreferredBackupWindow)
	wire.Set(&i.BackupRetention, database.Ints(in.BackupRetentionPeriod))
	err := look.First(spec.CheckRetention(i.BackupRetention, 0), spec.CheckBackupWindow(i.BackupWindow), spec.CheckWindows(i.BackupWindow, i.MaintenanceWindow))
	if err != nil {
		return nil, err
	}
	l.Promote(i)
	return l.WarnBackups(c, event.Instance, i.Common, in.BackupRetentionPeriod)
}

func mayPromote(l *database.Sight, i spec.Instance) error {
	if !i.Follows() {
		return wire.NewError(rds.ErrInvalidDBInstanceState, "DB Instance is not a read replica")
	}
	return l.May(operation.Change, i, wire.NewError(rds.ErrInvalidDBInstanceState, "DB instance %s is not in the available state: it is %s.", i.Name, l.Status(i)),
		plan.Available)
}
