package cli

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"howdah/internal/admin/client"
)

func TestInterruptedWaitSaysThatItGoesOn(t *testing.T) {
	for _, c := range []struct {
		name, want string
		ctx        func() (context.Context, context.CancelFunc)
	}{
		{"Ctrl-C", "no longer waiting for x to be available: it goes on: see howdah status", func() (context.Context, context.CancelFunc) {
			return context.WithCancel(t.Context())
		}},
		{"patience", "waited 15m0s for x to be available: it goes on: see howdah status", func() (context.Context, context.CancelFunc) {
			return context.WithDeadline(t.Context(), time.Now())
		}},
	} {
		ctx, cancel := c.ctx()
		cancel()
		o := &Options{Now: time.Now, Every: time.Hour}
		err := o.Poll(ctx, "x to be available", func() (bool, error) { return false, nil })
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestPollWaitsForAnAPIThatIsAway(t *testing.T) {
	now := time.Unix(0, 0)
	o := &Options{Now: func() time.Time { now = now.Add(time.Second); return now }, Every: time.Microsecond}
	looks := 0
	err := o.Poll(t.Context(), "x", func() (bool, error) {
		looks++
		if looks < 5 {
			return false, fmt.Errorf("status: %w", client.ErrUnreachable)
		}
		return true, nil
	})
	if err != nil || looks != 5 {
		t.Errorf("%d looks: %v", looks, err)
	}
	err = o.Poll(t.Context(), "x", func() (bool, error) { return false, client.ErrUnreachable })
	if !errors.Is(err, client.ErrUnreachable) {
		t.Errorf("after a minute: %v", err)
	}
}
