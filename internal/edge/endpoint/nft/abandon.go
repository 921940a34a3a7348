package nft

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"howdah/internal/edge/endpoint"
)

// Abandon makes endpoints refuse from now on that an earlier process made. It takes their addresses
// off this machine and cuts their sessions. Other endpoints stay as they are, and the next Sync
// finds all of it. It is for the time in which no process looks after them. It is idempotent.
func (f *Forwarder) Abandon(ctx context.Context, listens []netip.AddrPort) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	known, err := f.table.listens(ctx, f.rules.table)
	if err != nil {
		return err
	}
	listens = slices.DeleteFunc(slices.Clone(listens), func(l netip.AddrPort) bool { return !slices.Contains(known, l) })
	if len(listens) == 0 {
		return nil
	}
	var script strings.Builder
	for _, k := range []kind{single, several} {
		rows, err := f.table.elements(ctx, f.rules.table, string(k))
		if err != nil {
			return err
		}
		for _, row := range rows {
			if len(row) == 1 && slices.Contains(listens, row[0]) {
				fmt.Fprintf(&script, "delete element ip %s %s { %s }\n", f.rules.table, k, joined(row[0]))
			}
		}
	}
	for _, l := range listens {
		fmt.Fprintf(&script, "add element ip %s %s { %s }\n", f.rules.table, refused, joined(l))
	}
	if err := f.nft.apply(ctx, script.String()); err != nil {
		return fmt.Errorf("abandon %v: %w", listens, err)
	}
	_, err = f.cut(ctx, netip.AddrPort{}, func(x flow) bool { return slices.Contains(listens, x.listen) }, brief)
	if err != nil && !errors.Is(err, endpoint.ErrSilent) {
		return fmt.Errorf("cut the sessions of what is abandoned: %w", err)
	}
	return f.dropThese(listens)
}

// dropThese takes the addresses of endpoints off this machine.
func (f *Forwarder) dropThese(listens []netip.AddrPort) error {
	have, err := readAddresses(f.label)
	if err != nil {
		return err
	}
	for _, l := range listens {
		if !slices.Contains(have.ours, l.Addr()) {
			continue
		}
		if err := onDevice(netlink.AddrDel, l.Addr(), f.label); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
			return fmt.Errorf("remove address %s from %s: %w", l.Addr(), device, err)
		}
	}
	return nil
}
