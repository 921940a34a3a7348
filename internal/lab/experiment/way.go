package experiment

import "slices"

// Ways are how the clients of a load reach the servers.
var Ways = []string{WayDirect, WayReader, WayPGPool}

const (
	// WayDirect is the endpoint that takes writes.
	WayDirect = "direct"
	// WayReader is the endpoint for reads. With no standby it is that of the writer.
	WayReader = "reader"
	// WayPGPool is a pgpool-II before all of them, which the lab runs.
	WayPGPool = "pgpool"
)

// mostPairs bounds the pairs that look for stale reads.
const mostPairs = 1000

func (p *PGBench) checkWay() error {
	if p.Through == "" {
		p.Through = WayDirect
	}
	if !slices.Contains(Ways, p.Through) {
		return wrong("through is %q, and not one of %q", p.Through, Ways)
	}
	if p.Stale < 0 || p.Stale > mostPairs {
		return wrong("stale are %d pairs of sessions, and not from 0 to %d", p.Stale, mostPairs)
	}
	if p.Through == WayReader && p.Vacuum {
		return wrong("standbys vacuum nothing: a load with vacuum goes direct or through pgpool")
	}
	for _, s := range p.Scripts {
		if p.Through == WayReader && s.Builtin != "" && s.Builtin != "select-only" {
			return wrong("%s writes, and standbys take no writes: it goes direct or through pgpool", s.Builtin)
		}
	}
	return nil
}

// checkPlain checks the load of a step that breaks something meanwhile: it goes direct, with nothing beside
// it.
func (p *PGBench) checkPlain() error {
	if err := p.check(); err != nil {
		return err
	}
	if p.Through != WayDirect || p.Stale > 0 {
		return wrong("a load that something is broken under goes direct, and counts no stale reads")
	}
	return nil
}

// spareSessions are those that pgpool takes besides the load's: for one that has left, and whose process
// does not know it yet.
const spareSessions = 8

// Sessions is how many sessions a load has at most at a server, with those that look for stale reads. Each
// process of pgpool keeps the session that it had.
func (p *PGBench) Sessions() int {
	n := p.Clients + 2*p.Stale
	if p.Through == WayPGPool {
		n += spareSessions
	}
	return n
}

// reaches reports whether the load of any setting goes one of these ways.
func (e *Experiment) reaches(ways ...string) bool {
	for _, s := range e.Settings() {
		for _, step := range slices.Concat(e.Prepare, e.Each) {
			if a, err := e.Arguments(step, s); err == nil && a.PGBench != nil && slices.Contains(ways, a.PGBench.Through) {
				return true
			}
		}
	}
	return false
}

// PGPool reports whether any load goes through pgpool.
func (e *Experiment) PGPool() bool { return e.reaches(WayPGPool) }
