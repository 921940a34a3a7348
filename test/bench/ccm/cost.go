package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"howdah/internal/testkit/rig"
)

const (
	// turnTime is how long cluster cache management is on, or off, and settleTime what of that does not
	// count. One load runs all the time, as two loads differ by more than what is to be measured.
	turnTime, settleTime = 10 * time.Second, 2 * time.Second
	// steadyTime is how long the processors' time of steady rounds is measured.
	steadyTime = 40 * time.Second
)

// cost measures what a scan each second costs the primary's clients, and both processors. Primary and
// standby share those of this machine, so it is what both sides cost.
func (b *bench) cost(ctx context.Context) error {
	if err := b.prepare(ctx, true); err != nil {
		return err
	}
	if err := b.rig.Wait(5*time.Minute, func() error { return b.isWarm(ctx) }); err != nil {
		return err
	}
	l, err := b.load(ctx, time.Duration(2*b.pairs+1)*turnTime, 0, auroras)
	if err != nil {
		return err
	}
	defer l.wait()
	time.Sleep(turnTime / 2)
	var ratios, lags []float64
	for n := range b.pairs {
		var tps, lag [2]float64
		for _, on := range [][]int{{1, 0}, {0, 1}}[n%2] {
			if err := b.set(ctx, "ccm.enabled", []string{"off", "on"}[on], "ccm.interval", "1s"); err != nil {
				return err
			}
			time.Sleep(settleTime)
			from := len(l.all())
			lag[on] = b.replayLag(ctx, turnTime-settleTime)
			tps[on] = mean(l.all()[from:])
		}
		ratios, lags = append(ratios, tps[1]/tps[0]), append(lags, lag[1]/lag[0])
	}
	fmt.Printf("\nwith a scan each second / without, %d pairs: TPS %s, replay lag %s\n", b.pairs, spread(ratios), spread(lags))
	l.wait()
	return b.steady(ctx)
}

// spread says the median of ratios, the middle half of them, and where the true median is with 95 in 100:
// between the values of two ranks, for which no shape of the distribution is taken for granted.
func spread(ratios []float64) string {
	slices.Sort(ratios)
	n := len(ratios)
	rank := max(0, int(float64(n)/2-0.98*math.Sqrt(float64(n))))
	return fmt.Sprintf("%.3f (median; the middle half from %.3f to %.3f; 95 in 100 that the true one is in %.3f to %.3f)",
		median(ratios), ratios[n/4], ratios[n-1-n/4], ratios[rank], ratios[n-1-rank])
}

// replayLag is the mean of what the primary says of it for so long, in milliseconds.
func (b *bench) replayLag(ctx context.Context, long time.Duration) float64 {
	var all []float64
	for ends := time.Now().Add(long); time.Now().Before(ends); time.Sleep(500 * time.Millisecond) {
		text, err := b.psql(ctx, b.leader, "SELECT extract(epoch FROM replay_lag) * 1000 FROM pg_stat_replication WHERE replay_lag IS NOT NULL LIMIT 1")
		if ms, bad := strconv.ParseFloat(text, 64); err == nil && bad == nil {
			all = append(all, ms)
		}
	}
	return mean(all)
}

// steady measures the processors' time of rounds in which nothing is missing.
func (b *bench) steady(ctx context.Context) error {
	if err := b.set(ctx, "ccm.enabled", "on", "ccm.interval", "1s"); err != nil {
		return err
	}
	look := func() (primary, standby time.Duration, scans int, err error) {
		asked, err := b.ask(ctx, b.leader, "rdsadmin", "SELECT reader_pid FROM ccm.status()")
		if err != nil {
			return 0, 0, 0, err
		}
		done, err := b.ask(ctx, b.standby, "rdsadmin", "SELECT scans FROM ccm.reader_status()")
		if err == nil {
			scans, err = strconv.Atoi(done)
		}
		if err != nil {
			return 0, 0, 0, err
		}
		asks, err := b.worker(ctx)
		if err == nil {
			primary, err = processorTime(asked)
		}
		if err == nil {
			standby, err = processorTime(asks)
		}
		return primary, standby, scans, err
	}
	var p, s time.Duration
	var n int
	err := b.rig.Wait(time.Minute, func() (err error) {
		p, s, n, err = look()
		return err
	})
	if err != nil {
		return err
	}
	time.Sleep(steadyTime)
	primary, standby, scans, err := look()
	if err == nil && scans == n {
		err = errors.New("no round was done")
	}
	if err != nil {
		return err
	}
	per := func(d time.Duration) float64 { return d.Seconds() * 1000 / float64(scans-n) }
	fmt.Printf("a steady round of 2 GB of buffers: %.1f ms of a processor on the primary, %.1f ms on the standby (%d rounds)\n", per(primary-p), per(standby-s), scans-n)
	return nil
}

// worker returns the process of the standby's cache manager. No view of PostgreSQL has it, as it is in no
// database.
func (b *bench) worker(ctx context.Context) (pid string, err error) {
	m, err := b.standby(ctx)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(m.DataDir(), "postmaster.pid"))
	if err != nil {
		return "", err
	}
	postmaster, _, _ := strings.Cut(string(text), "\n")
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range all {
		title, bad := os.ReadFile(file)
		if bad != nil || !strings.Contains(string(title), "ccm") {
			continue
		}
		stat, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "stat"))
		_, rest, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == postmaster {
			return filepath.Base(filepath.Dir(file)), nil
		}
	}
	return "", errors.Join(errors.New("the standby has no cache manager"), err)
}

// processorTime is what a process used.
func processorTime(pid string) (time.Duration, error) {
	text, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, err := strconv.Atoi(fields[11])
	system, bad := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond, errors.Join(err, bad) // USER_HZ is 100
}

// speed measures how fast an empty cache is filled without a limit, beside plain reading of the same
// table.
func (b *bench) speed(ctx context.Context) error {
	if err := b.throttle(false); err != nil {
		return err
	}
	if err := b.set(ctx, "ccm.rate", "0", "ccm.interval", "1s"); err != nil {
		return err
	}
	m, err := b.standby(ctx)
	if err != nil {
		return err
	}
	where, err := b.psql(ctx, b.standby, "SELECT current_setting('data_directory') || '/' || pg_relation_filepath('public.pgbench_accounts')")
	if err != nil {
		return err
	}
	if err := b.restart(ctx, m); err != nil {
		return err
	}
	// It may have read all before we look first. So it counts from when the server is up.
	began := time.Now()
	err = b.rig.Wait(5*time.Minute, func() error {
		text, err := b.ask(ctx, b.standby, "rdsadmin", "SELECT total_bytes FROM ccm.reader_status()")
		if err = errors.Join(err, b.isWarm(ctx)); err != nil {
			return err
		}
		n, err := strconv.ParseFloat(text, 64)
		if err == nil {
			fmt.Printf("filling at no limit: %.0f MB in %.1f s, %.0f MB/s at least", n/1e6, time.Since(began).Seconds(), n/time.Since(began).Seconds()/1e6)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0); err != nil {
		return err
	}
	files, err := filepath.Glob(where + "*")
	if err != nil {
		return err
	}
	bytes := 0.0
	began = time.Now()
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		n, err := io.Copy(io.Discard, struct{ io.Reader }{f})
		if f.Close(); err != nil {
			return err
		}
		bytes += float64(n)
	}
	fmt.Printf("; reading the same files: %.0f MB/s\n", bytes/time.Since(began).Seconds()/1e6)
	return nil
}

// restart has a standby start with an empty cache, and the system with an empty page cache. Without the
// checkpoints it would replay all that was loaded, and have that in its cache.
func (b *bench) restart(ctx context.Context, m rig.Member) error {
	for range 2 {
		for _, of := range []func(context.Context) (rig.Member, error){b.leader, b.standby} {
			if _, err := b.psql(ctx, of, "CHECKPOINT"); err != nil {
				return err
			}
		}
	}
	if err := m.KillPostgres(); err != nil {
		return err
	}
	if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0); err != nil {
		return err
	}
	return b.rig.Wait(2*time.Minute, func() error { return b.rig.InSync(ctx, b.id, 1) })
}

// set gives the standby settings, whatever the platform gives it: names and values.
func (b *bench) set(ctx context.Context, settings ...string) error {
	for i := 0; i < len(settings); i += 2 {
		if _, err := b.psql(ctx, b.standby, fmt.Sprintf("ALTER SYSTEM SET %s = '%s'", settings[i], settings[i+1])); err != nil {
			return err
		}
	}
	_, err := b.psql(ctx, b.standby, "SELECT pg_reload_conf()")
	return err
}
