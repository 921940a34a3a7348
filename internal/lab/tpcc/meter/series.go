package meter

import (
	"maps"
	"math/bits"
	"sync"
	"sync/atomic"

	"howdah/internal/lab/tpcc/form"
)

// Second is one second of a run, counted from its begin. Transactions count in the second in which
// they end.
type Second struct {
	Second int64             `json:"second"`
	Done   [form.Kinds]int64 `json:"done"`    // by kind, in the order of the kinds
	Time   [form.Kinds]int64 `json:"time_us"` // that they took together, by kind
	// P50, P99 and Max are of all kinds. P50 and P99 are at most a quarter too large.
	P50         int64            `json:"p50_us"`
	P99         int64            `json:"p99_us"`
	Max         int64            `json:"max_us"`
	Errors      map[string]int64 `json:"errors,omitempty"` // by SQLSTATE or no_sqlstate, refused connections too
	Retries     int64            `json:"retries,omitempty"`
	Refused     int64            `json:"refused,omitempty"`     // attempts to connect that failed
	Reconnected int64            `json:"reconnected,omitempty"` // sessions in the place of lost ones
}

// Sum is how many transactions ended as they should.
func (s Second) Sum() (sum int64) {
	for _, n := range s.Done {
		sum += n
	}
	return sum
}

// series has a slot for each second up to the last one in which something ended.
type series struct {
	mu    sync.Mutex
	slots []*slot // guarded by mu
}

// slot counts one second. Users keep it while the second lasts, so that they need no lock.
type slot struct {
	count, micros                 [form.Kinds]atomic.Int64
	most                          atomic.Int64
	retried, refused, reconnected atomic.Int64
	classes                       [classes]atomic.Uint32

	mu     sync.Mutex
	errors map[string]int64 // guarded by mu
}

// slot returns the slot of a second, which is 0 or later.
func (s *series) slot(second int) *slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.slots) <= max(second, 0) {
		s.slots = append(s.slots, &slot{})
	}
	return s.slots[max(second, 0)]
}

func (s *slot) done(kind form.Kind, micros int64) {
	s.count[kind].Add(1)
	s.micros[kind].Add(micros)
	s.classes[class(micros)].Add(1)
	for {
		most := s.most.Load()
		if micros <= most || s.most.CompareAndSwap(most, micros) {
			return
		}
	}
}

func (s *slot) failed(state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.errors == nil {
		s.errors = map[string]int64{}
	}
	s.errors[state]++
}

// Classes of latencies: four for each doubling, up to more than a minute.
const (
	perDoubling = 4
	classes     = 27 * perDoubling
)

// class returns the class of a latency.
func class(micros int64) int {
	if micros < perDoubling {
		return int(max(micros, 0))
	}
	doubling := bits.Len64(uint64(micros)) - 3
	return min(doubling*perDoubling+int(micros>>doubling), classes-1)
}

// top returns the greatest latency of a class.
func top(class int) int64 {
	if class < perDoubling {
		return int64(class)
	}
	doubling := class/perDoubling - 1
	return int64(class%perDoubling+perDoubling+1)<<doubling - 1
}

func (s *slot) second(n int) Second {
	out := Second{Second: int64(n), Max: s.most.Load(), Retries: s.retried.Load(), Refused: s.refused.Load(), Reconnected: s.reconnected.Load()}
	for k := range out.Done {
		out.Done[k], out.Time[k] = s.count[k].Load(), s.micros[k].Load()
	}
	out.P50, out.P99 = s.quantile(50, out.Max), s.quantile(99, out.Max)
	s.mu.Lock()
	defer s.mu.Unlock()
	out.Errors = maps.Clone(s.errors)
	return out
}

// quantile returns below which latency this share of the transactions is. most is the greatest one.
func (s *slot) quantile(percent int64, most int64) int64 {
	sum := int64(0)
	for i := range s.classes {
		sum += int64(s.classes[i].Load())
	}
	left := (sum*percent + 99) / 100
	for i := range s.classes {
		left -= int64(s.classes[i].Load())
		if left <= 0 {
			return min(top(i), most)
		}
	}
	return most
}

// Seconds returns the series so far.
func (r *Recorder) Seconds() []Second {
	r.series.mu.Lock()
	defer r.series.mu.Unlock()
	all := make([]Second, len(r.series.slots))
	for i, s := range r.series.slots {
		all[i] = s.second(i)
	}
	return all
}
