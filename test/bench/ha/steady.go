package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"howdah/api/rds"
	"howdah/internal/testkit/ack"
	"howdah/internal/testkit/rig"
)

// createTimes measures how long a new instance takes to be available.
func createTimes(ctx context.Context, b *bench, r *rig.Rig) error {
	for i := range b.runs {
		for _, kind := range []struct {
			name, target string
			multiAZ      bool
		}{{"create to available, single", "5", false}, {"create to available, Multi-AZ", "10", true}} {
			name := fmt.Sprintf("bench%d%t", i, kind.multiAZ)
			// The prepared data directories of the last run are replaced first, as on a warm
			// machine.
			sleep(ctx, 5*time.Second)
			began := time.Now()
			if err := r.Create(ctx, name, kind.multiAZ); err != nil {
				return err
			}
			b.add(kind.name, kind.target, "s", time.Since(began).Seconds())
			in := &rds.DeleteDBInstanceMessage{DBInstanceIdentifier: &name, SkipFinalSnapshot: ptr(true)}
			if err := r.Call(ctx, "DeleteDBInstance", in, &rds.DeleteDBInstanceResult{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// etcdDead kills the control plane, and with it etcd, for a minute.
func etcdDead(ctx context.Context, b *bench, r *rig.Rig) error {
	if err := r.Create(ctx, instance, true); err != nil {
		return err
	}
	for range max(b.runs/5, 1) {
		l, stop, err := startLoad(ctx, r, multiAZ, fmt.Sprintf("acks_%d", time.Now().UnixNano()))
		if err != nil {
			return err
		}
		sleep(ctx, before)
		struck := time.Now()
		r.KillPart("serve")
		sleep(ctx, time.Minute)
		if err := r.StartPart("serve"); err != nil {
			stop()
			return err
		}
		sleep(ctx, 15*time.Second)
		stop()
		b.add("write outage, etcd dead for 60 s (longest pause of a writer)", "0", "s", ack.Outage(l.Acks(), struck).Seconds())
		if err := b.check(ctx, l); err != nil {
			return err
		}
	}
	return b.noFailover(ctx, r)
}

// noFailover checks that nothing failed over on this rig.
func (b *bench) noFailover(ctx context.Context, r *rig.Rig) error {
	database, err := r.Database(ctx, instance)
	if err != nil {
		return err
	}
	all, err := r.Failovers(ctx, database)
	if err == nil && len(all) > 0 {
		err = fmt.Errorf("%d failovers happened: %s", len(all), all[0].Summary())
	}
	return err
}

// falseAlarms keeps both cores busy with four processes each, while the database
// is used, and counts failovers.
func falseAlarms(ctx context.Context, b *bench, r *rig.Rig) error {
	if err := r.Create(ctx, instance, true); err != nil {
		return err
	}
	database, err := r.Database(ctx, instance)
	if err != nil {
		return err
	}
	l, stop, err := startLoad(ctx, r, multiAZ, "acks_busy")
	if err != nil {
		return err
	}
	defer stop()
	var busy []*exec.Cmd
	for range 8 {
		cmd := exec.Command("/bin/sh", "-c", "while :; do :; done")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := cmd.Start(); err != nil {
			return err
		}
		busy = append(busy, cmd)
	}
	began := time.Now()
	sleep(ctx, b.busy)
	for _, cmd := range busy {
		cmd.Process.Kill()
		cmd.Wait()
	}
	stop()
	all, err := r.Failovers(ctx, database)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("false alarms: 8 busy processes on 2 cores for %s", b.busy)
	b.add(name, "0", "failovers", float64(len(all)))
	b.add("  longest pause of a writer meanwhile", "", "s", ack.Outage(l.Acks(), began).Seconds())
	return b.check(ctx, l)
}

// memory measures what the control plane, the edge and the agents take.
func memory(ctx context.Context, b *bench, r *rig.Rig) error {
	if err := r.Create(ctx, instance, true); err != nil {
		return err
	}
	sleep(ctx, 30*time.Second)
	for range b.runs {
		var sum float64
		var parts []string
		for _, name := range r.Parts() {
			pss, err := pssOf(r.PID(name))
			if err != nil {
				return err
			}
			sum += pss
			parts = append(parts, fmt.Sprintf("%s %.0f", name, pss))
		}
		b.add(memoryRow, "250", "MB", sum)
		b.note(memoryRow, strings.Join(parts, ", "))
		sleep(ctx, time.Second)
	}
	return nil
}

const memoryRow = "memory of control plane, edge and agents, idle, 1 Multi-AZ instance"

var rssForm = regexp.MustCompile(`(?m)^Rss:\s+([0-9]+) kB`)

// pssOf returns the resident memory of a process in MB. Pages of the program that several parts
// share count for each of them.
func pssOf(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	match := rssForm.FindSubmatch(text)
	if match == nil {
		return 0, errors.New("no Rss in smaps_rollup")
	}
	kb, err := strconv.ParseFloat(string(match[1]), 64)
	return kb / 1000, err
}

// throughput compares the endpoint with a direct connection, in alternating runs.
func throughput(label string) func(context.Context, *bench, *rig.Rig) error {
	return func(ctx context.Context, b *bench, r *rig.Rig) error {
		if err := r.Create(ctx, instance, false); err != nil {
			return err
		}
		database, err := r.Database(ctx, instance)
		if err != nil {
			return err
		}
		m, err := r.Leader(ctx, database)
		if err != nil {
			return err
		}
		i, err := r.Instance(ctx, instance)
		if err != nil {
			return err
		}
		endpoint := [2]string{*i.Endpoint.Address, strconv.Itoa(int(*i.Endpoint.Port))}
		direct := [2]string{m.Address, strconv.Itoa(m.Port)}
		if _, err := pgbench(ctx, r, direct, "-i", "-s", "10", "-q"); err != nil {
			return err
		}
		for _, clients := range []string{"1", "16"} {
			for range b.runs {
				d, err := pgbench(ctx, r, direct, selectOnly(clients)...)
				if err != nil {
					return err
				}
				e, err := pgbench(ctx, r, endpoint, selectOnly(clients)...)
				if err != nil {
					return err
				}
				row := fmt.Sprintf("throughput through the endpoint / direct, %s, %s clients", label, clients)
				target := map[string]string{"kernel1": "0.95", "kernel16": "0.95", "HAProxy1": "0.8", "HAProxy16": "0.6"}[label+clients]
				b.add(row, target, "ratio", e/d)
				b.note(row, fmt.Sprintf("last: %.0f against %.0f tps", e, d))
			}
		}
		return nil
	}
}

func selectOnly(clients string) []string {
	return []string{"-S", "-M", "prepared", "-n", "-c", clients, "-j", "1", "-T", "5"}
}

var tpsForm = regexp.MustCompile(`tps = ([0-9.]+) \(without`)

// pgbench runs PostgreSQL's own benchmark with TLS, and returns its tps.
func pgbench(ctx context.Context, r *rig.Rig, at [2]string, args ...string) (float64, error) {
	cmd, err := r.PGBench(ctx, at[0], at[1], args...)
	if err != nil {
		return 0, err
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("pgbench %s: %w: %s", strings.Join(args, " "), err, out)
	}
	match := tpsForm.FindSubmatch(out)
	if match == nil {
		return 0, nil // initialisation prints none
	}
	return strconv.ParseFloat(string(match[1]), 64)
}

// sessionsCut has 40 idle sessions, and 40 in a query, when their primary freezes. It measures when
// the last client learns of it, counted from when the first client did.
func sessionsCut(ctx context.Context, b *bench, r *rig.Rig) error {
	if err := r.Create(ctx, instance, true); err != nil {
		return err
	}
	for range b.runs {
		if err := b.cutOnce(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) cutOnce(ctx context.Context, r *rig.Rig) error {
	database, err := r.Database(ctx, instance)
	if err != nil {
		return err
	}
	if err := r.Wait(patience, func() error { return r.InSync(ctx, database, 1) }); err != nil {
		return err
	}
	old, err := r.Leader(ctx, database)
	if err != nil {
		return err
	}
	config, err := r.Config(ctx, instance)
	if err != nil {
		return err
	}
	known := len(mustFailovers(ctx, r, database))
	clients := &sessions{}
	if err := clients.open(ctx, config); err != nil {
		return err
	}
	if err := old.Freeze(); err != nil {
		return err
	}
	ended := clients.wait(patience)
	err = r.Wait(patience, func() error {
		if len(mustFailovers(ctx, r, database)) <= known {
			return errors.New("no failover")
		}
		return nil
	})
	err = errors.Join(err, old.Thaw())
	if err != nil {
		return err
	}
	b.failovers++
	record := lastOf(mustFailovers(ctx, r, database))
	if len(ended) < 2*eachKind {
		return fmt.Errorf("only %d of %d sessions were cut", len(ended), 2*eachKind)
	}
	// Sessions are cut when the new leader is elected: then the endpoint leaves the old one.
	last := ended[0]
	for _, t := range ended {
		if t.After(last) {
			last = t
		}
	}
	b.add("sessions of a frozen primary, 40 idle and 40 in a query: all cut after the endpoint moved", "0.1", "s", last.Sub(record.Elected).Seconds())
	return nil
}
