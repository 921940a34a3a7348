package soak

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"howdah/api/rds"
	"howdah/internal/control/plan"
	"howdah/test/soak/model"
)

// existence has the deeds that make databases, and end them.
var existence = map[string]func(context.Context, *Soak, deed) error{
	"create": create, "replica": replica, "promote": promote, "delete": remove, "rename": rename,
}

func create(ctx context.Context, s *Soak, d deed) error {
	m := d.after.Databases[d.Word(0)]
	var instances []string
	var err error
	switch m.Kind {
	case model.Single, model.MultiAZ:
		err = s.ask(ctx, "CreateDBInstance", &rds.CreateDBInstanceMessage{
			DBInstanceIdentifier: &m.Name, Engine: new("postgres"), DBInstanceClass: &m.Class, AllocatedStorage: new(int32(m.Storage)),
			MasterUsername: new(masterUser), MasterUserPassword: new(firstPassword), MultiAZ: new(m.Kind == model.MultiAZ), Port: new(int32(m.Port)),
			BackupRetentionPeriod: new(int32(m.Days)),
		}, &rds.CreateDBInstanceResult{}, rds.ErrDBInstanceAlreadyExists)
	case model.Three:
		err = s.ask(ctx, "CreateDBCluster", &rds.CreateDBClusterMessage{
			DBClusterIdentifier: &m.Name, Engine: new("postgres"), DBClusterInstanceClass: &m.Class, AllocatedStorage: new(int32(m.Storage)),
			StorageType: new("gp3"), MasterUsername: new(masterUser), MasterUserPassword: new(firstPassword), Port: new(int32(m.Port)),
			BackupRetentionPeriod: new(int32(m.Days)),
		}, &rds.CreateDBClusterResult{}, rds.ErrDBClusterAlreadyExists)
	case model.Aurora:
		err = s.ask(ctx, "CreateDBCluster", &rds.CreateDBClusterMessage{
			DBClusterIdentifier: &m.Name, Engine: new("aurora-postgresql"),
			MasterUsername: new(masterUser), MasterUserPassword: new(firstPassword), Port: new(int32(m.Port)), BackupRetentionPeriod: new(int32(m.Days)),
		}, &rds.CreateDBClusterResult{}, rds.ErrDBClusterAlreadyExists)
		for n := 1; n <= m.Instances && err == nil; n++ {
			instances = append(instances, instanceName(m, n))
			err = s.addInstance(ctx, m, instances[n-1])
		}
	}
	if err != nil {
		return err
	}
	if err := s.adopt(ctx, m, instances); err != nil {
		return err
	}
	return s.becomes(ctx, m)
}

// instanceName returns the name of the n-th instance that an Aurora cluster ever had. Nobody else
// has that name.
func instanceName(m model.Database, n int) string { return fmt.Sprintf("i%d-%d", m.Serial, n) }

func (s *Soak) addInstance(ctx context.Context, m model.Database, name string) error {
	return s.ask(ctx, "CreateDBInstance", &rds.CreateDBInstanceMessage{
		DBInstanceIdentifier: &name, DBClusterIdentifier: &m.Name, Engine: new("aurora-postgresql"), DBInstanceClass: &m.Class,
	}, &rds.CreateDBInstanceResult{}, rds.ErrDBInstanceAlreadyExists)
}

// becomes waits until a database is what it is to be after a step.
func (s *Soak) becomes(ctx context.Context, m model.Database) error {
	return s.await(stepWithin, m.Name+" to become what was asked for", func() error { return s.isAsked(ctx, m) })
}

func replica(ctx context.Context, s *Soak, d deed) error {
	m, source := d.after.Databases[d.Word(0)], d.database(2)
	in := &rds.CreateDBInstanceReadReplicaMessage{
		DBInstanceIdentifier: &m.Name, DBInstanceClass: &m.Class, MultiAZ: new(m.Kind == model.MultiAZ), Port: new(int32(m.Port)), AllocatedStorage: new(int32(m.Storage)),
	}
	if source.Cluster() {
		in.SourceDBClusterIdentifier = &source.Name
	} else {
		in.SourceDBInstanceIdentifier = &source.Name
	}
	if err := s.ask(ctx, "CreateDBInstanceReadReplica", in, &rds.CreateDBInstanceReadReplicaResult{}, rds.ErrDBInstanceAlreadyExists); err != nil {
		return err
	}
	if err := s.adopt(ctx, m, nil); err != nil {
		return err
	}
	return s.becomes(ctx, m)
}

func promote(ctx context.Context, s *Soak, d deed) error {
	m := d.after.Databases[d.Word(0)]
	in := &rds.PromoteReadReplicaMessage{DBInstanceIdentifier: &m.Name}
	// If it is no replica any more, it was promoted by a call whose answer got lost.
	err := s.ask(ctx, "PromoteReadReplica", in, &rds.PromoteReadReplicaResult{})
	if i, looked := s.Rig.Instance(ctx, m.Name); err != nil && looked == nil && i.ReadReplicaSourceDBInstanceIdentifier == nil && i.ReadReplicaSourceDBClusterIdentifier == nil {
		err = nil
	}
	if err != nil {
		return err
	}
	return s.becomes(ctx, m)
}

// remove first ends the writers, and looks for their rows a last time.
func remove(ctx context.Context, s *Soak, d deed) error {
	m := d.database(0)
	own := s.database(m.Serial)
	own.endWriters()
	if !m.Follows() {
		if err := s.rowsOf(ctx, own); err != nil {
			return err
		}
	}
	_, retained := d.after.Retained[strconv.Itoa(m.Serial)]
	if retained { // of a database without any backup nothing would be
		if _, err := s.window(ctx, m, time.Time{}); err != nil {
			return err
		}
	}
	for _, name := range own.instances {
		if err := s.removeInstance(ctx, name); err != nil {
			return err
		}
	}
	var err error
	if m.Cluster() {
		err = s.ask(ctx, "DeleteDBCluster", &rds.DeleteDBClusterMessage{DBClusterIdentifier: &m.Name, SkipFinalSnapshot: new(true), DeleteAutomatedBackups: new(!retained)},
			&rds.DeleteDBClusterResult{}, rds.ErrDBClusterNotFound)
	} else {
		err = s.ask(ctx, "DeleteDBInstance", &rds.DeleteDBInstanceMessage{DBInstanceIdentifier: &m.Name, SkipFinalSnapshot: new(true), DeleteAutomatedBackups: new(!retained)},
			&rds.DeleteDBInstanceResult{}, rds.ErrDBInstanceNotFound)
	}
	if err != nil {
		return err
	}
	if err := s.Rig.Wait(stepWithin, func() error { return s.isGone(ctx, m.Cluster(), m.Name) }); err != nil {
		return err
	}
	for _, remove := range own.groups {
		if err := remove(ctx); err != nil {
			return err
		}
	}
	s.forget(m.Serial)
	return failed("something is left of a deleted database", s.Rig.Wait(leftWithin, func() error { return s.nothingOf(ctx, own.id) }))
}

func (s *Soak) removeInstance(ctx context.Context, name string) error {
	return s.ask(ctx, "DeleteDBInstance", &rds.DeleteDBInstanceMessage{DBInstanceIdentifier: &name, SkipFinalSnapshot: new(true)},
		&rds.DeleteDBInstanceResult{}, rds.ErrDBInstanceNotFound)
}

func rename(ctx context.Context, s *Soak, d deed) error {
	m := d.after.Databases[d.Word(1)]
	old := d.Word(0)
	var err error
	if m.Cluster() {
		err = s.ask(ctx, "ModifyDBCluster", &rds.ModifyDBClusterMessage{DBClusterIdentifier: &old, NewDBClusterIdentifier: &m.Name, ApplyImmediately: new(true)},
			&rds.ModifyDBClusterResult{}, rds.ErrDBClusterNotFound)
	} else {
		err = s.ask(ctx, "ModifyDBInstance", &rds.ModifyDBInstanceMessage{DBInstanceIdentifier: &old, NewDBInstanceIdentifier: &m.Name, ApplyImmediately: new(true)},
			&rds.ModifyDBInstanceResult{}, rds.ErrDBInstanceNotFound)
	}
	if err != nil {
		return err
	}
	return s.becomes(ctx, m)
}

// restarts has the deeds that make databases begin again.
var restarts = map[string]func(context.Context, *Soak, deed) error{
	"reboot": reboot, "failover": failover,
	"stop":  func(ctx context.Context, s *Soak, d deed) error { return stopOrStart(ctx, s, d, true) },
	"start": func(ctx context.Context, s *Soak, d deed) error { return stopOrStart(ctx, s, d, false) },
}

func reboot(ctx context.Context, s *Soak, d deed) error {
	m := d.database(0)
	if err := s.rebootOnce(ctx, m); err != nil {
		return err
	}
	return s.becomes(ctx, m)
}

func (s *Soak) rebootOnce(ctx context.Context, m model.Database) error {
	switch m.Kind {
	case model.Three:
		return s.ask(ctx, "RebootDBCluster", &rds.RebootDBClusterMessage{DBClusterIdentifier: &m.Name}, &rds.RebootDBClusterResult{})
	case model.Aurora:
		name := s.database(m.Serial).instances[0]
		return s.ask(ctx, "RebootDBInstance", &rds.RebootDBInstanceMessage{DBInstanceIdentifier: &name}, &rds.RebootDBInstanceResult{})
	case model.Single, model.MultiAZ:
	}
	return s.ask(ctx, "RebootDBInstance", &rds.RebootDBInstanceMessage{DBInstanceIdentifier: &m.Name}, &rds.RebootDBInstanceResult{})
}

func failover(ctx context.Context, s *Soak, d deed) error {
	m := d.database(0)
	var err error
	if m.Cluster() {
		err = s.ask(ctx, "FailoverDBCluster", &rds.FailoverDBClusterMessage{DBClusterIdentifier: &m.Name}, &rds.FailoverDBClusterResult{})
	} else {
		err = s.ask(ctx, "RebootDBInstance", &rds.RebootDBInstanceMessage{DBInstanceIdentifier: &m.Name, ForceFailover: new(true)}, &rds.RebootDBInstanceResult{})
	}
	if err != nil {
		return err
	}
	return s.becomes(ctx, m)
}

// stopOrStart asks again only until the status says that the call was taken.
func stopOrStart(ctx context.Context, s *Soak, d deed, stop bool) error {
	m := d.after.Databases[d.Word(0)]
	begun := map[bool][]string{true: {plan.Stopping, plan.StoppedWord}, false: {plan.Starting, plan.Available}}[stop]
	return s.Rig.Wait(stepWithin, func() error {
		of, _, err := s.status(ctx, m)
		if err != nil {
			return err
		}
		if status := of[m.Name]; status == begun[0] || status == begun[1] {
			return s.isAsked(ctx, m)
		}
		action := map[bool]string{true: "Stop", false: "Start"}[stop]
		switch {
		case m.Cluster() && stop:
			err = s.Rig.Call(ctx, action+"DBCluster", &rds.StopDBClusterMessage{DBClusterIdentifier: &m.Name}, &rds.StopDBClusterResult{})
		case m.Cluster():
			err = s.Rig.Call(ctx, action+"DBCluster", &rds.StartDBClusterMessage{DBClusterIdentifier: &m.Name}, &rds.StartDBClusterResult{})
		case stop:
			err = s.Rig.Call(ctx, action+"DBInstance", &rds.StopDBInstanceMessage{DBInstanceIdentifier: &m.Name}, &rds.StopDBInstanceResult{})
		default:
			err = s.Rig.Call(ctx, action+"DBInstance", &rds.StartDBInstanceMessage{DBInstanceIdentifier: &m.Name}, &rds.StartDBInstanceResult{})
		}
		if err == nil {
			err = fmt.Errorf("%s was asked for", action)
		}
		return err
	})
}
