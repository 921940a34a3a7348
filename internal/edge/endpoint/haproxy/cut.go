package haproxy

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"time"

	"howdah/internal/edge/endpoint"
)

// cutTime bounds how long a proxy may take to end sessions. It takes milliseconds.
const cutTime = time.Second

// Cut implements endpoint.Forwarder. It only talks to the proxy's socket, so it
// does not wait for a Sync in progress.
func (f *Forwarder) Cut(ctx context.Context, listen, target netip.AddrPort) (int, error) {
	if !target.IsValid() || !listen.IsValid() {
		return 0, fmt.Errorf("cut %s from %s: %w", listen, target, endpoint.ErrInvalid)
	}
	sessions, err := cut(ctx, filesOf(f.dir, listen), target)
	if err != nil {
		return sessions, fmt.Errorf("cut %s from %s: %w", listen, target, err)
	}
	return sessions, nil
}

// cut ends the sessions of every slot that has the address of target. It waits until the proxy
// counts none.
func cut(ctx context.Context, f files, target netip.AddrPort) (int, error) {
	if _, err := os.Stat(f.socket()); os.IsNotExist(err) {
		return 0, nil // no proxy, no sessions
	}
	ctx, cancel := context.WithTimeout(ctx, cutTime)
	defer cancel()
	open, err := shutdown(ctx, f, target)
	total := open
	for pause := time.Millisecond; err == nil && open > 0; pause *= 2 {
		select {
		case <-ctx.Done():
			return total, fmt.Errorf("%w: %d of %d", endpoint.ErrSilent, open, total)
		case <-time.After(pause):
		}
		if pause == patience {
			err = abort(ctx, f, target)
		}
		if err == nil {
			open, err = shutdown(ctx, f, target)
		}
	}
	return total, err
}

// patience is how long sessions may take to end by themselves.
const patience = 2 * time.Millisecond

// shutdown tells the proxy to end the sessions that there are, and returns how many those are.
func shutdown(ctx context.Context, f files, target netip.AddrPort) (open int, err error) {
	now, err := f.state(ctx)
	if err != nil {
		return 0, err
	}
	commands, open := now.shutdown(target)
	if open > 0 {
		_, err = f.ask(ctx, commands...)
	}
	return open, err
}

func abort(ctx context.Context, f files, target netip.AddrPort) error {
	pid, err := f.pid(ctx)
	if err != nil {
		return err
	}
	p, err := hold(pid, f.config())
	if err != nil || p == nil {
		return err
	}
	defer p.release()
	return p.abort(target)
}
