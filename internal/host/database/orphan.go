package database

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"time"

	"howdah/internal/edge/endpoint"
	kernel "howdah/internal/edge/endpoint/nft"
	"howdah/internal/edge/held"
	"howdah/internal/failover/fence"
	"howdah/internal/host/agent"
	"howdah/internal/host/pace"
	"howdah/internal/identity/home"
)

// orphansEvery is how often the agent looks for addresses that nobody looks after.
const orphansEvery = time.Second

// followOrphans takes addresses away that an edge of this host left when it died, and whose
// database has another primary by now: that one's host has them. While no other leads they
// stay, as an edge that is dead must not end a database.
func (a *Host) followOrphans(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return nil // such addresses take rights that no ordinary user has
	}
	record := held.RecordOf(a.HomeID, a.Name)
	for pace.Sleep(ctx, orphansEvery) {
		places, err := record.Read()
		if err == nil && len(places) > 0 {
			err = a.dropOrphans(ctx, record)
		}
		if err != nil && ctx.Err() == nil {
			a.Log.Warn("take away what a dead edge left", "error", err)
		}
	}
	return nil
}

func (a *Host) dropOrphans(ctx context.Context, record held.Record) error {
	lock, err := record.Lock()
	if errors.Is(err, home.ErrLocked) {
		return nil // the edge runs
	}
	if err != nil {
		return err
	}
	defer lock.Release()
	places, err := record.Read()
	if err != nil {
		return err
	}
	var stay []held.Place
	var gone []netip.AddrPort
	for _, p := range places {
		listen, err := netip.ParseAddrPort(p.Listen)
		if err == nil && a.leadsElsewhere(ctx, p) {
			gone = append(gone, listen)
			continue
		}
		stay = append(stay, p)
	}
	if len(gone) == 0 {
		return nil
	}
	forwarder, err := kernel.New(ctx, endpoint.Config{Home: a.HomeID, Log: a.Log})
	if err != nil {
		return err
	}
	defer forwarder.Close()
	if err := forwarder.Abandon(ctx, gone); err != nil {
		return err
	}
	a.Log.Warn("addresses that a dead edge left were taken away: their primaries are on other hosts", "addresses", gone)
	return record.Write(stay)
}

// leadsElsewhere: it is known for certain that another member leads.
func (a *Host) leadsElsewhere(ctx context.Context, p held.Place) bool {
	ctx, cancel := context.WithTimeout(ctx, agent.EtcdTimeout)
	defer cancel()
	l, err := fence.Read(ctx, a.Store.Client, p.Database)
	return err == nil && l.Leader != "" && l.Leader != p.Member
}
