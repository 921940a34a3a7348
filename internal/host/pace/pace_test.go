package pace

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestBackoff(t *testing.T) {
	var b Backoff
	begin := time.Now()
	var at []time.Duration
	for now := begin; now.Sub(begin) < 2*time.Minute; now = now.Add(100 * time.Millisecond) {
		if b.Ready(now) {
			b.Attempt(now)
			at = append(at, now.Sub(begin))
		}
	}
	var want []time.Duration
	for _, seconds := range []int{0, 1, 3, 7, 15, 31, 61, 91} {
		want = append(want, time.Duration(seconds)*time.Second)
	}
	if fmt.Sprint(at) != fmt.Sprint(want) {
		t.Errorf("attempts at %v, want %v", at, want)
	}
	later := begin.Add(91*time.Second + 2*time.Minute)
	if !b.Ready(later) {
		t.Error("not ready after an attempt that lasted")
	}
	b.Attempt(later)
	if b.Failures != 1 {
		t.Errorf("an attempt that lasted did not begin the count again: %d", b.Failures)
	}
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if !Sleep(t.Context(), time.Minute) || time.Since(began) != time.Minute {
			t.Errorf("it took %s", time.Since(began))
		}
		if !Sleep(t.Context(), -time.Minute) {
			t.Error("a pause that is over is broken off")
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("over"))
		defer cancel()
		if Sleep(ctx, time.Hour) || time.Since(began) != time.Minute+time.Second {
			t.Errorf("it went on until %s", time.Since(began))
		}
		if Sleep(ctx, 0) {
			t.Error("nothing is paused after the end")
		}
	})
}
