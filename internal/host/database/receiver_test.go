package database

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/postgres"
	"howdah/internal/failover/fence"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
	"howdah/internal/testkit/patience"
)

func TestNamesUpstream(t *testing.T) {
	const conf = `include 'postgresql.base.conf'
primary_conninfo = 'user=rdsrepladmin host=10.0.0.9 port=5432'
work_mem = '4MB'
primary_conninfo = 'user=rdsrepladmin sslmode=verify-ca host=10.0.0.1 port=5432 application_name=m2'
primary_slot_name = 'm2'
`
	cases := []struct {
		name, conf, host, port string
		want                   bool
	}{
		{"it does", conf, "10.0.0.1", "5432", true},
		{"another port", conf, "10.0.0.1", "54321", false},
		{"an address that begins so", conf, "10.0.0.11", "5432", false},
		{"an earlier line", conf, "10.0.0.9", "5432", false},
		{"nobody", "work_mem = '4MB'\n", "10.0.0.1", "5432", false},
		{"at the end", "primary_conninfo = 'port=5432 host=10.0.0.1'", "10.0.0.1", "5432", true},
	}
	for _, c := range cases {
		if got := namesUpstream(c.conf, c.host, c.port); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestMustBeCut(t *testing.T) {
	a := lonely(t)
	r := unstarted(a, "db-1.m2")
	if err := os.MkdirAll(r.dataDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(r.dataDir(), name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := fence.Case{
		Postgres:   "10.0.0.1:5432",
		Leadership: fence.Leadership{Database: "db-1", Leader: "m1", Sync: patroni.Sync{Leader: "m1", Standbys: []string{"m2", "m3"}}},
	}
	expect := func(phase fence.Phase, want bool, when string) {
		t.Helper()
		c.Phase = phase
		if got := r.mustBeCut(c); got != want {
			t.Errorf("%s, %s: %v, want %v", phase, when, got, want)
		}
	}
	write("standby.signal", "")
	expect(fence.Revoked, true, "nothing is known of its upstream")
	write("postgresql.conf", "primary_conninfo = 'host=10.0.0.1 port=5432'\n")
	expect(fence.Cutting, true, "it receives from the lost one")
	expect(fence.Revoked, true, "it would receive from the lost one")
	write("postgresql.conf", "primary_conninfo = 'host=10.0.0.3 port=5432'\n")
	expect(fence.Cutting, true, "it follows another one, so far")
	expect(fence.Revoked, false, "it follows another one")
	write("postgresql.conf", "primary_conninfo = 'host=10.0.0.1 port=5432'\n")
	if err := os.Remove(filepath.Join(r.dataDir(), "standby.signal")); err != nil {
		t.Fatal(err)
	}
	expect(fence.Revoked, false, "it was promoted")
	r.ID = "db-1.m4"
	expect(fence.Cutting, false, "it cannot confirm anything")
	r.ID = "db-2.m2"
	expect(fence.Cutting, false, "another database")
}

// noCutter leaves cutting to the test.
type noCutter struct{}

func (noCutter) name() string                                    { return "none" }
func (noCutter) sync(context.Context, []cut, func(...cut)) error { return nil }

// pair is a primary and a synchronous standby, with the real Patroni, on one host.
type pair struct {
	*world
	agent            *Host
	primary, standby member.Assignment
}

func newPair(t *testing.T) *pair {
	t.Helper()
	t.Parallel()
	if _, err := FindPatroni(); err != nil {
		testkit.Missing(t, err.Error())
	}
	p := &pair{world: newWorld(t, "")}
	p.agent, _ = p.run(func(a *Host) { a.spares.keep, a.cut = 1, noCutter{} })
	p.primary = p.Assignment("db-1", 1)
	p.primary.Cluster.Sync = patroni.SyncSingle
	p.standby = p.Assignment("db-1", 1)
	p.standby.ID, p.standby.Name, p.standby.Cluster = "db-1.m2", "m2", p.primary.Cluster
	p.Assign(p.primary)
	ready := func(r member.Report) error {
		if !r.Ready {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	}
	p.Awaits(p.primary.ID, 30*time.Second, ready)
	p.Assign(p.standby)
	p.Awaits(p.standby.ID, time.Minute, ready)
	p.inSync("m1", "m2")
	return p
}

// inSync waits until a leader has a standby that may replace it.
func (p *pair) inSync(leader, standby string) (l fence.Leadership) {
	p.Helper()
	testkit.Eventually(p.T, time.Minute, func() (err error) {
		l, err = fence.Read(p.Context(), p.Store.Client, "db-1")
		if err == nil && (l.Leader != leader || !l.Replaceable() || l.Sync.Standbys[0] != standby) {
			err = fmt.Errorf("leadership %+v", l)
		}
		return err
	})
	return l
}

// ask asks a member for one text, past Patroni.
func (p *pair) ask(of member.Assignment, sql string) (text string, err error) {
	ctx, cancel := context.WithTimeout(p.Context(), patience.For(5*time.Second))
	defer cancel()
	conn, err := p.agent.admin(ctx, of)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	err = conn.QueryRow(ctx, sql, pgx.QueryExecModeExec).Scan(&text)
	return text, err
}

// cuts has the standby cut off in these cases, as the agent does at each look: again,
// where the server did not answer in time.
func (p *pair) cuts(cutter *receiverCutter, cases ...fence.Case) {
	p.Helper()
	var wanted []cut
	for _, c := range cases {
		wanted = append(wanted, cut{from: c, standby: p.agent.runner(p.Context(), p.standby.ID)})
	}
	var made []cut
	testkit.Eventually(p.T, hosttest.Soon, func() (err error) {
		made = nil
		return cutter.deal(p.Context(), p.agent.runner(p.Context(), p.standby.ID), slices.Clone(wanted), func(c ...cut) { made = append(made, c...) })
	})
	for _, c := range cases {
		if c.Phase == fence.Cutting && len(made) == 0 {
			p.Error("a cut that was asked for does not hold")
		}
	}
}

func (p *pair) open(phase fence.Phase, l fence.Leadership) fence.Case {
	return fence.Case{
		ID: "1", Phase: phase, Leadership: l,
		Postgres: net.JoinHostPort(p.primary.Address, strconv.Itoa(p.primary.Port)),
		Patroni:  net.JoinHostPort(p.primary.Address, strconv.Itoa(p.primary.RESTPort)),
	}
}

// log is what Patroni of a member wrote.
func (p *pair) log(of member.Assignment) string {
	p.Helper()
	text, err := os.ReadFile(filepath.Join(p.Dir, "members", of.ID, patroni.LogDir, "patroni.log"))
	p.Must(err)
	return string(text)
}

// The standby's own Patroni does what it can to have it receive again: the cut holds,
// Patroni promotes behind it, and it is lifted when it may be.
func TestTheReceiverCutHoldsAgainstPatroni(t *testing.T) {
	p := newPair(t)
	l := p.inSync("m1", "m2")
	cutter := &receiverCutter{host: p.agent}
	lost := p.open(fence.Cutting, l)
	p.cuts(cutter, lost)
	const refusal = "Failed to remove some unwanted parameters"
	// Patroni tries three times; at no moment is anything received.
	testkit.Eventually(t, time.Minute, func() error {
		for _, c := range []struct {
			of  member.Assignment
			sql string
		}{
			{p.standby, "SELECT count(*)::text FROM pg_stat_activity WHERE backend_type = 'walreceiver'"},
			{p.primary, "SELECT count(*)::text FROM pg_stat_replication WHERE application_name = 'm2'"},
		} {
			if n, err := p.ask(c.of, c.sql); err != nil || n != "0" {
				t.Fatalf("%s: %q: %s, %v", c.of.Name, c.sql, n, err)
			}
		}
		if n := strings.Count(p.log(p.standby), refusal); n < 3 {
			return fmt.Errorf("Patroni tried %d times to undo the cut", n)
		}
		return nil
	})
	p.cuts(cutter, lost)

	// Someone undoes it by force: the next look makes it again.
	p.Must(os.Chmod(filepath.Join(p.Dir, "members", p.standby.ID, patroni.DataDir, autoConfFile), openMode))
	testkit.Eventually(t, time.Minute, func() error {
		n, err := p.ask(p.primary, "SELECT count(*)::text FROM pg_stat_replication WHERE application_name = 'm2'")
		if err == nil && n == "0" {
			err = errors.New("Patroni has not undone the cut")
		}
		return err
	})
	// The primary is lost, and replaced by the standby that is cut off. It hangs first: in
	// time its Patroni would take who receives nothing from the list of those in sync.
	l = p.inSync("m1", "m2")
	lost = p.open(fence.Cutting, l)
	p.stopPatroni(p.primary)
	p.cuts(cutter, lost)
	p.killPostmaster(p.primary)
	testkit.Eventually(t, time.Minute, func() error {
		recovery, err := p.ask(p.standby, "SELECT pg_is_in_recovery()::text")
		if err == nil && recovery != "false" {
			err = errors.New("not promoted")
		}
		return err
	})
	p.cuts(cutter, p.open(fence.Revoked, l))
	if p.agent.runner(t.Context(), p.standby.ID).isCut() {
		t.Error("the cut of the new primary is not lifted")
	}
	p.inSync("m2", "m1")
}

// A case that is over leaves the standby as it was.
func TestAReceiverCutIsLifted(t *testing.T) {
	p := newPair(t)
	cutter := &receiverCutter{host: p.agent}
	p.cuts(cutter, p.open(fence.Cutting, p.inSync("m1", "m2")))
	if !p.agent.runner(t.Context(), p.standby.ID).isSealed() {
		t.Error("the cut is not sealed")
	}
	p.cuts(cutter)
	if p.agent.runner(t.Context(), p.standby.ID).isCut() {
		t.Error("the cut is still on disk")
	}
	testkit.Eventually(t, time.Minute, func() error {
		n, err := p.ask(p.primary, "SELECT count(*)::text FROM pg_stat_replication WHERE application_name = 'm2'")
		if err == nil && n == "0" {
			err = errors.New("it does not receive")
		}
		return err
	})
	info, err := os.Stat(filepath.Join(p.Dir, "members", p.standby.ID, patroni.DataDir, autoConfFile))
	if err != nil || info.Mode().Perm() != openMode {
		t.Errorf("mode of the file: %v, %v", info.Mode(), err)
	}
}

// stopPatroni has a Patroni hang, until its agent sees that and kills it.
func (p *pair) stopPatroni(of member.Assignment) {
	p.Helper()
	patroni, err := p.agent.runner(p.Context(), of.ID).Group.Leader()
	p.Must(err)
	p.Must(syscall.Kill(patroni.PID, syscall.SIGSTOP))
}

// killPostmaster kills PostgreSQL as a crash would, if its agent did not before. The
// first line of its file is it.
func (p *pair) killPostmaster(of member.Assignment) {
	p.Helper()
	pid, err := postgres.Postmaster(filepath.Join(p.Dir, "members", of.ID, patroni.DataDir))
	p.Must(err)
	if err := syscall.Kill(pid, syscall.SIGKILL); !errors.Is(err, syscall.ESRCH) {
		p.Must(err)
	}
}
