package server

import (
	"slices"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/identity/secret"
	"howdah/internal/model/event"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// modification is the change of a record in the making. Both the API and the
// maintenance window make one; what it gathers is committed in one transaction.
type modification struct {
	*sight
	front.Call
	kind event.SourceType

	began  []look.Told // events of what begins now
	done   []string    // events for when it is done
	words  []string    // statuses that its parts ask for
	before spec.Values // what it replaces
	// restarts: PostgreSQL is restarted for another reason than a new class.
	restarts bool
	ops      []state.Op    // on other records
	rotated  secret.Secret // with another password
	// owner is the cluster of an instance, once the modification changes it too. Take it
	// from clusterOf; putInstance writes it.
	owner *state.Record[spec.Cluster]
}

// clusterOf is the record of an instance's cluster, to be changed; nil: it has none.
func (m *modification) clusterOf(i spec.Instance) *spec.Cluster {
	if m.owner == nil {
		r, ok := m.ClusterRecord(i.Cluster)
		if !ok {
			return nil
		}
		r.Value.Generation++
		m.owner = &r
	}
	return &m.owner.Value
}

// work notes something that the planner carries out.
func (m *modification) work(status, began, done string) {
	m.words = append(m.words, status)
	if began != "" {
		m.began = append(m.began, look.Event(began))
	}
	if done != "" {
		m.done = append(m.done, done)
	}
}

// finish counts the modification, if it is one that has to be carried out.
func (m *modification) finish(c *spec.Common) {
	c.Generation++
	if len(m.words) > 0 {
		look.Begin(c, m.status(), &m.before, m.done...)
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
		m.began = append(m.began, look.Event("0028"))
	case c.BackupRetention == 0:
		m.began = append(m.began, look.Event("H004"))
	}
	c.BackupRetention = *days
}

// settings are the parameters that instances and clusters have alike, and that
// are changed at once. Nil means not given.
type settings struct {
	parameterGroup, backupWindow, maintenanceWindow, monitoringRole *string
	network, version, subnetGroup, optionGroup                      *string
	monitoring                                                      *int32
	deletionProtection, copyTags, insights                          *bool
	securityGroups                                                  []string
	logs                                                            *rds.CloudwatchLogsExportConfiguration
	noGroup                                                         string // code
}

// apply changes a record, and checks what came out.
func (in settings) apply(m *modification, c *spec.Common) error {
	if in.parameterGroup != nil && *in.parameterGroup != c.ParameterGroup {
		m.began = append(m.began, look.Event(map[event.SourceType]string{event.Instance: "0011", event.Cluster: "H008"}[m.kind], *in.parameterGroup))
		if err := m.switchGroup(c, *in.parameterGroup, in.noGroup); err != nil {
			return err
		}
		if m.kind == event.Instance {
			m.began = append(m.began, look.Event("0092"))
		}
	}
	wire.Set(&c.BackupWindow, in.backupWindow)
	wire.Set(&c.MaintenanceWindow, in.maintenanceWindow)
	wire.Set(&c.MonitoringRole, in.monitoringRole)
	wire.Set(&c.MonitoringInterval, ints(in.monitoring))
	if c.MonitoringInterval == 0 && in.monitoringRole == nil {
		c.MonitoringRole = ""
	}
	wire.Set(&c.NetworkType, in.network)
	wire.Set(&c.SubnetGroup, in.subnetGroup)
	wire.Set(&c.DeletionProtection, in.deletionProtection)
	wire.Set(&c.CopyTagsToSnapshot, in.copyTags)
	wire.Set(&c.PerformanceInsights, in.insights)
	if len(in.securityGroups) > 0 {
		c.SecurityGroups = in.securityGroups
	}
	if in.logs != nil {
		if err := checkLogTypes(in.logs.DisableLogTypes); err != nil {
			return err
		}
		c.LogExports = slices.DeleteFunc(slices.Clone(c.LogExports), func(t string) bool { return slices.Contains(in.logs.DisableLogTypes, t) })
	}
	if err := look.First(sameVersion(*c, in.version), m.checkCommon(c, in.noGroup)); err != nil {
		return err
	}
	return m.groups(c, in)
}

// groups checks the option group that is asked for, which the caller sets: it is no
// part of what instances and clusters share. Groups that become used are held.
func (m *modification) groups(c *spec.Common, in settings) error {
	subnets, options := "", ""
	if in.subnetGroup != nil {
		subnets = c.SubnetGroup
	}
	if in.optionGroup != nil {
		if err := m.checkOptionGroup(in.optionGroup, *c); err != nil {
			return err
		}
		options = *in.optionGroup
	}
	m.ops = append(m.ops, m.HoldGroups(c.Scope, subnets, options)...)
	if len(in.securityGroups) > 0 {
		m.ops = append(m.ops, m.holdSecurityGroups(*c)...)
	}
	return nil
}

// switchGroup assigns another parameter group. Its dynamic parameters take effect
// with the next reboot, as on RDS; until then the old group is in force.
func (m *modification) switchGroup(c *spec.Common, name, noGroup string) error {
	if c.Taken.Group == "" {
		c.Taken.Group = c.ParameterGroup
	}
	c.ParameterGroup = name
	if err := m.checkGroup(c, noGroup); err != nil {
		return err
	}
	m.ops = append(m.ops, m.useGroup(groupKindOf(noGroup), *c)...)
	return nil
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
	if wanted.CACertificate != "" {
		v.CACertificate, v.RotationRestart = wanted.CACertificate, wanted.RotationRestart
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
	if v.CACertificate == have.CACertificate {
		v.CACertificate, v.RotationRestart = "", false
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
	wire.Set(&disk.GiB, ints(size))
	wire.Set(&disk.IOPS, ints(iops))
	wire.Set(&disk.MiBps, ints(throughput))
	switch {
	case disk.GiB < have.GiB:
		return nil, wire.NewError(api.ErrInvalidParameterCombination, "Invalid storage size for engine name postgres and storage type %s: %d. AllocatedStorage can only grow.", disk.Type, disk.GiB)
	case have.IOPS > 0 && disk.IOPS > 0 && (size == nil) != (iops == nil) && (disk.GiB != have.GiB || disk.IOPS != have.IOPS):
		return nil, wire.NewError(api.ErrInvalidParameterCombination,
			"You must specify both the storage size and iops when modifying the storage size or iops on a DB instance that has iops.")
	case disk.GiB > have.GiB:
		disk.GiB = max(disk.GiB, (have.GiB*11+9)/10)
	}
	disk, err := spec.CheckStorage(disk)
	return &disk, err
}

// ints is an optional number as records keep it.
func ints(p *int32) *int {
	if p == nil {
		return nil
	}
	return wire.Some(int(*p))
}
