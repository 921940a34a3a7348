package database

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"

	"howdah/internal/failover/fence"
	"howdah/internal/host/database/cut"
	"howdah/internal/host/kernelcut"
	"howdah/internal/model/member"
	"howdah/internal/testkit"
)

// On a machine with several hosts the cut that one of them makes keeps the others' agents
// out too. That a standby is one is known all the same: else its case would never end, and
// the cut, which keeps Patroni from seeing that it has to rewind it, would last for ever.
func TestAStandbyBehindACutIsKnownToFollow(t *testing.T) {
	p := newPair(t)
	k := cut.Kernel{In: &kernelcut.Rules{Table: kernelcut.Table(p.HomeID, "other")}}
	if err := k.In.Try(t.Context()); err != nil {
		testkit.Missing(t, "rules of the kernel: "+err.Error())
	}
	t.Cleanup(func() { p.Must(k.Sync(context.Background(), nil, func(...cut.Cut) {})) })
	from := func(of member.Assignment) []cut.Cut {
		return []cut.Cut{{From: fence.Case{Postgres: net.JoinHostPort(of.Address, strconv.Itoa(of.Port)), Patroni: net.JoinHostPort(of.Address, "1")}}}
	}
	made := func(...cut.Cut) {}

	p.Must(k.Sync(t.Context(), from(p.standby), made))
	p.Awaits(p.standby.ID, time.Minute, func(r member.Report) error {
		if r.Ready || !r.Postgres || !r.Follows || r.InRecovery {
			return fmt.Errorf("a standby behind a cut: %+v", r)
		}
		return nil
	})
	p.Must(k.Sync(t.Context(), nil, made))
	p.Awaits(p.standby.ID, time.Minute, func(r member.Report) error {
		if !r.Ready || r.Follows {
			return fmt.Errorf("a standby that is let go: %+v", r)
		}
		return nil
	})
	p.Must(k.Sync(t.Context(), from(p.primary), made))
	p.Awaits(p.primary.ID, time.Minute, func(r member.Report) error {
		if r.Ready {
			return errors.New("the cut is not felt yet")
		}
		if r.Follows {
			t.Errorf("a primary behind a cut: %+v", r)
		}
		return nil
	})
}
