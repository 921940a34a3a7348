package nft

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// tick is the pause after which Run looks even if it heard nothing. It hears of rules, not of
// addresses, and the kernel drops notices when too many come at once.
var tick = time.Second

// Run implements endpoint.Forwarder.
func (f *Forwarder) Run(ctx context.Context) error {
	s, err := dial(unix.NFNLGRP_NFTABLES)
	if err != nil {
		return err
	}
	defer s.close()
	stop := context.AfterFunc(ctx, func() { s.close() })
	defer stop()
	for ctx.Err() == nil {
		if err := f.mend(ctx); err != nil && ctx.Err() == nil {
			f.log.Warn("endpoints are not as they should be, trying again", "error", err)
		}
		if err := f.hear(s); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// hear returns when somebody changed this home's table, or after a tick.
func (f *Forwarder) hear(s *socket) error {
	if err := s.file.SetReadDeadline(time.Now().Add(tick)); err != nil {
		return fmt.Errorf("set the deadline of a netlink socket: %w", err)
	}
	for {
		messages, err := s.read()
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, unix.ENOBUFS) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, m := range messages {
			if tableOf(m) == f.rules.table {
				return nil
			}
		}
	}
}

// tableOf returns the table that a notice of nf_tables is about. In all notices attribute 1 names
// it.
func tableOf(m message) string {
	if int(m.kind>>8) != unix.NFNL_SUBSYS_NFTABLES || m.kind&0xff == unix.NFT_MSG_NEWGEN {
		return ""
	}
	name := m.attributes()[unix.NFTA_TABLE_NAME]
	if len(name) == 0 {
		return ""
	}
	return string(name[:len(name)-1])
}

// mend makes the last state real again. It knows our own changes by the generation, so they cost
// little.
func (f *Forwarder) mend(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.synced {
		return nil
	}
	return f.converge(ctx, f.have)
}

// guard is a table that nobody else can remove while this process lives, not even by `nft flush
// ruleset`: the kernel ties it to a socket (since 5.12). It has one chain of type nat with one rule
// that looks at conntrack and does nothing. That is enough for the kernel to go on tracking and
// translating the packets of established sessions when all other rules are gone. Without it, a
// client that sends before the table is mended would be reset.
type guard struct{ owner *socket }

// hold makes the guard. Endpoints work without it, so it is no error if the kernel cannot make one.
func (f *Forwarder) hold(ctx context.Context) *guard {
	g, err := newGuard(ctx, f.rules.table+"_guard")
	if err != nil {
		f.log.Warn("sessions will not survive a flush of all rules", "error", err)
		return &guard{}
	}
	return g
}

func newGuard(ctx context.Context, table string) (*guard, error) {
	s, err := dial()
	if err != nil {
		return nil, err
	}
	if err := s.call(ctx, nil, guardBatch(table)...); err != nil {
		s.close()
		return nil, fmt.Errorf("make table %s: %w", table, err)
	}
	return &guard{s}, nil
}

// guardBatch returns the transaction. Only its last message is acknowledged.
func guardBatch(table string) [][]byte {
	const create = unix.NLM_F_CREATE
	name := attribute(unix.NFTA_TABLE_NAME, zeroEnded(table)) // all three messages have it as attribute 1
	chain := zeroEnded("hold")
	look := nested(unix.NFTA_LIST_ELEM,
		attribute(unix.NFTA_EXPR_NAME, zeroEnded("ct")),
		nested(unix.NFTA_EXPR_DATA,
			attribute(unix.NFTA_CT_KEY, big32(unix.NFT_CT_STATE)),
			attribute(unix.NFTA_CT_DREG, big32(unix.NFT_REG_1))))
	return [][]byte{
		beginBatch(),
		encode(unix.NFNL_SUBSYS_NFTABLES, unix.NFT_MSG_NEWTABLE, create, name,
			attribute(unix.NFTA_TABLE_FLAGS, big32(tableOwner))),
		encode(unix.NFNL_SUBSYS_NFTABLES, unix.NFT_MSG_NEWCHAIN, create, name,
			attribute(unix.NFTA_CHAIN_NAME, chain),
			nested(unix.NFTA_CHAIN_HOOK,
				attribute(unix.NFTA_HOOK_HOOKNUM, big32(unix.NF_INET_LOCAL_OUT)),
				attribute(unix.NFTA_HOOK_PRIORITY, big32(guardPriority))),
			attribute(unix.NFTA_CHAIN_TYPE, zeroEnded("nat"))),
		encode(unix.NFNL_SUBSYS_NFTABLES, unix.NFT_MSG_NEWRULE, create|unix.NLM_F_APPEND|unix.NLM_F_ACK, name,
			attribute(unix.NFTA_RULE_CHAIN, chain),
			nested(unix.NFTA_RULE_EXPRESSIONS, look)),
		endBatch(),
	}
}

const (
	tableOwner    = 2  // NFT_TABLE_F_OWNER
	guardPriority = 50 // after everybody's translation
)

// release gives the table up. The kernel then removes it.
func (g *guard) release() {
	if g != nil && g.owner != nil {
		g.owner.close()
	}
}
