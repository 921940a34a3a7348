package database

import (
	"howdah/internal/aws/rds/group"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/rds/subnet"
	"howdah/internal/model/param"
	"howdah/internal/model/spec"
)

// Complete resolves the version, fills in windows and groups, and checks
// what instances and clusters have alike. noGroup is the code for a parameter
// group that does not exist.
func (l *Sight) Complete(c *spec.Common, version, noGroup string) error {
	var err error
	if c.Version, c.Major, err = l.ResolveVersion(c.Engine, version); err != nil {
		return err
	}
	if c.ParameterGroup == "" {
		c.ParameterGroup = group.Default(*c)
	}
	c.BackupWindow, c.MaintenanceWindow = spec.FillWindows(c.ResourceID, c.BackupWindow, c.MaintenanceWindow)
	low := 0
	if group.KindOf(noGroup) == param.Cluster {
		low = 1 // clusters always have backups, on RDS
	}
	return look.First(l.Check(c, noGroup), spec.CheckDBName(c.DBName), spec.CheckRetention(c.BackupRetention, low))
}

// Check checks what can be given at creation and be changed later.
func (l *Sight) Check(c *spec.Common, noGroup string) error {
	window, err := spec.CheckMaintenanceWindow(c.MaintenanceWindow)
	if err != nil {
		return err
	}
	c.MaintenanceWindow = window
	if err := group.Check(l.Look, c, noGroup); err != nil {
		return err
	}
	return look.First(
		subnet.Check(l.Look, c.Scope, &c.SubnetGroup), spec.CheckBackupWindow(c.BackupWindow), spec.CheckWindows(c.BackupWindow, c.MaintenanceWindow),
		spec.CheckPort(c.Port), spec.CheckTags(c.Tags), l.checkSecurityGroups(c),
		checkMonitoring(c.MonitoringInterval, c.MonitoringRole), l.Authorities.Check(c.CACertificate), checkNetwork(c.NetworkType))
}
