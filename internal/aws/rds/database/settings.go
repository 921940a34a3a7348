package database

import (
	"slices"
	"strings"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/rds/group"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/rds/option"
	"howdah/internal/aws/wire"
	"howdah/internal/model/event"
	"howdah/internal/model/spec"
)

// logTypes are those that RDS has for PostgreSQL.
var logTypes = []string{"postgresql", "upgrade", "iam-db-auth-error", "instance"}

// checkLogTypes checks the types of logs that shall be sent no more.
func checkLogTypes(types []string) error {
	for _, t := range types {
		if !slices.Contains(logTypes, t) {
			return wire.NewError(api.ErrInvalidParameterCombination, "You cannot use the log types '%s': DisableLogTypes takes %s.", t, strings.Join(logTypes, ", "))
		}
	}
	return nil
}

// Settings are the parameters that instances and clusters have alike, and that
// are changed at once. Nil means not given.
type Settings struct {
	ParameterGroup, BackupWindow, MaintenanceWindow, MonitoringRole *string
	Network, Version, SubnetGroup, OptionGroup                      *string
	Monitoring                                                      *int32
	DeletionProtection, CopyTags, Insights                          *bool
	SecurityGroups                                                  []string
	Logs                                                            *rds.CloudwatchLogsExportConfiguration
	NoGroup                                                         string // code
}

// Apply changes a record, and checks what came out.
func (in Settings) Apply(m *Modification, c *spec.Common) error {
	if in.ParameterGroup != nil && *in.ParameterGroup != c.ParameterGroup {
		m.Began = append(m.Began, look.Event(map[event.SourceType]string{event.Instance: "0011", event.Cluster: "H008"}[m.Kind], *in.ParameterGroup))
		if err := m.switchGroup(c, *in.ParameterGroup, in.NoGroup); err != nil {
			return err
		}
		if m.Kind == event.Instance {
			m.Began = append(m.Began, look.Event("0092"))
		}
	}
	wire.Set(&c.BackupWindow, in.BackupWindow)
	wire.Set(&c.MaintenanceWindow, in.MaintenanceWindow)
	wire.Set(&c.MonitoringRole, in.MonitoringRole)
	wire.Set(&c.MonitoringInterval, Ints(in.Monitoring))
	if c.MonitoringInterval == 0 && in.MonitoringRole == nil {
		c.MonitoringRole = ""
	}
	wire.Set(&c.NetworkType, in.Network)
	wire.Set(&c.SubnetGroup, in.SubnetGroup)
	wire.Set(&c.DeletionProtection, in.DeletionProtection)
	wire.Set(&c.CopyTagsToSnapshot, in.CopyTags)
	wire.Set(&c.PerformanceInsights, in.Insights)
	if len(in.SecurityGroups) > 0 {
		c.SecurityGroups = in.SecurityGroups
	}
	if in.Logs != nil {
		if err := checkLogTypes(in.Logs.DisableLogTypes); err != nil {
			return err
		}
		c.LogExports = slices.DeleteFunc(slices.Clone(c.LogExports), func(t string) bool { return slices.Contains(in.Logs.DisableLogTypes, t) })
	}
	if err := look.First(SameVersion(*c, in.Version), m.Check(c, in.NoGroup)); err != nil {
		return err
	}
	return m.groups(c, in)
}

// groups checks the option group that is asked for, which the caller sets: it is no
// part of what instances and clusters share. Groups that become used are held.
func (m *Modification) groups(c *spec.Common, in Settings) error {
	subnets, options := "", ""
	if in.SubnetGroup != nil {
		subnets = c.SubnetGroup
	}
	if in.OptionGroup != nil {
		if err := option.Check(m.Look, in.OptionGroup, *c); err != nil {
			return err
		}
		options = *in.OptionGroup
	}
	m.Ops = append(m.Ops, m.HoldGroups(c.Scope, subnets, options)...)
	if len(in.SecurityGroups) > 0 {
		m.Ops = append(m.Ops, m.HoldSecurityGroups(*c)...)
	}
	return nil
}

// switchGroup assigns another parameter group. Its dynamic parameters take effect
// with the next reboot, as on RDS; until then the old group is in force.
func (m *Modification) switchGroup(c *spec.Common, name, noGroup string) error {
	if c.Taken.Group == "" {
		c.Taken.Group = c.ParameterGroup
	}
	c.ParameterGroup = name
	if err := group.Check(m.Look, c, noGroup); err != nil {
		return err
	}
	m.Ops = append(m.Ops, group.Use(m.Look, group.KindOf(noGroup), *c)...)
	return nil
}
