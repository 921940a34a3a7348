package server

import (
	"slices"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/event"
	"howdah/internal/plan"
	"howdah/internal/spec"
	"howdah/internal/state"
	"howdah/internal/wire"
)

// modification is the change of a record in the making. Both the API and the
// maintenance window make one; what it gathers is committed in one transaction.
type modification struct {
	*look
	call
	kind event.SourceType

	began  []told      // events of what begins now
	done   []string    // events for when it is done
	words  []string    // statuses that its parts ask for
	before spec.Values // what it replaces
	ops    []state.Op  // on other records
}

// work notes something that the planner carries out.
func (m *modification) work(status, began, done string) {
	m.words = append(m.words, status)
	if began != "" {
		m.began = append(m.began, told{began, nil})
	}
	if done != "" {
		m.done = append(m.done, done)
	}
}

// finish counts the modification, if it is one that has to be carried out.
func (m *modification) finish(c *spec.Common) {
	c.Generation++
	if len(m.words) > 0 {
		begin(c, m.status(), &m.before, m.done...)
	}
}

// status is the word of the only part, or "modifying" of several.
func (m *modification) status() string {
	words := slices.Compact(slices.Sorted(slices.Values(m.words)))
	if len(words) == 1 {
		return words[0]
	}
	return plan.Modifying
}

// Words of parts of a modification.
const (
	renaming  = "renaming"
	resetting = "resetting-master-credentials"
)

// password sets a new one. It never waits for the window, as on RDS.
func (m *modification) password(c *spec.Common, password *string) error {
	if password == nil {
		return nil
	}
	m.before.Password = true
	m.work(resetting, "", "0016")
	return setPassword(c, *password)
}

// port moves the endpoint. It never waits for the window, as on RDS.
func (m *modification) port(c *spec.Common, port *int32) error {
	if port == nil || int(*port) == c.Port {
		return nil
	}
	m.before.Port = c.Port
	m.work(plan.Modifying, "", "")
	c.Port = int(*port)
	return spec.CheckPort(c.Port)
}

// retention changes the days of backups.
func (m *modification) retention(c *spec.Common, days *int) {
	if days == nil || *days == c.BackupRetention {
		return
	}
	switch {
	case *days == 0:
		m.began = append(m.began, told{"0028", nil})
	case c.BackupRetention == 0:
		m.began = append(m.began, told{"H004", nil})
	}
	c.BackupRetention = *days
}

// settings are the parameters that instances and clusters have alike, and that
// are changed at once. Nil means not given.
type settings struct {
	parameterGroup, backupWindow, maintenanceWindow, monitoringRole *string
	network, certificate, version, subnetGroup, optionGroup         *string
	monitoring                                                      *int32
	deletionProtection, copyTags, insights                          *bool
	securityGroups                                                  []string
	logs                                                            *rds.CloudwatchLogsExportConfiguration
	noGroup                                                         string // code
}

// apply changes a record, and checks what came out.
func (in settings) apply(m *modification, c *spec.Common) error {
	if in.parameterGroup != nil && *in.parameterGroup != c.ParameterGroup {
		m.began = append(m.began, told{"0011", []any{*in.parameterGroup}})
		c.ParameterGroup = *in.parameterGroup
	}
	set(&c.BackupWindow, in.backupWindow)
	set(&c.MaintenanceWindow, in.maintenanceWindow)
	set(&c.MonitoringRole, in.monitoringRole)
	set(&c.MonitoringInterval, ints(in.monitoring))
	if c.MonitoringInterval == 0 && in.monitoringRole == nil {
		c.MonitoringRole = ""
	}
	set(&c.NetworkType, in.network)
	set(&c.CACertificate, in.certificate)
	set(&c.SubnetGroup, in.subnetGroup)
	set(&c.DeletionProtection, in.deletionProtection)
	set(&c.CopyTagsToSnapshot, in.copyTags)
	set(&c.PerformanceInsights, in.insights)
	if in.securityGroups != nil {
		c.SecurityGroups = in.securityGroups
	}
	if in.logs != nil {
		kept := slices.DeleteFunc(slices.Clone(c.LogExports), func(t string) bool { return slices.Contains(in.logs.DisableLogTypes, t) })
		c.LogExports = slices.Compact(slices.Sorted(slices.Values(append(kept, in.logs.EnableLogTypes...))))
	}
	if in.optionGroup != nil {
		if err := checkOptionGroup(*in.optionGroup, *c); err != nil {
			return err
		}
	}
	return first(sameVersion(*c, in.version), checkCommon(c, in.noGroup))
}

// merge puts newly wanted values over those that wait already.
func merge(waiting *spec.Values, wanted spec.Values) spec.Values {
	v := spec.Values{}
	if waiting != nil {
		v = *waiting
	}
	if wanted.Class != "" {
		v.Class = wanted.Class
	}
	if wanted.Name != "" {
		v.Name = wanted.Name
	}
	if wanted.Disk != nil {
		v.Disk = wanted.Disk
	}
	if wanted.MultiAZ != nil {
		v.MultiAZ = wanted.MultiAZ
	}
	if wanted.BackupRetention != nil {
		v.BackupRetention = wanted.BackupRetention
	}
	if wanted.IAMAuth != nil {
		v.IAMAuth = wanted.IAMAuth
	}
	return v
}

// differing drops the values that a record has already: asking for them again
// takes a waiting change back.
func differing(v, have spec.Values) spec.Values {
	if v.Class == have.Class {
		v.Class = ""
	}
	if v.Name == have.Name {
		v.Name = ""
	}
	if v.Disk != nil && have.Disk != nil && *v.Disk == *have.Disk {
		v.Disk = nil
	}
	v.MultiAZ = unlessSame(v.MultiAZ, have.MultiAZ)
	v.BackupRetention = unlessSame(v.BackupRetention, have.BackupRetention)
	v.IAMAuth = unlessSame(v.IAMAuth, have.IAMAuth)
	return v
}

func unlessSame[T comparable](v, have *T) *T {
	if v != nil && have != nil && *v == *have {
		return nil
	}
	return v
}

// orNil is nil for no values.
func orNil(v spec.Values) *spec.Values {
	if v == (spec.Values{}) {
		return nil
	}
	return &v
}

// wantedDisk is the storage that a modification asks for: it can only grow, and by
// a tenth at least.
func wantedDisk(have spec.Storage, size, iops, throughput *int32, kind *string) (*spec.Storage, error) {
	if size == nil && iops == nil && throughput == nil && kind == nil {
		return nil, nil
	}
	disk := have
	if kind != nil && *kind != have.Type {
		disk.Type, disk.IOPS, disk.MiBps = *kind, 0, 0
	}
	set(&disk.GiB, ints(size))
	set(&disk.IOPS, ints(iops))
	set(&disk.MiBps, ints(throughput))
	switch {
	case disk.GiB < have.GiB:
		return nil, wire.NewError(api.ErrInvalidParameterCombination, "Invalid storage size for engine name postgres and storage type %s: %d", disk.Type, disk.GiB)
	case have.IOPS > 0 && disk.IOPS > 0 && (size == nil) != (iops == nil) && (disk.GiB != have.GiB || disk.IOPS != have.IOPS):
		return nil, wire.NewError(api.ErrInvalidParameterCombination,
			"You must specify both the storage size and iops when modifying the storage size or iops on a DB instance that has iops.")
	case disk.GiB > have.GiB:
		disk.GiB = max(disk.GiB, (have.GiB*11+9)/10)
	}
	disk, err := spec.CheckStorage(disk)
	return &disk, err
}
