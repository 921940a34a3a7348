package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"howdah/api/rds"
	"howdah/internal/testkit/rig"
)

// name is that of the instance that is measured.
const name = "bench"

// class has shared_buffers of 2 GB by RDS's formula.
const class = "db.m5.large"

type bench struct {
	binary, dir          string
	svg                  string
	costs                bool
	rounds, scale, pairs int
	iops, mbps           int
	rate                 int
	free                 bool
	heat, after          time.Duration

	rig   *rig.Rig
	id    string // of the database
	turns []turn
}

// turn is one failover.
type turn struct {
	warm   bool
	writer int           // buffers of the hottest relation on the primary before it
	reader int           // and on the standby
	before float64       // transactions a second
	back   time.Duration // until 90 % of that again; 0: not in the time that was watched
	hit    float64       // percent of the blocks read in the first ten seconds that were cached
	took   time.Duration // from the request until the load runs again
	series []float64     // transactions of each second after it
}

func (b *bench) run(ctx context.Context) (err error) {
	path, err := os.MkdirTemp(b.dir, "bench-ccm-")
	if err == nil {
		err = os.Chmod(path, 0o755)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(path)) }()
	if b.rig, err = rig.Start(ctx, rig.Options{Binary: b.binary, Dir: path}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.rig.Close()) }()
	if err := b.create(ctx); err != nil {
		return err
	}
	for n := range b.rounds {
		for _, warm := range []bool{n%2 == 0, n%2 != 0} {
			t, err := b.turn(ctx, warm)
			if err != nil {
				return fmt.Errorf("round %d: %w", n+1, err)
			}
			b.turns = append(b.turns, t)
			fmt.Fprintln(os.Stderr, t)
		}
	}
	if len(b.turns) > 0 {
		b.print()
	}
	if b.svg != "" {
		err = b.plot(b.svg)
	}
	if err == nil && b.costs {
		err = errors.Join(b.cost(ctx), b.speed(ctx))
	}
	return err
}

func (b *bench) create(ctx context.Context) error {
	err := b.rig.AskWith(ctx, name, func(in *rds.CreateDBInstanceMessage) {
		in.DBInstanceClass, in.AllocatedStorage, in.MultiAZ = new(class), new(int32(100)), new(true)
	})
	if err == nil {
		err = b.rig.WaitStatus(ctx, name, "available", 5*time.Minute)
	}
	if err != nil {
		return err
	}
	if b.id, err = b.rig.Database(ctx, name); err != nil {
		return err
	}
	cmd, err := b.pgbench(ctx, "-i", "-I", "dtGvp", "-q", "-s", strconv.Itoa(b.scale))
	if err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make pgbench's tables: %w: %s", err, out)
	}
	// A new primary writes down, at the first reading of a row, that this was committed. The next standby
	// would get all pages by that. Rows of an old database are frozen, and have it.
	for _, sql := range []string{"CREATE EXTENSION pg_buffercache SCHEMA public", "VACUUM (FREEZE) public.pgbench_accounts"} {
		if _, err := b.psql(ctx, b.leader, sql); err != nil {
			return err
		}
	}
	return nil
}

// turn heats the primary, fails over, and watches the load.
func (b *bench) turn(ctx context.Context, warm bool) (turn, error) {
	t := turn{warm: warm}
	if err := b.prepare(ctx, warm); err != nil {
		return t, err
	}
	for _, phase := range []struct {
		long time.Duration
		rate int
		mix  []string
	}{{b.heat, 0, reads}, {30 * time.Second, b.rate, auroras}} {
		l, err := b.load(ctx, phase.long, phase.rate, phase.mix)
		if err != nil {
			return t, err
		}
		l.wait()
		t.before = l.last(20)
	}
	if warm {
		if err := b.rig.Wait(5*time.Minute, func() error { return b.isWarm(ctx) }); err != nil {
			return t, err
		}
	}
	if err := b.compare(ctx, &t); err != nil {
		return t, err
	}
	if err := errors.Join(b.throttle(true), os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0)); err != nil {
		return t, err
	}
	old, err := b.leader(ctx)
	if err != nil {
		return t, err
	}
	began := time.Now()
	if err := b.rig.Call(ctx, "RebootDBInstance", &rds.RebootDBInstanceMessage{DBInstanceIdentifier: new(name), ForceFailover: new(true)}, &rds.RebootDBInstanceResult{}); err != nil {
		return t, err
	}
	if err := b.rig.Wait(time.Minute, func() error { return b.serves(ctx, old) }); err != nil {
		return t, err
	}
	t.took = time.Since(began)
	return t, b.watch(ctx, &t)
}

// watch runs the load after a failover.
func (b *bench) watch(ctx context.Context, t *turn) error {
	const sql = "SELECT blks_hit || ' ' || blks_read FROM pg_stat_database WHERE datname = 'postgres'"
	first, err := b.psql(ctx, b.leader, sql)
	if err != nil {
		return err
	}
	if err := b.throttle(true); err != nil {
		return err
	}
	l, err := b.load(ctx, b.after, b.rate, auroras)
	if err != nil {
		return err
	}
	defer l.wait()
	throttled := make(chan struct{})
	go func() {
		defer close(throttled)
		b.stayThrottled(l)
	}()
	select {
	case <-time.After(10 * time.Second):
	case <-ctx.Done():
		return ctx.Err()
	}
	then, err := b.psql(ctx, b.leader, sql)
	if err != nil {
		return err
	}
	var hit, read, hits, reads float64
	if _, err := fmt.Sscan(first+" "+then, &hit, &read, &hits, &reads); err != nil {
		return err
	}
	if all := hits - hit + reads - read; all > 0 {
		t.hit = 100 * (hits - hit) / all
	}
	l.wait()
	<-throttled
	if err := b.throttle(false); err != nil {
		return err
	}
	t.series = l.all()
	for n := range t.series { // one lucky second does not count
		if mean(t.series[n:min(n+5, len(t.series))]) >= 0.9*t.before && t.series[n] >= 0.9*t.before {
			t.back = time.Duration(n+1) * time.Second
			break
		}
	}
	return nil
}

// prepare has the standby start with an empty cache, and with cluster cache management or without.
func (b *bench) prepare(ctx context.Context, warm bool) error {
	if err := b.rig.Tag(ctx, name, "howdah:warm-standby", strconv.FormatBool(warm)); err != nil {
		return err
	}
	if err := b.rig.Wait(time.Minute, func() error {
		got, err := b.psql(ctx, b.standby, "SHOW ccm.enabled")
		if want := map[bool]string{true: "on", false: "off"}[warm]; err == nil && got != want {
			err = fmt.Errorf("ccm.enabled is %s", got)
		}
		return err
	}); err != nil {
		return err
	}
	m, err := b.standby(ctx)
	if err == nil {
		err = b.restart(ctx, m)
	}
	return err
}

// compare counts what both have cached of the hottest relation.
func (b *bench) compare(ctx context.Context, t *turn) error {
	const sql = "SELECT count(*) FROM public.pg_buffercache WHERE relforknumber = 0 AND relfilenode = pg_relation_filenode('public.pgbench_accounts')"
	for of, n := range map[*int]func(context.Context) (rig.Member, error){&t.writer: b.leader, &t.reader: b.standby} {
		text, err := b.psql(ctx, n, sql)
		if err == nil {
			*of, err = strconv.Atoi(text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isWarm returns nil once the standby has what is hot.
func (b *bench) isWarm(ctx context.Context) error {
	conn, err := b.ask(ctx, b.standby, "rdsadmin", "SELECT coalesce(warm_percent, 0) || ' ' || coalesce(state, '') FROM ccm.reader_status()")
	percent, state, _ := strings.Cut(conn, " ")
	if n, _ := strconv.ParseFloat(percent, 64); err == nil && n < 99 {
		err = fmt.Errorf("the standby has %s %%, and is %s", percent, state)
	}
	return err
}

// serves returns nil once another member leads, and clients reach it.
func (b *bench) serves(ctx context.Context, old rig.Member) error {
	m, err := b.leader(ctx)
	if err == nil && m.Name == old.Name {
		err = fmt.Errorf("%s leads still", m.Name)
	}
	if err != nil {
		return err
	}
	cmd, err := b.pgbench(ctx, "-n", "-t", "1", "-b", "tpcb-like")
	if err != nil {
		return err
	}
	return cmd.Run()
}

func (b *bench) leader(ctx context.Context) (rig.Member, error) { return b.rig.Leader(ctx, b.id) }

func (b *bench) standby(ctx context.Context) (rig.Member, error) {
	leader, err := b.leader(ctx)
	if err != nil {
		return rig.Member{}, err
	}
	all, err := b.rig.Members(ctx, b.id)
	if err != nil {
		return rig.Member{}, err
	}
	i := slices.IndexFunc(all, func(m rig.Member) bool { return m.Name != leader.Name })
	if i < 0 {
		return rig.Member{}, errors.New("there is no standby")
	}
	return all[i], nil
}

// psql asks a member for a text, in the database of the load.
func (b *bench) psql(ctx context.Context, of func(context.Context) (rig.Member, error), sql string) (string, error) {
	return b.ask(ctx, of, "postgres", sql)
}

func (b *bench) ask(ctx context.Context, of func(context.Context) (rig.Member, error), database, sql string) (string, error) {
	m, err := of(ctx)
	if err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, "psql", "-X", "-q", "-At", "-c", sql, "-h", m.SocketDir(), "-p", strconv.Itoa(m.Port), "-U", "rdsadmin", "-d", database).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", sql, err, out)
	}
	return strings.TrimSpace(string(out)), err
}
