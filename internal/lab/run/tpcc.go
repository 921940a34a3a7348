package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/lab/experiment"
	"howdah/internal/lab/result"
	"howdah/internal/lab/target"
	"howdah/internal/lab/tpcc"
	"howdah/internal/lab/verdict"
	"howdah/internal/observe"
)

// dataSeed makes the data of all databases alike. What users draw differs from run to run.
const dataSeed = 1

// tpcc builds the database if that is needed, runs the virtual users, and checks the database.
func (d *doing) tpcc(ctx context.Context, a experiment.TPCC) error {
	config := d.server().Config()
	if err := d.warehouses(ctx, config, a); err != nil {
		return err
	}
	if err := d.users(ctx, config, a); err != nil {
		return err
	}
	d.tell("tpcc: check")
	return d.consistent(ctx)
}

// users runs the virtual users, and has the measured time observed.
func (d *doing) users(ctx context.Context, config *pgx.ConnConfig, a experiment.TPCC) error {
	return d.observed(ctx, a.Prefix, func(load interval) (verdict.Load, error) {
		o := usersOf(d, a)
		o.OnStage = func(s tpcc.Stage, _ time.Time) {
			d.tell("tpcc: " + stageWords[s])
			switch s { //nolint:exhaustive // before and after it nothing is measured
			case tpcc.Measuring:
				load.begin(observe.Processes{Own: true})
			case tpcc.Ending:
				load.end()
			}
		}
		r, err := tpcc.Run(ctx, config, o)
		d.ordered(a.Prefix, r)
		return orderLoad(a, r), err
	})
}

// usersOf says how the users of a step run.
func usersOf(d *doing, a experiment.TPCC) tpcc.RunOptions {
	return tpcc.RunOptions{
		Schema: target.Schema, Users: a.Users, AllWarehouses: a.AllWarehouses, Call: callOf(a), Mode: tpcc.Mode(a.Mode), Reach: tpcc.Reach(a.Reach), Keying: a.Keying,
		RampUp: time.Duration(a.RampUp) * time.Second, Measure: time.Duration(a.Seconds) * time.Second,
		SpawnEvery: time.Millisecond, Seed: uint64(max(1, d.point.Run)), //nolint:gosec // it is above 0
	}
}

// orderLoad is what a run says of itself. A transaction is one call of a procedure. How many statements
// a client's transaction has differs from one to the next, and is not counted.
func orderLoad(a experiment.TPCC, r tpcc.Result) verdict.Load {
	l := verdict.Load{Clients: a.Users, Cores: float64(min(a.Users, runtime.GOMAXPROCS(0)))}
	var calls, failed int64
	micros := 0.0
	for _, k := range r.Kinds {
		calls, failed, micros = calls+k.Calls, failed+k.Failed(), micros+k.Mean*float64(k.Calls)
	}
	if seconds := r.Measured().Seconds(); seconds > 0 { // not r.Transactions, which are of all databases
		l.TPS = float64(calls) / seconds
	}
	l.ErrorShare = float64(failed) / float64(max(1, calls+failed))
	if !a.Keying {
		l.LatencyMS = micros / float64(max(1, calls)) / 1000
	}
	if callOf(a) == tpcc.Procedures {
		l.RoundTrips = 1
	}
	return l
}

var stageWords = map[tpcc.Stage]string{
	tpcc.Spawning: "connect", tpcc.RampingUp: "ramp up", tpcc.Measuring: "measure", tpcc.Ending: "end",
}

func callOf(a experiment.TPCC) tpcc.Call {
	if a.Calls == "client" {
		return tpcc.ClientSQL
	}
	return tpcc.Procedures
}

// warehouses builds the database, unless there is one that will do.
func (d *doing) warehouses(ctx context.Context, config *pgx.ConnConfig, a experiment.TPCC) error {
	if !a.Fresh {
		conn, err := d.connect(ctx)
		if err != nil {
			return err
		}
		about, err := tpcc.Look(ctx, conn, target.Schema)
		conn.Close(context.WithoutCancel(ctx))
		if err == nil && about.Fits(tpcc.Mode(a.Mode), a.Warehouses) {
			return nil
		}
		if err != nil && !errors.Is(err, tpcc.ErrNone) {
			return err
		}
	}
	o := tpcc.BuildOptions{Schema: target.Schema, Warehouses: a.Warehouses, Workers: a.Workers, Mode: tpcc.Mode(a.Mode), Seed: dataSeed}
	began := time.Now()
	err := tpcc.Build(ctx, config, o, func(p tpcc.Progress) {
		d.tell(fmt.Sprintf("tpcc: build %d warehouses: %s, %d %% of the rows", a.Warehouses, p.Phase, min(100, 100*p.Rows/max(1, p.Of))))
	})
	if err != nil {
		return err
	}
	d.figure(a.Prefix+"build_seconds", time.Since(began).Seconds())
	return nil
}

// ordered keeps what a run found. A run that was broken off may have found nothing.
func (d *doing) ordered(prefix string, r tpcc.Result) {
	if r.Measured() <= 0 {
		return
	}
	d.figure(prefix+"nopm", r.NOPM)
	d.figure(prefix+"orders", float64(r.Orders))
	if !r.ServerChanged {
		d.figure(prefix+"tpm", r.TPM)
	}
	d.figure(prefix+"client_cpu", r.Processors())
	if r.Orders > 0 {
		// The seconds of a minute over the orders of a minute.
		d.figure(prefix+"client_cpu_per_1000_nopm", 1000*r.CPU.Sum().Seconds()/float64(r.Orders))
	}
	var calls, failed, retries int64
	for _, k := range r.Kinds {
		calls, failed, retries = calls+k.Calls, failed+k.Failed(), retries+k.Retries
		if k.Calls == 0 {
			continue
		}
		for name, micros := range map[string]int64{"p50": k.P50, "p95": k.P95, "p99": k.P99} {
			d.figure(prefix+k.Kind.String()+"_"+name+"_ms", float64(micros)/1000)
		}
	}
	d.figure(prefix+"failed", float64(failed))
	d.figure(prefix+"retries", float64(retries))
	d.figure(prefix+"reconnected", float64(r.Reconnected))
	d.figure(prefix+"refused", float64(r.Refused))
	d.orderTicks(prefix, r)
	d.point.Errors = append(d.point.Errors, orderErrors(r)...)
	switch share := float64(failed) / float64(max(1, calls+failed)); {
	case r.ServerChanged:
		d.point.Struck = "the server began anew while it was measured"
	case share > mostFailed:
		d.point.Struck = fmt.Sprintf("%.2f %% of the transactions failed", 100*share)
	}
}

// orderTicks keeps the whole seconds of the measured time.
func (d *doing) orderTicks(prefix string, r tpcc.Result) {
	for _, s := range r.Seconds {
		begin := r.Began.Add(time.Duration(s.Second) * time.Second)
		end := begin.Add(time.Second)
		if begin.Before(r.From) || end.After(r.To) {
			continue
		}
		took := int64(0)
		for _, micros := range s.Time {
			took += micros
		}
		values := map[string]float64{
			"nopm": 60 * float64(s.Done[tpcc.NewOrder]), "tpm": 60 * float64(s.Sum()), "latency_ms": float64(took) / float64(max(1, s.Sum())) / 1000,
		}
		if len(s.Errors) > 0 {
			values["errors"] = 0
			for _, n := range s.Errors {
				values["errors"] += float64(n)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(values)) {
			d.ticks = append(d.ticks, result.Tick{Point: d.number, At: end.UTC(), Name: prefix + name, Value: values[name]})
		}
	}
}

// orderErrors lists the errors of a run by SQLSTATE, each with the text of the first one.
func orderErrors(r tpcc.Result) (all []string) {
	measured := r.Errors()
	for _, state := range slices.Sorted(maps.Keys(measured)) {
		all = append(all, fmt.Sprintf("%d errors of SQLSTATE %s: %s", measured[state], state, r.ErrorTexts[state]))
	}
	for _, state := range slices.Sorted(maps.Keys(r.OutsideErrors)) {
		all = append(all, fmt.Sprintf("%d errors of SQLSTATE %s outside of the measured time: %s", r.OutsideErrors[state], state, r.ErrorTexts[state]))
	}
	return all
}

// consistent strikes the point if the database is not consistent. The next one builds it anew.
func (d *doing) consistent(ctx context.Context) error {
	conn, err := d.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	all, err := tpcc.Check(ctx, conn, target.Schema)
	if err != nil {
		return err
	}
	var broken []string
	for _, c := range all {
		if !c.Holds() {
			broken = append(broken, strconv.Itoa(c.Number))
			d.point.Errors = append(d.point.Errors, fmt.Sprintf("condition %d, %s: %d of %d are wrong: %s",
				c.Number, c.Text, c.Violations, c.Checked, strings.Join(c.Examples, ", ")))
		}
	}
	if len(broken) == 0 {
		return nil
	}
	d.point.Struck = "the database is not consistent: it breaks conditions " + strings.Join(broken, ", ") + " of TPC-C 3.3.2"
	return tpcc.Drop(ctx, conn, target.Schema)
}
