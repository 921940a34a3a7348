// Package judge finds out which hosts are lost, and has primaries on lost hosts
// fenced, proved and revoked, so that Patroni promotes a standby in seconds
// rather than after a lease has run out. It runs in the control plane that
// leads. It never promotes and never guesses: without a proof a primary keeps its
// key, and Patroni's own lease decides.
package judge

import (
	"sync"
	"time"
)

const (
	// knownFor is for how long a heartbeat says which agent a host has: one that is heard
	// by other control planes only may have been started again since.
	knownFor = 5 * time.Second
	// settledAfter is for how long a control plane has listened when the judge, in whichever
	// of them leads, has pronounced on all hosts since: the leadership of one that died has
	// ended, and the next one has listened for long enough.
	settledAfter = 15 * time.Second
)

// Pulse hears the heartbeats of hosts. Time is that of this process alone, and
// monotonic: a clock that is set on any machine changes nothing.
type Pulse struct {
	mu     sync.Mutex
	last   map[string]time.Time // guarded by mu
	agents map[string]string    // guarded by mu; of the last heartbeat, by host
	since  time.Time
}

// NewPulse starts to listen now.
func NewPulse() *Pulse {
	return &Pulse{last: map[string]time.Time{}, agents: map[string]string{}, since: time.Now()}
}

// Beat notes a heartbeat of a host, by an agent that names its process; "": by one of an
// older release.
func (p *Pulse) Beat(host, agent string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last[host], p.agents[host] = time.Now(), agent
}

// Vouches reports whether what an agent of a host wrote is that of the agent which the
// host has now, as far as is known here. What is in the state may be of before the host,
// and everything else, died and was started again.
func (p *Pulse) Vouches(host, agent string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last, ok := p.last[host]; ok && time.Since(last) < knownFor {
		return p.agents[host] == agent
	}
	return time.Since(p.since) > settledAfter // the judge knows who lives
}

// Silence is for how long a host has not been heard. One that was never heard
// counts from when we began to listen: a control plane that has just started
// does not take everyone for lost.
func (p *Pulse) Silence(host string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last, ok := p.last[host]; ok {
		return time.Since(last)
	}
	return time.Since(p.since)
}

// Heard reports whether a host was heard at all since we began to listen.
func (p *Pulse) Heard(host string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.last[host]
	return ok
}

// Listening is for how long hosts could have been heard.
func (p *Pulse) Listening() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.since)
}

// Stall widens all silences by the time that this process itself stood still: a
// frozen judge must not wake up and condemn everyone.
func (p *Pulse) Stall(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = p.since.Add(d)
	for host, last := range p.last {
		p.last[host] = last.Add(d)
	}
}
