package probe

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"howdah/internal/engine/postgres"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
)

func TestTheLessIsLeftTheSoonerItIsMeasured(t *testing.T) {
	const limit = 100 << 30
	for _, c := range []struct {
		name         string
		bytes, limit int64
		took, want   time.Duration
	}{
		{"no limit", 1 << 40, 0, 0, loginEvery},
		{"much is left", 10 << 30, limit, 0, loginEvery},
		{"some is left", 95 << 30, limit, 0, 5 * time.Second},
		{"little is left", limit - 1, limit, 0, Every},
		{"it is full", 2 * limit, limit, 0, Every},
		{"measuring takes long", limit, limit, time.Second, 20 * time.Second},
	} {
		if got := dueAfter(c.bytes, c.limit, c.took); got != c.want {
			t.Errorf("%s: after %s, want %s", c.name, got, c.want)
		}
	}
}

func TestWhatIsFullStaysFullForAWhile(t *testing.T) {
	for _, c := range []struct {
		was         bool
		size, limit int64
		want        bool
	}{
		{false, 999, 1000, false},
		{false, 1000, 1000, true},
		{true, 980, 1000, true},
		{true, 979, 1000, false},
		{true, 1000, 2000, false},
		{true, 1000, 0, false},
		{false, 1000, 0, false},
	} {
		if got := isFull(c.was, c.size, c.limit); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

// One measurement runs at a time, and nobody waits for it; one that fails leaves what was
// measured before.
func TestMeasuringHoldsNobodyUp(t *testing.T) {
	var g gauge
	began, answer := make(chan struct{}), make(chan int64)
	slow := func() (postgres.Usage, error) {
		began <- struct{}{}
		return postgres.Usage{Bytes: <-answer}, nil
	}
	last := func(measure func() (postgres.Usage, error)) int64 {
		usage, _ := g.last(0, measure)
		return usage.Bytes
	}
	if got := last(slow); got != 0 {
		t.Errorf("before the first: %d", got)
	}
	<-began
	if got := last(func() (postgres.Usage, error) { t.Error("a second one"); return postgres.Usage{}, nil }); got != 0 {
		t.Errorf("while it is measured: %d", got)
	}
	answer <- 7
	testkit.Eventually(t, hosttest.Soon, func() error {
		if got := last(slow); got != 7 {
			return fmt.Errorf("it is %d", got)
		}
		return nil
	})
	for _, c := range []struct{ counted, want int64 }{{0, 7}, {6, 7}, {8, 8}} {
		g.look(func() (postgres.Usage, error) { return postgres.Usage{Bytes: c.counted}, errors.New("no") })
		if got := last(slow); got != c.want {
			t.Errorf("after one that failed at %d: %d", c.counted, got)
		}
	}
}

func TestStorageLevels(t *testing.T) {
	const limit, left, full, over = 100 << 30, postgres.StorageLeft, postgres.StorageFull, postgres.StorageOver
	for _, c := range []struct {
		was   string
		size  int64
		limit int64
		want  string
	}{
		{left, limit - 1, limit, left},
		{left, limit, limit, full},
		{full, limit - 1, limit, full},
		{full, limit + 11<<30, limit, full},
		{full, limit + 12<<30, limit, over},
		{left, limit + 12<<30, limit, over},
		{over, limit + 11<<30, limit, over},
		{over, limit + 5<<30, limit, full},
		{over, limit / 2, limit, left},
		{over, limit, 0, left},
		{left, 3 << 30, 1 << 30, full},
	} {
		if got := StorageLevel(c.was, c.size, c.limit); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
