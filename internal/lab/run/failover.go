package run

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"howdah/internal/host/pace"
	"howdah/internal/lab/experiment"
	"howdah/internal/lab/pgbench"
	"howdah/internal/lab/result"
)

// failover puts a load on the server, has the primary role handed over meanwhile, and goes on with the
// same load. pgbench ends when its sessions are cut, so it is started again as soon as it can connect.
func (d *doing) failover(ctx context.Context, m manager, a experiment.Failover) error {
	o, remove, err := d.load(a.Load)
	if err != nil {
		return err
	}
	defer remove()
	if a.Load.Warmup > 0 {
		o.Time = time.Duration(a.Load.Warmup) * time.Second
		if _, err := pgbench.Run(ctx, o); err != nil {
			return fmt.Errorf("warm up: %w", err)
		}
	}
	var l loading
	o.Second = l.second
	ends := time.Now().Add(time.Duration(a.Load.Seconds+a.After) * time.Second)
	var running sync.WaitGroup
	running.Go(func() { l.run(ctx, o, ends) })
	asked, err := d.askFailover(ctx, m, time.Duration(a.Load.Seconds)*time.Second)
	running.Wait()
	if err != nil {
		return err
	}
	l.seconds = withSilence(l.seconds)
	d.point.Commands, d.point.Errors = append(d.point.Commands, l.commands...), append(d.point.Errors, l.messages...)
	for _, s := range l.seconds {
		d.ticks = append(d.ticks, result.Tick{Point: d.number, At: s.At, Name: "tps", Value: s.TPS}, result.Tick{Point: d.number, At: s.At, Name: "latency_ms", Value: s.Latency})
	}
	d.recovered(&l, asked, a)
	if err := m.WholeAgain(ctx); err != nil {
		return err
	}
	f := result.Fault{Kind: "failover", Began: asked, Proof: "the API accepted it", Healed: "all copies are ready again"}
	if f.Postmortems, err = m.Failovers(ctx, asked); err != nil {
		return err
	}
	if len(f.Postmortems) > 0 && f.Postmortems[0].Outage() > 0 { // 0: nobody saw its end
		d.figure("outage_s", f.Postmortems[0].Outage().Seconds())
	}
	d.point.Faults = append(d.point.Faults, f)
	return nil
}

// askFailover asks for a failover after a while.
func (d *doing) askFailover(ctx context.Context, m manager, after time.Duration) (asked time.Time, err error) {
	if !pace.Sleep(ctx, after) {
		return asked, ctx.Err()
	}
	asked = d.mark("a failover is asked for")
	return asked, m.Failover(ctx)
}

// recovered finds out when the throughput was back. Where it was not, back_s is how long was waited.
func (d *doing) recovered(l *loading, asked time.Time, a experiment.Failover) {
	cut := asked
	if n := slices.IndexFunc(l.ends, func(end time.Time) bool { return end.After(asked) }); n >= 0 {
		cut = l.ends[n]
	}
	before, after, back, ok := comeBack(l.seconds, asked, cut, a.Share)
	d.figure("tps_before", before)
	d.figure("tps_after", after)
	text := fmt.Sprintf("back at %.0f %%", 100*a.Share)
	if !ok {
		back = time.Duration(a.After) * time.Second
		text = fmt.Sprintf("not back at %.0f %% of %.1f transactions a second within %s: back_s is at least that", 100*a.Share, before, back)
		d.point.Errors = append(d.point.Errors, text)
	}
	d.figure("back_s", back.Seconds())
	d.point.Marks = append(d.point.Marks, result.Mark{At: asked.Add(back), Text: text})
}

// withSilence puts seconds without any transaction where no load could run.
func withSilence(all []pgbench.Second) (whole []pgbench.Second) {
	for n, s := range all {
		if n > 0 {
			for at := whole[len(whole)-1].At.Add(time.Second); s.At.Sub(at) > time.Second/2; at = at.Add(time.Second) {
				whole = append(whole, pgbench.Second{At: at})
			}
		}
		whole = append(whole, s)
	}
	return whole
}

// backFor is over how many seconds in a row the throughput has to be back.
const backFor = 3

// comeBack returns the mean throughput before a moment, and after the sessions were cut, and how long after
// the moment the throughput was at so great a share of what it was before, for backFor seconds in a row.
func comeBack(seconds []pgbench.Second, at, cut time.Time, share float64) (before, after float64, back time.Duration, ok bool) {
	var earlier, later []pgbench.Second
	for _, s := range seconds {
		switch {
		case !s.At.After(at):
			earlier = append(earlier, s)
		case s.At.Add(-time.Second).After(cut): // the seconds of the failover itself are neither
			later = append(later, s)
		}
	}
	before, after = meanTPS(earlier), meanTPS(later)
	for n := range later {
		if n+backFor <= len(later) && meanTPS(later[n:n+backFor]) >= share*before {
			return before, after, max(0, later[n].At.Add(-time.Second).Sub(at)), before > 0
		}
	}
	return before, after, 0, false
}

func meanTPS(all []pgbench.Second) float64 {
	if len(all) == 0 {
		return 0
	}
	sum := 0.0
	for _, s := range all {
		sum += s.TPS
	}
	return sum / float64(len(all))
}

// loading is a load that goes on although its sessions are cut.
type loading struct {
	mu       sync.Mutex
	seconds  []pgbench.Second // guarded by mu
	commands []string
	messages []string
	ends     []time.Time // when pgbench ended, since its sessions were cut
}

func (l *loading) second(s pgbench.Second) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seconds = append(l.seconds, s)
}

// startAgain is the pause before pgbench is started again.
const startAgain = 100 * time.Millisecond

// run runs pgbench again and again, until the end.
func (l *loading) run(ctx context.Context, o pgbench.Options, ends time.Time) {
	for ctx.Err() == nil {
		left := time.Until(ends).Round(time.Second)
		if left < time.Second {
			return
		}
		o.Time = left
		// A server that does not answer at all must not hold this up.
		limited, cancel := context.WithTimeout(ctx, left+10*time.Second)
		found, err := pgbench.Run(limited, o)
		cancel()
		if ctx.Err() != nil {
			return // it was told to end, which is no error of its own
		}
		if len(found.Seconds) > 0 && len(l.commands) == 0 {
			l.commands = append(l.commands, quoted(found.Command))
		}
		if len(l.messages) < 20 {
			l.messages = append(l.messages, found.Messages...)
		}
		if err == nil && found.Aborted == 0 {
			return
		}
		l.ends = append(l.ends, time.Now())
		pace.Sleep(ctx, startAgain)
	}
}
