package rig

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/jackc/pgx/v5"

	"howdah/internal/edge/nameserver"
)

// Nameserver returns where the edge answers for the home's zone.
func (r *Rig) Nameserver() netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr(r.Home.Address(0, nameserver.Port)), nameserver.DefaultPort())
}

// Resolver asks the edge, as programs do whose resolver knows where the zone is.
func (r *Rig) Resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, r.Nameserver().String())
	}}
}

// byName has a connection look its host up in the zone, if that is a name.
func (r *Rig) byName(config *pgx.ConnConfig) {
	if _, err := netip.ParseAddr(config.Host); err == nil {
		return
	}
	config.LookupFunc = func(ctx context.Context, host string) ([]string, error) {
		all, err := r.Resolver().LookupHost(ctx, host+".")
		if err != nil {
			return nil, fmt.Errorf("look %s up: %w", host, err)
		}
		return all, nil
	}
}
