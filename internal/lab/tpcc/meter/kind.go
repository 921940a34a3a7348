package meter

import (
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"

	"howdah/internal/lab/tpcc/form"
)

// Kind is what the transactions of one kind did in the measured time. Latencies are microseconds of
// service: from the first statement to the answer of the last one, retries included. Users wait for
// each other's locks and not for a schedule, so a server that stands still shows in few of them.
type Kind struct {
	Kind  form.Kind `json:"kind"`
	Calls int64     `json:"calls"` // that ended as they should
	// RolledBack are those of Calls that asked for an item that is not there, and had no effect.
	RolledBack int64            `json:"rolled_back"`
	Errors     map[string]int64 `json:"errors"` // by SQLSTATE or no_sqlstate
	Lost       int64            `json:"lost"`   // those of Errors that ended the session
	Retries    int64            `json:"retries"`

	Mean float64 `json:"mean_us"`
	P50  int64   `json:"p50_us"`
	P90  int64   `json:"p90_us"`
	P95  int64   `json:"p95_us"`
	P99  int64   `json:"p99_us"`
	P999 int64   `json:"p99_9_us"`
	Max  int64   `json:"max_us"` // a minute stands for all that is longer
	// Histogram is HdrHistogram's compressed form, version 2, in base64.
	Histogram string `json:"histogram"`
}

// Failed is how many calls ended with an error.
func (k Kind) Failed() (sum int64) {
	for _, n := range k.Errors {
		sum += n
	}
	return sum
}

// Kinds returns the sums over all users, by kind.
func (r *Recorder) Kinds() ([]Kind, error) {
	all := make([]Kind, form.Kinds)
	for i := range all {
		k, err := r.kind(form.Kind(i))
		if err != nil {
			return nil, fmt.Errorf("encode the latencies of %s: %w", form.Kind(i), err)
		}
		all[i] = k
	}
	return all, nil
}

func (r *Recorder) kind(kind form.Kind) (Kind, error) {
	k := Kind{Kind: kind, Errors: map[string]int64{}}
	sum := hdrhistogram.New(lowest, highest, digits)
	for i := range r.shares {
		r.shares[i].mu.Lock()
		t := &r.shares[i].kinds[kind]
		sum.Merge(t.latencies)
		k.RolledBack += t.rolledBack
		k.Retries += t.retries
		k.Lost += t.connections
		for state, n := range t.errors {
			k.Errors[state] += n
		}
		r.shares[i].mu.Unlock()
	}
	k.Calls = sum.TotalCount()
	encoded, err := sum.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return k, err
	}
	k.Histogram = string(encoded)
	if k.Calls == 0 {
		return k, nil
	}
	k.Mean, k.Max = sum.Mean(), sum.Max()
	for _, p := range []struct {
		to      *int64
		percent float64
	}{{&k.P50, 50}, {&k.P90, 90}, {&k.P95, 95}, {&k.P99, 99}, {&k.P999, 99.9}} {
		*p.to = min(sum.ValueAtPercentile(p.percent), k.Max)
	}
	return k, nil
}
