// Package judge finds out which hosts are lost. It has the primaries on lost hosts fenced, proved
// and revoked, so that Patroni promotes a standby within seconds and does not wait until a lease
// has run out. It runs in the control plane that leads. It never promotes and never guesses:
// without a proof a primary keeps its key, and Patroni's own lease decides.
package judge

import (
	"sync"
	"time"
)

const (
	// knownFor is how long a heartbeat says which agent a host has. After that the agent may have
	// been restarted, and only other control planes may have heard the new one.
	knownFor = 5 * time.Second
	// settledAfter is how long a control plane must have listened before it can rely on the judge.
	// By then the leadership of a control plane that died has ended, and the next judge has
	// listened long enough and pronounced on all hosts.
	settledAfter = 15 * time.Second
)

// Pulse hears the heartbeats of hosts. It uses only the monotonic time of this process, so setting
// a clock on any machine changes nothing.
type Pulse struct {
	mu     sync.Mutex
	last   map[string]time.Time // guarded by mu
	agents map[string]string    // guarded by mu; of the last heartbeat, by host
	since  time.Time
}

// NewPulse returns a Pulse that listens from now on.
func NewPulse() *Pulse {
	return &Pulse{last: map[string]time.Time{}, agents: map[string]string{}, since: time.Now()}
}

// Beat notes a heartbeat of a host. agent names the process of its agent; it is "" for an agent of
// an older release.
func (p *Pulse) Beat(host, agent string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last[host], p.agents[host] = time.Now(), agent
}

// Vouches reports whether what an agent wrote is from the agent that the host has now, as far as
// this process knows. A record in the state may be older than the last start of the host, and of
// everything else.
func (p *Pulse) Vouches(host, agent string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last, ok := p.last[host]; ok && time.Since(last) < knownFor {
		return p.agents[host] == agent
	}
	return time.Since(p.since) > settledAfter // the judge knows who lives
}

// Silence returns how long a host has not been heard. For a host that was never heard it counts
// from NewPulse, so that a control plane which has just started does not take every host for lost.
func (p *Pulse) Silence(host string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last, ok := p.last[host]; ok {
		return time.Since(last)
	}
	return time.Since(p.since)
}

// Heard reports whether a host was heard since NewPulse.
func (p *Pulse) Heard(host string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.last[host]
	return ok
}

// Listening returns the time since NewPulse.
func (p *Pulse) Listening() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.since)
}

// Stall excludes from all silences the time d for which this process itself stood still. A judge
// that was frozen must not wake up and condemn every host.
func (p *Pulse) Stall(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = p.since.Add(d)
	for host, last := range p.last {
		p.last[host] = last.Add(d)
	}
}
