package nft

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"howdah/internal/edge/endpoint"
)

// patience is how long Cut waits for answers to each nudge before the next. All together outlast
// the half second in which Linux answers bad segments of a socket only once
// (net.ipv4.tcp_invalid_ratelimit). They also outlast the second for which old kernels stop after
// so many (net.ipv4.tcp_challenge_ack_limit).
var patience = []time.Duration{50 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 600 * time.Millisecond}

// brief is for endpoints that are removed for good.
var brief = patience[:1]

// Cut implements endpoint.Forwarder. It needs nothing of f's state, so it does
// not wait for a Sync in progress.
func (f *Forwarder) Cut(ctx context.Context, listen, target netip.AddrPort) (int, error) {
	if !target.IsValid() || !listen.IsValid() {
		return 0, fmt.Errorf("cut %s from %s: %w", listen, target, endpoint.ErrInvalid)
	}
	sessions, err := f.cut(ctx, listen, func(x flow) bool { return x.server == target }, patience)
	if err != nil {
		return sessions, fmt.Errorf("cut %s from %s: %w", listen, target, err)
	}
	return sessions, nil
}

// cut removes sessions from conntrack and makes their clients send something. From then on
// everything that these clients send is answered with a reset. It looks twice, because a connection
// that was translated just before Point may be entered just after the first look. A connection that
// the kernel enters again, for a packet that was under way, counts once.
func (f *Forwarder) cut(ctx context.Context, listen netip.AddrPort, keep func(flow) bool, rounds []time.Duration) (int, error) {
	cut := map[pair]bool{}
	var silence error
	for range 2 {
		sessions, err := f.sessions.take(ctx, listen, keep)
		for _, s := range sessions {
			cut[s] = true
		}
		if err == nil {
			err = f.reset(ctx, sessions, rounds)
		}
		if errors.Is(err, endpoint.ErrSilent) {
			silence = err
		} else if err != nil {
			return len(cut), err
		}
	}
	return len(cut), silence
}

// reset nudges clients until each was answered with a reset, or until no further one was for as
// long as all rounds take.
func (f *Forwarder) reset(ctx context.Context, sessions []pair, rounds []time.Duration) error {
	var limit, quiet time.Duration
	for _, wait := range rounds {
		limit += wait
	}
	silent := sessions
	for i := 0; len(silent) > 0 && quiet < limit; i++ {
		wait := rounds[min(i, len(rounds)-1)]
		if err := nudge(silent); err != nil {
			return err
		}
		still, err := f.await(ctx, silent, wait)
		if err != nil {
			return err
		}
		quiet += wait
		if len(still) < len(silent) {
			quiet = 0
		}
		silent = still
	}
	if len(silent) > 0 {
		return fmt.Errorf("%w: %d of %d", endpoint.ErrSilent, len(silent), len(sessions))
	}
	return nil
}

// await returns those sessions that were not answered within wait.
func (f *Forwarder) await(ctx context.Context, sessions []pair, wait time.Duration) ([]pair, error) {
	end := time.Now().Add(wait)
	for pause := time.Millisecond; ; pause *= 2 {
		answered, err := f.sessions.answered(ctx, f.rules.table)
		if err != nil {
			return sessions, err
		}
		var silent []pair
		for _, s := range sessions {
			if !answered[s] {
				silent = append(silent, s)
			}
		}
		sessions = silent
		if len(sessions) == 0 || time.Until(end) < pause {
			return sessions, nil
		}
		select {
		case <-ctx.Done():
			return sessions, ctx.Err()
		case <-time.After(pause):
		}
	}
}
