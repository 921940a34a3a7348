package meter

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"howdah/internal/lab/heard"
	"howdah/internal/lab/tpcc/form"
)

var began = time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)

func after(d time.Duration) time.Time { return began.Add(d) }

func kinds(t *testing.T, r *Recorder) []Kind {
	t.Helper()
	all, err := r.Kinds()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Only what ends in the measured time is in the sums. All of it is in the series.
func TestMeasuredTime(t *testing.T) {
	r := New(2, began)
	a, b := r.Of(0), r.Of(1)
	a.Done(form.NewOrder, after(time.Second), time.Millisecond, false)
	a.Failed(form.Payment, after(time.Second), "40P01", "deadlock detected", false)
	a.Retried(form.Payment, after(time.Second))
	r.Open()
	a.Done(form.NewOrder, after(2*time.Second), 2*time.Millisecond, true)
	b.Done(form.NewOrder, after(2*time.Second), 4*time.Millisecond, false)
	b.Retried(form.NewOrder, after(2*time.Second))
	b.Failed(form.NewOrder, after(2*time.Second), "57P01", "terminated", true)
	b.Refused(after(3*time.Second), "no_sqlstate", "refused")
	b.Reconnected(after(3 * time.Second))
	r.Shut()
	b.Done(form.Delivery, after(4*time.Second), time.Millisecond, false)
	b.Failed(form.Delivery, after(4*time.Second), "57P01", "terminated again", true)

	k := kinds(t, r)
	n := k[form.NewOrder]
	if n.Calls != 2 || n.RolledBack != 1 || n.Retries != 1 || n.Lost != 1 || n.Failed() != 1 || n.Errors["57P01"] != 1 {
		t.Errorf("new orders: %+v", n)
	}
	if n.P50 != 2000 || n.P99 < 3999 || n.P99 > 4004 || n.Max < 3999 || n.Max > 4004 || math.Abs(n.Mean-3000) > 3 {
		t.Errorf("latencies of new orders: %+v", n)
	}
	for _, other := range k[1:] {
		if other.Calls != 0 || other.Failed() != 0 || other.Retries != 0 || other.Max != 0 {
			t.Errorf("%s: %+v", other.Kind, other)
		}
	}
	if diff := cmp.Diff(map[string]int64{"40P01": 1, "57P01": 1}, r.Outside()); diff != "" {
		t.Errorf("errors outside: %s", diff)
	}
	if diff := cmp.Diff(map[string]string{"40P01": "deadlock detected", "57P01": "terminated", "no_sqlstate": "refused"}, r.Texts()); diff != "" {
		t.Errorf("texts: %s", diff)
	}
	want := []Second{
		{Second: 0},
		{Second: 1, Done: [5]int64{1}, Time: [5]int64{1000}, P50: 1000, P99: 1000, Max: 1000, Errors: map[string]int64{"40P01": 1}, Retries: 1},
		{Second: 2, Done: [5]int64{2}, Time: [5]int64{6000}, P50: 2047, P99: 4000, Max: 4000, Errors: map[string]int64{"57P01": 1}, Retries: 1},
		{Second: 3, Errors: map[string]int64{"no_sqlstate": 1}, Refused: 1, Reconnected: 1},
		{Second: 4, Done: [5]int64{0, 0, 1}, Time: [5]int64{0, 0, 1000}, P50: 1000, P99: 1000, Max: 1000, Errors: map[string]int64{"57P01": 1}},
	}
	if diff := cmp.Diff(want, r.Seconds()); diff != "" {
		t.Errorf("series: %s", diff)
	}
	if got := r.Seconds()[2].Sum(); got != 2 {
		t.Errorf("%d in the second second", got)
	}
}

// Whatever the latencies, percentiles of the sum of all users are within three digits of the exact
// ones, and the histogram that is kept has them all.
func TestPercentiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		users := rapid.IntRange(1, 3).Draw(t, "users")
		r := New(users, began)
		r.Open()
		all := rapid.SliceOfN(rapid.Int64Range(0, 70_000_000), 1, 200).Draw(t, "latencies")
		for i, micros := range all {
			r.Of(i%users).Done(form.Payment, began, time.Duration(micros)*time.Microsecond, false)
			all[i] = min(max(micros, lowest), highest)
		}
		slices.Sort(all)
		sums, err := r.Kinds()
		if err != nil {
			t.Fatal(err)
		}
		k := sums[form.Payment]
		if k.Calls != int64(len(all)) {
			t.Fatalf("%d calls of %d", k.Calls, len(all))
		}
		for percent, got := range map[float64]int64{50: k.P50, 90: k.P90, 95: k.P95, 99: k.P99, 99.9: k.P999, 100: k.Max} {
			// The library rounds to the nearest rank.
			rank := percent / 100 * float64(len(all))
			low, high := float64(all[max(int(rank)-1, 0)]), float64(all[max(int(math.Ceil(rank))-1, 0)])
			if float64(got) < low*0.999-1 || float64(got) > high*1.001+1 {
				t.Fatalf("p%v of %v is %d, not from %v to %v", percent, all, got, low, high)
			}
		}
		back, err := hdrhistogram.Decode([]byte(k.Histogram))
		if err != nil || back.TotalCount() != k.Calls || min(back.ValueAtPercentile(95), back.Max()) != k.P95 {
			t.Fatalf("the histogram came back with %v", err)
		}
	})
}

// A class has the latencies up to its top, and none is much wider than a quarter of it.
func TestClasses(t *testing.T) {
	for micros := range int64(100000) {
		c := class(micros)
		if micros > top(c) || c > 0 && micros <= top(c-1) {
			t.Fatalf("%d is in class %d, which ends at %d", micros, c, top(c))
		}
		if float64(top(c)) > float64(micros)*1.25+1 {
			t.Fatalf("%d is in class %d, which ends at %d", micros, c, top(c))
		}
	}
	if c := class(math.MaxInt64); c != classes-1 || top(c) < highest {
		t.Errorf("the longest is in class %d of %d, up to %d", c, classes, top(c))
	}
	if class(-1) != 0 {
		t.Error("a clock that went back is in another class than 0")
	}
}

// Users count at the same time, and nothing is lost by that.
func TestAtTheSameTime(t *testing.T) {
	const users, each = 50, 2000
	r := New(users, began)
	r.Open()
	var all sync.WaitGroup
	for user := range users {
		all.Go(func() {
			m := r.Of(user)
			for i := range each {
				at := after(time.Duration(i) * 10 * time.Millisecond)
				m.Done(form.Kind(i%form.Kinds), at, time.Duration(i)*time.Microsecond, false)
				m.Failed(form.Payment, at, "40001", "x", false)
			}
		})
	}
	all.Wait()
	calls, failed := int64(0), int64(0)
	for _, k := range kinds(t, r) {
		calls += k.Calls
		failed += k.Failed()
	}
	inSeries, errors := int64(0), int64(0)
	for _, s := range r.Seconds() {
		inSeries += s.Sum()
		errors += s.Errors["40001"]
	}
	const want = users * each
	if calls != want || failed != want || inSeries != want || errors != want {
		t.Errorf("calls %d, failed %d, in the series %d and %d, not %d", calls, failed, inSeries, errors, want)
	}
}

func TestJSON(t *testing.T) {
	r := New(1, began)
	text, err := json.Marshal(kinds(t, r)[form.OrderStatus])
	if err != nil {
		t.Fatal(err)
	}
	var back Kind
	if err := json.Unmarshal(text, &back); err != nil || back.Kind != form.OrderStatus {
		t.Errorf("%s became %+v (%v)", text, back, err)
	}
}

func TestUsedCPU(t *testing.T) {
	before, err := UsedCPU()
	if err != nil {
		t.Fatal(err)
	}
	used := CPU{}
	for n := 1; used.Sum() < 20*time.Millisecond; n++ {
		for i := range n * 1000 {
			_ = math.Sqrt(float64(i))
		}
		now, err := UsedCPU()
		if err != nil {
			t.Fatal(err)
		}
		used = now.Since(before)
	}
	if used.User < 0 || used.System < 0 {
		t.Errorf("%+v", used)
	}
}

// A server that says another SQLSTATE for each error fills no memory, and its errors are counted all the same.
func TestManyStates(t *testing.T) {
	r := New(1, began)
	m := r.Of(0)
	r.Open()
	for n := range 1000 {
		m.Failed(form.Payment, began, fmt.Sprintf("%05d", n), "x", false)
	}
	r.Shut()
	errors := kinds(t, r)[form.Payment].Errors
	if len(errors) != heard.MostStates+1 || errors[heard.Other] != 1000-heard.MostStates || len(r.Texts()) != len(errors) || len(r.Seconds()[0].Errors) != len(errors) {
		t.Errorf("%d states, %d of others, %d texts", len(errors), errors[heard.Other], len(r.Texts()))
	}
}
