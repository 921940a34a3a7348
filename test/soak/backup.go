package soak

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"howdah/api/rds"
	"howdah/internal/model/backup"
	"howdah/internal/model/operation"
	"howdah/internal/state"
	"howdah/internal/testkit/ack"
	"howdah/test/soak/model"
)

// backups has the deeds about backups, and those that make databases of them.
var backups = map[string]func(context.Context, *Soak, deed) error{
	"retention": modify(func(m model.Database, i *rds.ModifyDBInstanceMessage, c *rds.ModifyDBClusterMessage) {
		i.BackupRetentionPeriod, c.BackupRetentionPeriod = new(int32(m.Days)), new(int32(m.Days))
	}),
	"snapshot": snapshot, "delete-snapshot": deleteSnapshot, "delete-retained": deleteRetained,
	"restore": restoreSnapshot, "restore-moment": restoreMoment, "restore-retained": restoreRetained,
	"drill": drill, "moments": moments,
}

const (
	// snapshotWithin is how long a backup may take: the first one waits until WAL is archived.
	snapshotWithin = 120 * time.Second
	// restorableWithin is how far LatestRestorableTime may be behind a database that is written to,
	// after faults have ended.
	restorableWithin = 120 * time.Second
)

// span is between when a copy of data was asked for, and when it was seen to be there.
type span struct{ from, to time.Time }

func snapshot(ctx context.Context, s *Soak, d deed) error {
	m, name := d.database(0), d.Word(1)
	taken := span{from: time.Now()}
	var err error
	if m.Cluster() {
		err = s.ask(ctx, "CreateDBClusterSnapshot", &rds.CreateDBClusterSnapshotMessage{DBClusterIdentifier: &m.Name, DBClusterSnapshotIdentifier: &name},
			&rds.CreateDBClusterSnapshotResult{}, rds.ErrDBClusterSnapshotAlreadyExists)
	} else {
		err = s.ask(ctx, "CreateDBSnapshot", &rds.CreateDBSnapshotMessage{DBInstanceIdentifier: &m.Name, DBSnapshotIdentifier: &name},
			&rds.CreateDBSnapshotResult{}, rds.ErrDBSnapshotAlreadyExists)
	}
	if err != nil {
		return err
	}
	err = s.await(snapshotWithin, "the snapshot "+name, func() error {
		status, err := s.snapshotStatus(ctx, m.Cluster(), name)
		if err == nil && status != "available" {
			err = fmt.Errorf("it is %s", status)
		}
		return err
	})
	taken.to = time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snapshots[name] = taken
	return err
}

func (s *Soak) snapshotStatus(ctx context.Context, cluster bool, name string) (string, error) {
	if cluster {
		var out rds.DBClusterSnapshotMessage
		if err := s.Rig.Call(ctx, "DescribeDBClusterSnapshots", &rds.DescribeDBClusterSnapshotsMessage{DBClusterSnapshotIdentifier: &name}, &out); err != nil {
			return "", err
		}
		return *out.DBClusterSnapshots[0].Status, nil
	}
	var out rds.DBSnapshotMessage
	if err := s.Rig.Call(ctx, "DescribeDBSnapshots", &rds.DescribeDBSnapshotsMessage{DBSnapshotIdentifier: &name}, &out); err != nil {
		return "", err
	}
	return *out.DBSnapshots[0].Status, nil
}

func deleteSnapshot(ctx context.Context, s *Soak, d deed) error {
	name := d.Word(0)
	if d.before.Snapshots[name].Of.Cluster() {
		return s.ask(ctx, "DeleteDBClusterSnapshot", &rds.DeleteDBClusterSnapshotMessage{DBClusterSnapshotIdentifier: &name},
			&rds.DeleteDBClusterSnapshotResult{}, rds.ErrDBClusterSnapshotNotFound)
	}
	return s.ask(ctx, "DeleteDBSnapshot", &rds.DeleteDBSnapshotMessage{DBSnapshotIdentifier: &name}, &rds.DeleteDBSnapshotResult{}, rds.ErrDBSnapshotNotFound)
}

func deleteRetained(ctx context.Context, s *Soak, d deed) error {
	of := d.before.Retained[d.Word(0)].Of
	id := s.idOf(of.Serial)
	if of.Cluster() {
		return s.ask(ctx, "DeleteDBClusterAutomatedBackup", &rds.DeleteDBClusterAutomatedBackupMessage{DbClusterResourceId: &id},
			&rds.DeleteDBClusterAutomatedBackupResult{}, rds.ErrDBClusterAutomatedBackupNotFound)
	}
	return s.ask(ctx, "DeleteDBInstanceAutomatedBackup", &rds.DeleteDBInstanceAutomatedBackupMessage{DbiResourceId: &id},
		&rds.DeleteDBInstanceAutomatedBackupResult{}, rds.ErrDBInstanceAutomatedBackupNotFound)
}

// idOf returns the resource id of a database, also of one that is gone.
func (s *Soak) idOf(serial int) string { return s.everOf(serial).id }

func (s *Soak) everOf(serial int) *database {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ever[serial]
}

// window returns from when to when a database can be restored, also one that is gone. It waits until
// there is a moment after from.
func (s *Soak) window(ctx context.Context, m model.Database, from time.Time) (span, error) {
	id := s.idOf(m.Serial)
	var w span
	err := s.await(restorableWithin, m.Name+" to be restorable", func() error {
		var found *rds.RestoreWindow
		var err error
		if m.Cluster() {
			var out rds.DBClusterAutomatedBackupMessage
			err = s.Rig.Call(ctx, "DescribeDBClusterAutomatedBackups", &rds.DescribeDBClusterAutomatedBackupsMessage{DbClusterResourceId: &id}, &out)
			if len(out.DBClusterAutomatedBackups) == 1 {
				found = out.DBClusterAutomatedBackups[0].RestoreWindow
			}
		} else {
			var out rds.DBInstanceAutomatedBackupMessage
			err = s.Rig.Call(ctx, "DescribeDBInstanceAutomatedBackups", &rds.DescribeDBInstanceAutomatedBackupsMessage{DbiResourceId: &id}, &out)
			if len(out.DBInstanceAutomatedBackups) == 1 {
				found = out.DBInstanceAutomatedBackups[0].RestoreWindow
			}
		}
		if err != nil {
			return err
		}
		if found == nil || found.LatestTime.Before(from) {
			return fmt.Errorf("its window is %+v, and has to reach %s", found, from.Format(time.TimeOnly))
		}
		w = span{*found.EarliestTime, *found.LatestTime}
		return nil
	})
	return w, failed("a database is not restorable to new moments", err)
}

func restoreSnapshot(ctx context.Context, s *Soak, d deed) error {
	m, from := d.after.Databases[d.Word(0)], d.before.Snapshots[d.Word(1)]
	var err error
	if m.Cluster() {
		err = s.ask(ctx, "RestoreDBClusterFromSnapshot", clusterAgain(m, from.Name), &rds.RestoreDBClusterFromSnapshotResult{}, rds.ErrDBClusterAlreadyExists)
	} else {
		err = s.ask(ctx, "RestoreDBInstanceFromDBSnapshot", &rds.RestoreDBInstanceFromDBSnapshotMessage{
			DBInstanceIdentifier: &m.Name, DBSnapshotIdentifier: &from.Name, DBInstanceClass: &m.Class, MultiAZ: new(m.Kind == model.MultiAZ),
			BackupRetentionPeriod: new(int32(m.Days)),
		}, &rds.RestoreDBInstanceFromDBSnapshotResult{}, rds.ErrDBInstanceAlreadyExists)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	taken := s.snapshots[from.Name]
	s.mu.Unlock()
	return s.restored(ctx, d, m, taken)
}

func clusterAgain(m model.Database, snapshot string) *rds.RestoreDBClusterFromSnapshotMessage {
	in := &rds.RestoreDBClusterFromSnapshotMessage{
		DBClusterIdentifier: &m.Name, SnapshotIdentifier: &snapshot, Engine: new("aurora-postgresql"), BackupRetentionPeriod: new(int32(m.Days)),
	}
	if m.Kind == model.Three {
		in.Engine, in.DBClusterInstanceClass, in.StorageType = new("postgres"), &m.Class, new("gp3")
	}
	return in
}

func restoreMoment(ctx context.Context, s *Soak, d deed) error {
	return s.restoreTo(ctx, d, d.database(1), true)
}

func restoreRetained(ctx context.Context, s *Soak, d deed) error {
	return s.restoreTo(ctx, d, d.before.Retained[d.Word(1)].Of, false)
}

// latest is the moment that is as late as possible.
const latest = 100

// restoreTo restores a moment of a database, which lives or whose backups were retained.
func (s *Soak) restoreTo(ctx context.Context, d deed, source model.Database, lives bool) error {
	m := d.after.Databases[d.Word(0)]
	percent, err := strconv.Atoi(d.Word(2))
	if err != nil {
		return err
	}
	var from time.Time
	if lives && percent == latest {
		from = time.Now() // backups go on
	}
	w, err := s.window(ctx, source, from)
	if err != nil {
		return err
	}
	at := w.from.Add(w.to.Sub(w.from) * time.Duration(percent) / latest).Truncate(time.Microsecond)
	data := span{at, at}
	moment, newest := &at, (*bool)(nil)
	if percent == latest {
		moment, newest = nil, new(true)
	}
	if m.Cluster() {
		in := &rds.RestoreDBClusterToPointInTimeMessage{
			DBClusterIdentifier: &m.Name, RestoreToTime: moment, UseLatestRestorableTime: newest, BackupRetentionPeriod: new(int32(m.Days)),
		}
		if in.SourceDBClusterIdentifier = &source.Name; !lives {
			in.SourceDBClusterIdentifier, in.SourceDbClusterResourceId = nil, new(s.idOf(source.Serial))
		}
		if m.Kind == model.Three {
			in.DBClusterInstanceClass = &m.Class
		}
		err = s.ask(ctx, "RestoreDBClusterToPointInTime", in, &rds.RestoreDBClusterToPointInTimeResult{}, rds.ErrDBClusterAlreadyExists)
	} else {
		in := &rds.RestoreDBInstanceToPointInTimeMessage{
			TargetDBInstanceIdentifier: &m.Name, RestoreTime: moment, UseLatestRestorableTime: newest, DBInstanceClass: &m.Class,
			MultiAZ: new(m.Kind == model.MultiAZ), BackupRetentionPeriod: new(int32(m.Days)),
		}
		if in.SourceDBInstanceIdentifier = &source.Name; !lives {
			in.SourceDBInstanceIdentifier, in.SourceDbiResourceId = nil, new(s.idOf(source.Serial))
		}
		err = s.ask(ctx, "RestoreDBInstanceToPointInTime", in, &rds.RestoreDBInstanceToPointInTimeResult{}, rds.ErrDBInstanceAlreadyExists)
	}
	if err != nil {
		return err
	}
	if percent == latest {
		data.to = time.Now()
	}
	return s.restored(ctx, d, m, data)
}

// restored waits for a restored database, and compares what it has with what was acknowledged in its
// source: everything before data.from, and nothing that was begun after data.to.
func (s *Soak) restored(ctx context.Context, d deed, m model.Database, data span) error {
	var instances []string
	if m.Kind == model.Aurora {
		instances = []string{instanceName(m, 1)}
		if err := s.addInstance(ctx, m, instances[0]); err != nil {
			return err
		}
	}
	if err := s.adopt(ctx, m, instances); err != nil {
		return err
	}
	if err := s.becomes(ctx, m); err != nil {
		return failed("a restore does not end", err)
	}
	s.Figures.restore()
	acks := s.everOf(m.From).acks()
	config, err := s.config(ctx, d.after, m)
	if err != nil {
		return err
	}
	var there map[ack.Row]bool
	if err := s.Rig.Wait(loginWithin, func() error {
		conn, err := pgx.ConnectConfig(ctx, config.Copy())
		if err != nil {
			return fmt.Errorf("log in: %w", err)
		}
		defer conn.Close(ctx)
		there, err = rowsIn(ctx, conn, m.From)
		return err
	}); err != nil {
		return failed("the rows of a restored database cannot be read", err)
	}
	return s.hasRows(m.Name+" of "+s.idOf(m.From), there, acks, data)
}

// hasRows compares the rows of a restored database.
func (s *Soak) hasRows(name string, there map[ack.Row]bool, acks []ack.Ack, data span) error {
	var known, before int
	for _, a := range acks {
		has := there[ack.Row{Writer: a.Writer, Seq: a.Seq}]
		switch {
		case a.At.Before(data.from) && !has:
			return failed("a restored database lacks rows", fmt.Errorf("%s to %s: of %d rows the one of %+v is missing", name, data.from, len(there), a))
		case a.Began.After(data.to) && has:
			return failed("a restored database has rows of later", fmt.Errorf("%s to %s: of %d rows there is %+v", name, data.to, len(there), a))
		case a.At.Before(data.from):
			before++
		}
		if has {
			known++
		}
	}
	s.Log("  %s has %d rows, %d acknowledged, %d of them before %s, of %d", name, len(there), known, before, data.from.Format(time.TimeOnly), len(acks))
	return nil
}

// undefinedTable is PostgreSQL's code for a table that is not there.
const undefinedTable = "42P01"

// rowsIn returns the rows that the load of a database has written. At an early moment there was no
// table.
func rowsIn(ctx context.Context, conn *pgx.Conn, serial int) (map[ack.Row]bool, error) {
	there := map[ack.Row]bool{}
	rows, err := conn.Query(ctx, fmt.Sprintf("SELECT writer, seq FROM public.acks_%d", serial))
	if err == nil {
		var r ack.Row
		_, err = pgx.ForEachRow(rows, []any{&r.Writer, &r.Seq}, func() error { there[r] = true; return nil })
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == undefinedTable {
		err = nil
	}
	return there, err
}

// drill has the newest backup be tried, which must be good.
func drill(ctx context.Context, s *Soak, d deed) error {
	m := d.database(0)
	if _, err := s.window(ctx, m, time.Time{}); err != nil {
		return err
	}
	id, began := s.idOf(m.Serial), time.Now()
	var found backup.DrillRecord
	err := s.await(2*stepWithin, "a drill of "+m.Name, func() error {
		record, err := state.Get[backup.DrillRecord](ctx, s.Rig.Store, state.Drill(id))
		if err == nil && record.Value.Began.After(began) {
			found = record.Value
			return nil
		}
		all, err := state.List[operation.Record](ctx, s.Rig.Store, state.OperationRoot)
		if err != nil {
			return err
		}
		for _, o := range all {
			if o.Value.About.Database == id && o.Value.Kind == backup.Drill.Name && !o.Value.State.Ended() {
				return fmt.Errorf("it is at %s: %s", o.Value.Step, o.Value.Trouble)
			}
		}
		_, err = s.howdah(ctx, "backup", "drill", m.Name, "--no-wait")
		return errors.Join(errors.New("it was begun"), err)
	})
	if err == nil && found.Failed != "" {
		err = fmt.Errorf("of %s: %s", found.Label, found.Failed)
	}
	return failed("a drill does not work", err)
}

// promised returns the latest restorable time of a database; zero: nothing is promised.
func (s *Soak) promised(ctx context.Context, m model.Database) (time.Time, error) {
	var at *time.Time
	if m.Cluster() {
		c, err := s.Rig.Cluster(ctx, m.Name)
		if err != nil {
			return time.Time{}, err
		}
		at = c.LatestRestorableTime
	} else {
		i, err := s.Rig.Instance(ctx, m.Name)
		if err != nil {
			return time.Time{}, err
		}
		at = i.LatestRestorableTime
	}
	if at == nil {
		return time.Time{}, nil
	}
	return *at, nil
}

// keepsPromises checks that what could be restored once can be restored still.
func (s *Soak) keepsPromises(ctx context.Context, m model.Database) error {
	d := s.database(m.Serial)
	if m.Days == 0 || m.Follows() {
		d.latest = time.Time{}
		return nil
	}
	at, err := s.promised(ctx, m)
	if err != nil {
		return err
	}
	if !at.IsZero() && at.Before(d.latest) {
		return failed("LatestRestorableTime went backward", fmt.Errorf("%s: from %s to %s", m.Name, d.latest, at))
	}
	if !at.IsZero() {
		d.latest = at
	}
	return nil
}
