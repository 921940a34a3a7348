package soak

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"howdah/api/ec2"
	"howdah/api/rds"
	"howdah/internal/testkit/pgversion"
	"howdah/test/soak/model"
)

// changes has modifications. Each acts at once.
var changes = map[string]func(context.Context, *Soak, deed) error{
	"class": modify(func(m model.Database, i *rds.ModifyDBInstanceMessage, c *rds.ModifyDBClusterMessage) {
		i.DBInstanceClass, c.DBClusterInstanceClass = &m.Class, &m.Class
	}),
	"storage": modify(func(m model.Database, i *rds.ModifyDBInstanceMessage, c *rds.ModifyDBClusterMessage) {
		i.AllocatedStorage, c.AllocatedStorage = new(int32(m.Storage)), new(int32(m.Storage))
	}),
	"port": modify(func(m model.Database, i *rds.ModifyDBInstanceMessage, c *rds.ModifyDBClusterMessage) {
		i.DBPortNumber, c.Port = new(int32(m.Port)), new(int32(m.Port))
	}),
	"password": modify(func(m model.Database, i *rds.ModifyDBInstanceMessage, c *rds.ModifyDBClusterMessage) {
		i.MasterUserPassword, c.MasterUserPassword = new(password(m.Password)), new(password(m.Password))
	}),
	"convert": modify(func(m model.Database, i *rds.ModifyDBInstanceMessage, _ *rds.ModifyDBClusterMessage) {
		i.MultiAZ = new(m.Kind == model.MultiAZ)
	}),
	"memory":      parameter("work_mem", "immediate", func(m model.Database) int { return m.Memory }),
	"connections": parameter("max_connections", "pending-reboot", func(m model.Database) int { return m.Connections }),
	"scale":       scale,
	"shut":        shut,
}

// modify returns the deed of a modification of an instance or a cluster.
func modify(set func(m model.Database, i *rds.ModifyDBInstanceMessage, c *rds.ModifyDBClusterMessage)) func(context.Context, *Soak, deed) error {
	return func(ctx context.Context, s *Soak, d deed) error {
		m := d.after.Databases[d.Word(0)]
		i := &rds.ModifyDBInstanceMessage{DBInstanceIdentifier: &m.Name, ApplyImmediately: new(true)}
		c := &rds.ModifyDBClusterMessage{DBClusterIdentifier: &m.Name, ApplyImmediately: new(true)}
		set(m, i, c)
		if err := s.modify(ctx, d, m, i, c); err != nil {
			return err
		}
		if !m.Follows() && d.Verb != "convert" && d.Verb != "storage" {
			// Writers are led to the new port, and are told the new password.
			if err := s.Rig.Wait(stepWithin, func() error { return s.writes(ctx, d.after, m) }); err != nil {
				return err
			}
		}
		return s.becomes(ctx, m)
	}
}

func (s *Soak) modify(ctx context.Context, d deed, m model.Database, i *rds.ModifyDBInstanceMessage, c *rds.ModifyDBClusterMessage) error {
	switch {
	case m.Kind == model.Aurora && d.Verb == "class":
		for _, name := range s.database(m.Serial).instances {
			i.DBInstanceIdentifier = &name
			if err := s.ask(ctx, "ModifyDBInstance", i, &rds.ModifyDBInstanceResult{}); err != nil {
				return err
			}
		}
		return nil
	case m.Cluster():
		return s.ask(ctx, "ModifyDBCluster", c, &rds.ModifyDBClusterResult{})
	}
	return s.ask(ctx, "ModifyDBInstance", i, &rds.ModifyDBInstanceResult{})
}

var family = fmt.Sprintf("postgres%d", pgversion.Major())

// parameter sets a parameter in a group that belongs to the database alone. If the parameter acts
// with a restart, it restarts.
func parameter(name, method string, value func(model.Database) int) func(context.Context, *Soak, deed) error {
	return func(ctx context.Context, s *Soak, d deed) error {
		m := d.after.Databases[d.Word(0)]
		group := fmt.Sprintf("soak-%d", m.Serial)
		if err := s.ownGroup(ctx, m, group); err != nil {
			return err
		}
		values := []rds.Parameter{{ParameterName: &name, ParameterValue: new(strconv.Itoa(value(m))), ApplyMethod: &method}}
		var err error
		if m.Cluster() {
			err = s.ask(ctx, "ModifyDBClusterParameterGroup", &rds.ModifyDBClusterParameterGroupMessage{DBClusterParameterGroupName: &group, Parameters: values}, &rds.DBClusterParameterGroupNameMessage{})
		} else {
			err = s.ask(ctx, "ModifyDBParameterGroup", &rds.ModifyDBParameterGroupMessage{DBParameterGroupName: &group, Parameters: values}, &rds.DBParameterGroupNameMessage{})
		}
		if err == nil && method == "pending-reboot" {
			err = s.rebootOnce(ctx, m)
		}
		if err != nil {
			return err
		}
		return s.becomes(ctx, m)
	}
}

// ownGroup gives a database a parameter group of its own, which takes a reboot.
func (s *Soak) ownGroup(ctx context.Context, m model.Database, group string) error {
	d := s.database(m.Serial)
	if len(d.groups) > 0 {
		return nil
	}
	var err, assigned error
	if m.Cluster() {
		err = s.ask(ctx, "CreateDBClusterParameterGroup", &rds.CreateDBClusterParameterGroupMessage{
			DBClusterParameterGroupName: &group, DBParameterGroupFamily: new(family), Description: new("of a soak"),
		}, &rds.CreateDBClusterParameterGroupResult{}, rds.ErrDBParameterGroupAlreadyExists)
		assigned = s.ask(ctx, "ModifyDBCluster", &rds.ModifyDBClusterMessage{DBClusterIdentifier: &m.Name, DBClusterParameterGroupName: &group, ApplyImmediately: new(true)}, &rds.ModifyDBClusterResult{})
	} else {
		err = s.ask(ctx, "CreateDBParameterGroup", &rds.CreateDBParameterGroupMessage{
			DBParameterGroupName: &group, DBParameterGroupFamily: new(family), Description: new("of a soak"),
		}, &rds.CreateDBParameterGroupResult{}, rds.ErrDBParameterGroupAlreadyExists)
		assigned = s.ask(ctx, "ModifyDBInstance", &rds.ModifyDBInstanceMessage{DBInstanceIdentifier: &m.Name, DBParameterGroupName: &group, ApplyImmediately: new(true)}, &rds.ModifyDBInstanceResult{})
	}
	if err := errors.Join(err, assigned); err != nil {
		return err
	}
	d.groups = append(d.groups, func(ctx context.Context) error {
		if m.Cluster() {
			return s.ask(ctx, "DeleteDBClusterParameterGroup", &rds.DeleteDBClusterParameterGroupMessage{DBClusterParameterGroupName: &group}, nil, rds.ErrDBParameterGroupNotFound)
		}
		return s.ask(ctx, "DeleteDBParameterGroup", &rds.DeleteDBParameterGroupMessage{DBParameterGroupName: &group}, nil, rds.ErrDBParameterGroupNotFound)
	})
	if err := s.becomes(ctx, m); err != nil {
		return err
	}
	return s.rebootOnce(ctx, m)
}

// scale brings an Aurora cluster to a number of instances. It does not say which one goes: that may
// be the writer.
func scale(ctx context.Context, s *Soak, d deed) error {
	before, m := d.database(0), d.after.Databases[d.Word(0)]
	own := s.database(m.Serial)
	for n := before.Made + 1; n <= m.Made; n++ {
		name := instanceName(m, n)
		own.instances = append(own.instances, name)
		if err := s.addInstance(ctx, m, name); err != nil {
			return err
		}
	}
	for len(own.instances) > m.Instances {
		name := own.instances[0]
		if err := s.removeInstance(ctx, name); err != nil {
			return err
		}
		own.instances = slices.Delete(own.instances, 0, 1)
	}
	return s.becomes(ctx, m)
}

// shut puts a database into a security group that lets nobody in, and back.
func shut(ctx context.Context, s *Soak, d deed) (err error) {
	m := d.database(0)
	var made ec2.CreateSecurityGroupResult
	name := fmt.Sprintf("soak-%d-%d", m.Serial, time.Now().UnixNano())
	if err := s.ask(ctx, "CreateSecurityGroup", &ec2.CreateSecurityGroupRequest{GroupName: &name, Description: new("of a soak")}, &made); err != nil {
		return err
	}
	var before []string
	if before, err = s.groupsOf(ctx, m); err != nil {
		return err
	}
	if err := s.inGroups(ctx, m, []string{*made.GroupId}); err != nil {
		return err
	}
	config, err := s.config(ctx, d.before, m)
	if err != nil {
		return err
	}
	if err := s.Rig.Wait(20*time.Second, func() error {
		if _, err := query(ctx, config, "SELECT 'in'"); err == nil {
			return errors.New("a client gets in that no group lets in")
		}
		return nil
	}); err != nil {
		return err
	}
	if err := s.inGroups(ctx, m, before); err != nil {
		return err
	}
	if err := s.ask(ctx, "DeleteSecurityGroup", &ec2.DeleteSecurityGroupRequest{GroupId: made.GroupId}, &ec2.DeleteSecurityGroupResult{}, "InvalidGroup.NotFound"); err != nil {
		return err
	}
	return s.becomes(ctx, m)
}

func (s *Soak) groupsOf(ctx context.Context, m model.Database) ([]string, error) {
	var all []string
	if m.Cluster() {
		c, err := s.Rig.Cluster(ctx, m.Name)
		for _, g := range c.VpcSecurityGroups {
			all = append(all, *g.VpcSecurityGroupId)
		}
		return all, err
	}
	i, err := s.Rig.Instance(ctx, m.Name)
	for _, g := range i.VpcSecurityGroups {
		all = append(all, *g.VpcSecurityGroupId)
	}
	return all, err
}

func (s *Soak) inGroups(ctx context.Context, m model.Database, groups []string) error {
	if m.Cluster() {
		return s.ask(ctx, "ModifyDBCluster", &rds.ModifyDBClusterMessage{DBClusterIdentifier: &m.Name, VpcSecurityGroupIds: groups}, &rds.ModifyDBClusterResult{})
	}
	return s.ask(ctx, "ModifyDBInstance", &rds.ModifyDBInstanceMessage{DBInstanceIdentifier: &m.Name, VpcSecurityGroupIds: groups}, &rds.ModifyDBInstanceResult{})
}
