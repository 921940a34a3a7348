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

	"howdah/internal/engine/patroni/program"
	"howdah/internal/engine/postgres"
	"howdah/internal/failover/fence"
	"howdah/internal/host/database/cut"
	"howdah/internal/host/database/dial"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
	"howdah/internal/testkit/patience"
)

// noCutter leaves cutting to the test.
type noCutter struct{}

func (noCutter) Name() string                                            { return "none" }
func (noCutter) Sync(context.Context, []cut.Cut, func(...cut.Cut)) error { return nil }

// pair is a primary and a synchronous standby, with the real Patroni, on one host.
type pair struct {
	*world
	agent            *Host
	primary, standby member.Assignment
}

func newPair(t *testing.T) *pair {
	t.Helper()
	t.Parallel()
	if _, err := program.Find(); err != nil {
		testkit.Missing(t, err.Error())
	}
	p := &pair{world: newWorld(t, "")}
	p.agent, _ = p.run(func(a *Host) { a.spares.Keep, a.fences.Cutter = 1, noCutter{} })
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
	conn, err := dial.Admin(ctx, p.agent.Agent, of)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	err = conn.QueryRow(ctx, sql, pgx.QueryExecModeExec).Scan(&text)
	return text, err
}

// cuts has the standby cut off in these cases, as the agent does at each look: again,
// where the server did not answer in time.
func (p *pair) cuts(cutter *cut.Receiver, cases ...fence.Case) {
	p.Helper()
	var wanted []cut.Cut
	for _, c := range cases {
		wanted = append(wanted, cut.Cut{From: c, Standby: p.agent.runner(p.Context(), p.standby.ID).standby})
	}
	var made []cut.Cut
	testkit.Eventually(p.T, hosttest.Soon, func() (err error) {
		made = nil
		return cutter.Deal(p.Context(), p.agent.runner(p.Context(), p.standby.ID).standby, slices.Clone(wanted), func(c ...cut.Cut) { made = append(made, c...) })
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
	cutter := &cut.Receiver{Standbys: p.agent.standbys}
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
	p.Must(os.Chmod(filepath.Join(p.Dir, "members", p.standby.ID, patroni.DataDir, cut.AutoConfFile), 0o600))
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
	if p.agent.runner(t.Context(), p.standby.ID).standby.IsCut() {
		t.Error("the cut of the new primary is not lifted")
	}
	p.inSync("m2", "m1")
}

// A case that is over leaves the standby as it was.
func TestAReceiverCutIsLifted(t *testing.T) {
	p := newPair(t)
	cutter := &cut.Receiver{Standbys: p.agent.standbys}
	p.cuts(cutter, p.open(fence.Cutting, p.inSync("m1", "m2")))
	s := p.agent.runner(t.Context(), p.standby.ID).standby
	if !s.IsSealed() {
		t.Error("the cut is not sealed")
	}
	testkit.Eventually(t, hosttest.Soon, func() error {
		if s.LSN() == 0 {
			return errors.New("a report of the cut would not say what the standby has")
		}
		return nil
	})
	p.cuts(cutter)
	if s.IsCut() {
		t.Error("the cut is still on disk")
	}
	testkit.Eventually(t, time.Minute, func() error {
		n, err := p.ask(p.primary, "SELECT count(*)::text FROM pg_stat_replication WHERE application_name = 'm2'")
		if err == nil && n == "0" {
			err = errors.New("it does not receive")
		}
		return err
	})
	info, err := os.Stat(filepath.Join(p.Dir, "members", p.standby.ID, patroni.DataDir, cut.AutoConfFile))
	if err != nil || info.Mode().Perm() != 0o600 {
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

// Patroni may have the file open when it is sealed, and take the cut out of it afterwards. What is
// left says nothing, and may not be written: a cut is made of it all the same, and is lifted again.
func TestACutIsMadeWhereASealOutlivedTheOneBefore(t *testing.T) {
	p := newPair(t)
	l := p.inSync("m1", "m2")
	p.Must(os.Chmod(filepath.Join(p.Dir, "members", p.standby.ID, patroni.DataDir, cut.AutoConfFile), 0o400))
	cutter := &cut.Receiver{Standbys: p.agent.standbys}
	p.cuts(cutter, p.open(fence.Cutting, l))
	if !p.agent.runner(t.Context(), p.standby.ID).standby.IsSealed() {
		t.Error("the cut is not sealed")
	}
	p.cuts(cutter)
	p.inSync("m1", "m2")
}
