package haproxy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// tick is the pause after which Run also watches a proxy that was started since, and tries again
// what it could not mend.
const tick = 250 * time.Millisecond

// Run implements endpoint.Forwarder. It hears at once that a proxy ends. Only Sync finds a proxy
// that leads elsewhere.
func (f *Forwarder) Run(ctx context.Context) error {
	// Nobody would hear of a proxy that could not be started.
	again := false
	for ctx.Err() == nil {
		fds := f.watched()
		_, err := unix.Poll(fds, int(tick.Milliseconds()))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("watch proxies: %w", err)
		}
		if !again && !someEnded(fds) {
			continue
		}
		err = f.mend(ctx)
		if again = err != nil; again && ctx.Err() == nil {
			f.log.Warn("endpoints are not as they should be, trying again", "error", err)
		}
	}
	return nil
}

// watched returns the descriptors of all proxies. One that is closed meanwhile wakes Run once too
// often, at worst.
func (f *Forwarder) watched() []unix.PollFd {
	f.mu.Lock()
	defer f.mu.Unlock()
	fds := make([]unix.PollFd, 0, len(f.proxies))
	for _, p := range f.proxies {
		fds = append(fds, unix.PollFd{Fd: int32(p.fd), Events: unix.POLLIN})
	}
	return fds
}

func someEnded(fds []unix.PollFd) bool {
	for _, fd := range fds {
		if fd.Revents != 0 {
			return true
		}
	}
	return false
}

func (f *Forwarder) mend(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.synced {
		return nil
	}
	return f.converge(ctx, f.have)
}
