package server

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/event"
	"howdah/internal/member"
	"howdah/internal/plan"
	"howdah/internal/scram"
	"howdah/internal/spec"
	"howdah/internal/state"
	"howdah/internal/wire"
)

const (
	defaultPort = 5432
	// caIdentifier names the home's authority in answers, in RDS's form.
	caIdentifier = "howdah-ca"
)

// createDBInstance makes an instance: a database of its own, or a member of a
// cluster. The answer says "creating"; reconcile does the rest.
func (s *Server) createDBInstance(ctx context.Context, c call, in *rds.CreateDBInstanceMessage) (*rds.CreateDBInstanceResult, error) {
	if err := notAvailable(in); err != nil {
		return nil, err
	}
	var made spec.Instance
	err := s.retry(ctx, func() error {
		i, err := s.newInstance(c, in)
		if err != nil {
			return err
		}
		if err := s.nameFree(c.Scope, i.Name); err != nil {
			return err
		}
		if err := s.canPlace(plan.ForInstance(i, plan.Links{})); err != nil {
			return err
		}
		address, claim, err := s.claim(i.ResourceID)
		if err != nil {
			return err
		}
		i.Address, made = address, i
		ops := []state.Op{state.Swap(state.Instance(c.Account, c.Region, i.Name), 0, i), claim}
		ops, err = s.warnBackups(c, ops, event.Instance, i.Common)
		if err != nil {
			return err
		}
		return s.commit(ctx, ops...)
	})
	if err != nil {
		return nil, err
	}
	return &rds.CreateDBInstanceResult{DBInstance: s.instanceOut(made)}, nil
}

// notAvailable refuses what would be silently missing otherwise.
func notAvailable(in *rds.CreateDBInstanceMessage) error {
	asked := map[string]bool{
		"ManageMasterUserPassword": or(in.ManageMasterUserPassword, false),
		"Domain":                   in.Domain != nil, "DomainFqdn": in.DomainFqdn != nil,
		"TdeCredentialArn":         in.TdeCredentialArn != nil,
		"CustomIamInstanceProfile": in.CustomIamInstanceProfile != nil,
		"MultiTenant":              or(in.MultiTenant, false),
		"DBSystemId":               in.DBSystemId != nil,
		"Timezone":                 in.Timezone != nil,
		"CharacterSetName":         in.CharacterSetName != nil,
		"AdditionalStorageVolumes": len(in.AdditionalStorageVolumes) > 0,
	}
	return refuseAsked(asked)
}

func refuseAsked(asked map[string]bool) error {
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for n := range asked {
			if !yield(n) {
				return
			}
		}
	}) {
		if asked[name] {
			return wire.NewError(api.ErrInvalidParameterCombination, "The parameter %s is not available for this engine.", name)
		}
	}
	return nil
}

// newInstance is the record that a request asks for, with all defaults.
func (s *Server) newInstance(c call, in *rds.CreateDBInstanceMessage) (spec.Instance, error) {
	if engine := or(in.Engine, ""); engine != spec.Postgres {
		if engine == spec.Aurora {
			return spec.Instance{}, wire.NewError(api.ErrInvalidParameterCombination, "The engine %s requires the parameter DBClusterIdentifier.", engine)
		}
		return spec.Instance{}, wire.NewError(api.ErrInvalidParameterValue, "Invalid DB engine: %s", engine)
	}
	storage, err := spec.CheckStorage(spec.Storage{
		Type: or(in.StorageType, ""), GiB: int(or(in.AllocatedStorage, 0)), IOPS: int(or(in.Iops, 0)), MiBps: int(or(in.StorageThroughput, 0)),
	})
	if err != nil {
		return spec.Instance{}, err
	}
	if _, err := spec.CheckClass(or(in.DBInstanceClass, "")); err != nil {
		return spec.Instance{}, err
	}
	i := spec.Instance{
		Class: or(in.DBInstanceClass, ""), Storage: storage.GiB, StorageType: storage.Type, IOPS: storage.IOPS,
		Throughput: storage.MiBps, MaxStorage: int(or(in.MaxAllocatedStorage, 0)),
		MultiAZ: or(in.MultiAZ, false), License: "postgresql-license", AutoMinor: or(in.AutoMinorVersionUpgrade, true),
		Public: or(in.PubliclyAccessible, false), OptionGroup: or(in.OptionGroupName, ""), Tier: int(or(in.PromotionTier, 1)),
	}
	if i.Common, err = s.instanceCommon(c, in); err != nil {
		return spec.Instance{}, err
	}
	if i.OptionGroup == "" {
		i.OptionGroup = "default:postgres-" + strconv.Itoa(i.Major)
	}
	i.Zone, err = s.zoneIn(c.Scope, in.AvailabilityZone)
	if err != nil {
		return spec.Instance{}, err
	}
	if i.MultiAZ && i.Zone != "" {
		return spec.Instance{}, wire.NewError(api.ErrInvalidParameterCombination, "Requesting a specific availability zone is not valid for Multi-AZ instances.")
	}
	return i, spec.CheckTier(i.Tier)
}

// instanceCommon is the part of a new instance's record that clusters have too.
func (s *Server) instanceCommon(c call, in *rds.CreateDBInstanceMessage) (spec.Common, error) {
	version, major, err := s.resolveVersion(spec.Postgres, or(in.EngineVersion, ""))
	if err != nil {
		return spec.Common{}, err
	}
	common := spec.Common{
		Scope: c.Scope, Name: lower(in.DBInstanceIdentifier), ResourceID: newResourceID("db-"),
		Created: c.now, Generation: 1, Engine: spec.Postgres, Version: version, Major: major,
		Port: int(or(in.Port, defaultPort)), MasterUser: or(in.MasterUsername, ""), DBName: or(in.DBName, ""),
		ParameterGroup: or(in.DBParameterGroupName, ""), SubnetGroup: or(in.DBSubnetGroupName, "default"),
		SecurityGroups: in.VpcSecurityGroupIds, BackupRetention: int(or(in.BackupRetentionPeriod, 0)),
		BackupWindow: or(in.PreferredBackupWindow, ""), MaintenanceWindow: or(in.PreferredMaintenanceWindow, ""),
		DeletionProtection: or(in.DeletionProtection, false), CopyTagsToSnapshot: or(in.CopyTagsToSnapshot, false),
		IAMAuth: or(in.EnableIAMDatabaseAuthentication, false), Encrypted: or(in.StorageEncrypted, false), KMSKey: or(in.KmsKeyId, ""),
		LogExports: in.EnableCloudwatchLogsExports, MonitoringInterval: int(or(in.MonitoringInterval, 0)),
		MonitoringRole: or(in.MonitoringRoleArn, ""), PerformanceInsights: or(in.EnablePerformanceInsights, false),
		CACertificate: caIdentifier, NetworkType: or(in.NetworkType, "IPV4"), Tags: tagsIn(in.Tags),
	}
	if err := spec.CheckName("DBInstanceIdentifier", common.Name); err != nil {
		return spec.Common{}, err
	}
	if err := s.completeCommon(&common, "default.postgres"); err != nil {
		return spec.Common{}, err
	}
	return common, setMaster(&common, in.MasterUsername, in.MasterUserPassword)
}

// completeCommon fills in windows and groups and checks what both instances and
// clusters have. family is the prefix of the default parameter group's name.
func (s *Server) completeCommon(c *spec.Common, family string) error {
	backup, maintenance := spec.DefaultWindows(c.ResourceID)
	if c.BackupWindow == "" {
		c.BackupWindow = backup
	}
	if c.MaintenanceWindow == "" {
		c.MaintenanceWindow = maintenance
	}
	window, err := spec.CheckMaintenanceWindow(c.MaintenanceWindow)
	if err != nil {
		return err
	}
	c.MaintenanceWindow = window
	standard := family + strconv.Itoa(c.Major)
	if c.ParameterGroup == "" {
		c.ParameterGroup = standard
	}
	if c.ParameterGroup != standard {
		return wire.NewError(rds.ErrDBParameterGroupNotFound, "DBParameterGroup not found: %s", c.ParameterGroup)
	}
	if c.SubnetGroup != "default" {
		return wire.NewError(rds.ErrDBSubnetGroupNotFound, "DB subnet group %s does not exist.", c.SubnetGroup)
	}
	checks := []error{
		spec.CheckBackupWindow(c.BackupWindow), spec.CheckPort(c.Port), spec.CheckDBName(c.DBName),
		spec.CheckTags(c.Tags), spec.CheckRetention(c.BackupRetention, 0), checkSecurityGroups(c.SecurityGroups),
	}
	for _, err := range checks {
		if err != nil {
			return err
		}
	}
	return nil
}

// checkSecurityGroups: groups are only kept and shown in this version; the form
// of their ids is checked all the same.
func checkSecurityGroups(ids []string) error {
	for _, id := range ids {
		if !strings.HasPrefix(id, "sg-") {
			return wire.NewError(api.ErrInvalidParameterValue, "Invalid security group, groupId= %s, groupName=.", id)
		}
	}
	return nil
}

// setMaster checks the master user and keeps the verifier of the password, never
// the password.
func setMaster(c *spec.Common, name, password *string) error {
	if name == nil {
		return wire.NewError(api.ErrMissingParameter, "The parameter MasterUsername must be provided and must not be blank.")
	}
	if password == nil {
		return wire.NewError(api.ErrMissingParameter, "The parameter MasterUserPassword must be provided and must not be blank.")
	}
	if err := spec.CheckMasterUser(*name); err != nil {
		return err
	}
	if err := spec.CheckPassword(*password); err != nil {
		return err
	}
	verifier, err := scram.Verifier(*password)
	if err != nil {
		return err
	}
	c.Verifier, c.PasswordSerial = verifier, 1
	return nil
}

// resolveVersion finds the installed version that a text such as "15" or "15.18"
// asks for; "" asks for the newest.
func (s *Server) resolveVersion(engine, asked string) (full string, major int, err error) {
	installed := map[int]string{}
	for _, h := range state.LoadAll[member.Host](s.Cache, state.HostRoot) {
		for m, text := range h.Value.Majors {
			installed[m] = max(installed[m], text)
		}
	}
	for m, text := range installed {
		if (asked == "" && m > major) || asked == text || asked == strconv.Itoa(m) {
			full, major = text, m
		}
	}
	if major == 0 && len(installed) == 0 {
		return "", 0, wire.NewError(api.ErrServiceUnavailable, "No host has joined yet: see `howdah status`, and try again.")
	}
	if major == 0 {
		return "", 0, wire.NewError(api.ErrInvalidParameterCombination, "Cannot find version %s for %s", asked, engine)
	}
	return full, major, nil
}

// zoneIn checks an Availability Zone that was asked for.
func (s *Server) zoneIn(scope spec.Scope, name *string) (string, error) {
	if name == nil {
		return "", nil
	}
	zone, ok := scope.ParseZone(*name)
	for _, h := range state.LoadAll[member.Host](s.Cache, state.HostRoot) {
		if ok && h.Value.Zone == zone {
			return zone, nil
		}
	}
	return "", wire.NewError(api.ErrInvalidParameterValue, "Availability zone %s is not valid: no host is there.", *name)
}

// canPlace refuses what no host has room for.
func (s *Server) canPlace(want plan.Database) error {
	if err := plan.CanPlace(plan.Input{Now: s.now(), Want: want, Hosts: s.hosts(), Policy: s.Policy}); err != nil {
		return wire.NewError(rds.ErrInsufficientDBInstanceCapacity, "The requested DB instance cannot be placed: %s.", err)
	}
	return nil
}

// warnBackups adds an event where backups are asked for, which this version does
// not make: nobody may believe to have them.
func (s *Server) warnBackups(c call, ops []state.Op, kind event.SourceType, common spec.Common) ([]state.Op, error) {
	if common.BackupRetention == 0 {
		return ops, nil
	}
	e, err := event.Make(event.Source{Scope: c.Scope, Type: kind, Name: common.Name}, "H004", c.now)
	if err != nil {
		return nil, fmt.Errorf("raise event: %w", err)
	}
	return append(ops, event.Put(c.Scope, e, common.ResourceID)), nil
}
