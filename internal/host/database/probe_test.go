package database

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"howdah/internal/host/database/dial"
	"howdah/internal/testkit/hosttest"
	"howdah/internal/testkit/patience"
)

// A Patroni that is frozen accepts connections, and says nothing: what the probe asks
// PostgreSQL next still has its time.
func TestAFrozenPatroniDoesNotHoldTheProbeUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, waits)
	host, _ := w.run(nil)
	a := w.start(hosttest.Running(1))
	silent, err := net.Listen("tcp", fmt.Sprintf("%s:%d", a.Address, a.RESTPort))
	w.Must(err)
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience.For(20*dial.Patience))
	defer cancel()
	if dial.ShowsOther(ctx, host.Agent, a) {
		t.Error("it shows another certificate")
	}
	left, _ := ctx.Deadline()
	if time.Until(left) <= 0 {
		t.Error("no time is left")
	}
}
