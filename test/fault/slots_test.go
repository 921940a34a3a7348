package fault

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"howdah/api/rds"
	"howdah/internal/engine/postgres"
	"howdah/internal/model/patroni"
	"howdah/internal/testkit/depth"
	"howdah/internal/testkit/patience"
	"howdah/internal/testkit/pgversion"
	"howdah/internal/testkit/rig"
)

// Changes are taken out of a database through its endpoint, with TLS and a password: by
// pg_recvlogical, and by SQL. Nothing else is: neither a base backup, nor by who was not granted
// rds_replication. A failover goes on while somebody receives, and an event names the slots that it
// lost. Those that were to survive it do, where the version can do that.
func TestLogicalSlots(t *testing.T) {
	depth.Deep(t)
	s := begin(t, nil)
	id := s.given("orders", true)
	s.replicates("orders")
	shop := s.in("postgres")
	s.must(shop.exec("CREATE ROLE mover LOGIN PASSWORD 'of the mover'; CREATE TABLE sold (n int PRIMARY KEY)"), "make a user and a table")
	mover := s.mover()
	if out, err := mover.receive("--create-slot", "-S", "debezium", "-P", "test_decoding"); err == nil || !strings.Contains(out, "rds_replication") {
		t.Errorf("without the role: %v, %s", err, out)
	}
	s.must(shop.exec("GRANT rds_replication TO mover"), "grant the role")
	s.eventually(30*time.Second, func() error {
		return mover.exec("SELECT pg_drop_replication_slot(slot_name) FROM pg_create_logical_replication_slot('by_sql', 'test_decoding')")
	})
	if out, err := mover.receive("--create-slot", "-S", "debezium", "-P", "test_decoding"); err != nil {
		t.Fatalf("make a slot: %v, %s", err, out)
	}
	survives := pgversion.Major() >= patroni.SlotsSurvive
	if survives {
		s.must(mover.exec("SELECT pg_create_logical_replication_slot('survives', 'test_decoding', failover => true)"), "make a slot that survives")
	}
	s.must(shop.exec("INSERT INTO sold VALUES (1)"), "write")
	got := mover.receives("debezium", 1)
	if !strings.Contains(got, "INSERT: n[integer]:1") {
		t.Errorf("received %q", got)
	}
	stolen := filepath.Join(t.TempDir(), "stolen")
	if out, err := mover.run("pg_basebackup", "-D", stolen, "-X", "none"); err == nil {
		t.Errorf("all files were copied: %s", out)
	}

	s.eventually(60*time.Second, func() error { return s.rig.InSync(s.Context(), id, 1) })
	if survives {
		// A standby has a copy once the slot has moved on since it was made, at an entry in the WAL that
		// PostgreSQL makes every 15 s where something is written.
		s.must(shop.exec("CREATE TABLE ticks (at timestamptz)"), "make a table")
		s.eventually(60*time.Second, func() error {
			err := shop.exec("INSERT INTO ticks VALUES (now())")
			if err == nil {
				err = mover.exec("SELECT count(*) FROM pg_logical_slot_get_changes('survives', NULL, NULL)")
			}
			if err == nil {
				err = s.synced(id, "survives")
			}
			return err
		})
	}
	s.must(shop.exec("INSERT INTO sold VALUES (2)"), "write")
	// Somebody receives, and confirms nothing for a long time.
	stuck := mover.command("pg_recvlogical", "--start", "-S", "debezium", "-f", "/dev/null", "--no-loop", "--status-interval", "3600")
	s.must(stuck.Start(), "receive")
	defer func() { stuck.Process.Kill(); stuck.Wait() }()
	s.eventually(30*time.Second, func() error {
		active, err := s.query("orders", "SELECT coalesce(bool_or(active), false)::text FROM pg_replication_slots WHERE slot_name = 'debezium'")
		if err == nil && active != "true" {
			err = fmt.Errorf("nobody receives")
		}
		return err
	})
	before := s.leader(id)
	s.asks(60*time.Second, "RebootDBInstance", &rds.RebootDBInstanceMessage{DBInstanceIdentifier: new("orders"), ForceFailover: new(true)}, &rds.RebootDBInstanceResult{})
	s.must(s.rig.WaitStatus(s.Context(), "orders", "available", time.Minute), "available after a failover")
	if after := s.leader(id); after.Host == before.Host {
		t.Errorf("%s still leads", after.Host)
	}
	s.eventually(60*time.Second, func() error {
		return s.hasEvent("orders", "Logical replication slots were lost in the failover: debezium.")
	})
	if survives {
		s.must(shop.exec("INSERT INTO sold VALUES (3)"), "write after the failover")
		if got := mover.receives("survives", 3); !strings.Contains(got, "INSERT: n[integer]:2") || !strings.Contains(got, "INSERT: n[integer]:3") {
			t.Errorf("what survives the failover has %q", got)
		}
	}
	// The old primary keeps no WAL for a slot that is nobody's.
	s.eventually(90*time.Second, func() error { return s.lacksSlot(id, "debezium") })
}

// replicates turns logical replication on.
func (s *story) replicates(name string) {
	s.Helper()
	s.ownParameters(name, "logical")
	s.asks(60*time.Second, "ModifyDBParameterGroup", &rds.ModifyDBParameterGroupMessage{DBParameterGroupName: new("logical"), Parameters: []rds.Parameter{{
		ParameterName: new("rds.logical_replication"), ParameterValue: new("1"), ApplyMethod: new("pending-reboot"),
	}}}, &rds.DBParameterGroupNameMessage{})
	s.asks(60*time.Second, "RebootDBInstance", &rds.RebootDBInstanceMessage{DBInstanceIdentifier: &name}, &rds.RebootDBInstanceResult{})
	s.must(s.rig.WaitStatus(s.Context(), name, "available", time.Minute), "available with logical replication")
	s.eventually(60*time.Second, func() error {
		level, err := s.query(name, "SHOW wal_level")
		if err == nil && level != "logical" {
			err = fmt.Errorf("wal_level is %s", level)
		}
		return err
	})
}

// mover is a user who takes changes out of the database postgres of orders.
type mover struct {
	base
	conninfo, dir string
}

func (s *story) mover() mover {
	s.Helper()
	config, err := s.rig.Config(s.Context(), "orders")
	s.must(err, "know the endpoint")
	return mover{s.in("postgres"), fmt.Sprintf("host=%s port=%d user=mover dbname=postgres sslmode=require password='of the mover'", config.Host, config.Port), s.TempDir()}
}

// exec runs SQL as the mover.
func (m mover) exec(sql string) error {
	out, err := m.run("psql", "-X", "-v", "ON_ERROR_STOP=1", "-c", sql)
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return err
}

func (m mover) receive(args ...string) (string, error) { return m.run("pg_recvlogical", args...) }

// receives returns what a slot has until the end of the WAL of now. It tries until a row is there.
func (m mover) receives(slot string, row int) (got string) {
	m.Helper()
	m.eventually(30*time.Second, func() error {
		end, err := m.query("orders", "SELECT pg_current_wal_flush_lsn()::text")
		if err != nil {
			return err
		}
		out, err := m.receive("--start", "-S", slot, "-f", "-", "--no-loop", "--endpos", end)
		got += out
		if err == nil && !strings.Contains(got, fmt.Sprintf("INSERT: n[integer]:%d", row)) {
			err = fmt.Errorf("not there yet: %q", got)
		}
		return err
	})
	return got
}

func (m mover) run(program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(m.Context(), patience.For(30*time.Second))
	defer cancel()
	c := m.commandIn(ctx, program, args...)
	out, err := c.CombinedOutput()
	return string(out), err
}

func (m mover) command(program string, args ...string) *exec.Cmd {
	return m.commandIn(m.Context(), program, args...)
}

func (m mover) commandIn(ctx context.Context, program string, args ...string) *exec.Cmd {
	m.Helper()
	install, err := postgres.Find(pgversion.Major())
	m.must(err, "find PostgreSQL")
	c := exec.CommandContext(ctx, install.Program(program), append([]string{"-d", m.conninfo}, args...)...)
	c.Dir = m.dir
	return c
}

// synced says whether a standby has a copy of a slot.
func (s *story) synced(database, slot string) error {
	return s.onStandby(database, "SELECT count(*)::text FROM pg_replication_slots WHERE to_jsonb(pg_replication_slots)->>'synced' = 'true' AND NOT temporary AND slot_name = '"+slot+"'", "1")
}

// lacksSlot says whether the standby has no slot of that name.
func (s *story) lacksSlot(database, slot string) error {
	return s.onStandby(database, "SELECT count(*)::text FROM pg_replication_slots WHERE slot_name = '"+slot+"'", "0")
}

// onStandby compares what a query says on the standby itself.
func (s *story) onStandby(database, sql, want string) error {
	m := s.standby(database)
	args := s.rig.HostCommand(m.ZoneLetter(), "timeout", "5", "psql", "-X", "-A", "-t", "-c", sql,
		fmt.Sprintf("host=%s port=%d user=app dbname=postgres sslmode=require connect_timeout=3", m.Address, m.Port))
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(cmd.Environ(), "PGPASSWORD="+rig.Password)
	out, err := cmd.CombinedOutput()
	got := strings.TrimSpace(string(out))
	if err == nil && got != want {
		err = fmt.Errorf("not %s", want)
	}
	if err != nil {
		return fmt.Errorf("%s on %s: %q, %w", sql, m.Name, got, err)
	}
	return nil
}
