package verdict

import (
	"howdah/internal/observe/series"
	"howdah/internal/observe/wait"
)

// Evidence is what is known of one measured interval.
type Evidence struct {
	// Observed sums up the interval, warm-up left out. Columns that are absent are not known, and
	// decide nothing.
	Observed series.Summary `json:"observed"`
	Load     Load           `json:"load"`
	// Elsewhere says that the server is not on the machine that was observed: what is known of a machine is
	// known of the load generator's.
	Elsewhere bool `json:"elsewhere,omitempty"`
	// Sweep has the medians of the steps that were measured so far, this one among them.
	Sweep []Step `json:"sweep,omitempty"`
}

// Load is what the load generator says of itself. 0 stands for not known.
type Load struct {
	Clients int `json:"clients"`
	// Cores is how many CPUs the generator can use at most: its threads, or the CPUs that it is
	// given, whichever are fewer.
	Cores float64 `json:"cores"`
	// TPS has transactions a second, those of the interval over its length.
	TPS float64 `json:"tps"`
	// LatencyMS is the mean from the moment that a client began a transaction, without the time
	// that it waited for its turn by a rate.
	LatencyMS float64 `json:"latency_ms"`
	// RoundTrips is how many times a transaction waits for the server, one after the other.
	RoundTrips float64 `json:"round_trips"`
	// ErrorShare is the share of transactions that failed.
	ErrorShare float64 `json:"error_share"`
	// Beyond says that other servers than the one that is observed take a part of the load, or a pooler all
	// of it. Pooler is how many CPUs that took.
	Beyond bool    `json:"beyond,omitempty"`
	Pooler float64 `json:"pooler,omitempty"`
	// CheckpointTPS is the TPS while a checkpoint ran, over the TPS of the other time.
	CheckpointTPS float64 `json:"checkpoint_tps"`
}

// share returns one column over another, and whether both are known.
func (e Evidence) share(part, whole string) (float64, bool) {
	p, known := e.Observed.Mean(part)
	w, also := e.Observed.Mean(whole)
	if !known || !also || w <= 0 {
		return 0, false
	}
	return p / w, true
}

// of returns the share of a class among the active sessions, 0 if nobody is active.
func (e Evidence) of(class wait.Class) float64 {
	share, _ := e.share(class.Column(), series.Active)
	return share
}

// events returns the share among the active sessions of the events that match, and the name of the
// one that most wait for.
func (e Evidence) events(match func(wait.Event) bool) (share float64, top wait.Event) {
	active, known := e.Observed.Mean(series.Active)
	if !known || active <= 0 {
		return 0, wait.Event{}
	}
	found := false
	for _, each := range e.Observed.Top(series.WaitPrefix, len(e.Observed.Columns)) {
		event := wait.Parse(each.Name)
		if !match(event) {
			continue
		}
		if !found {
			top, found = event, true
		}
		share += each.Value / active
	}
	return share, top
}

// clients returns how many sessions there are to be served.
func (e Evidence) clients() (float64, bool) {
	if e.Load.Clients > 0 {
		return float64(e.Load.Clients), true
	}
	return e.Observed.Mean(series.Sessions)
}

// occupied returns the share of the clients whose session is active, and whether it is known.
func (e Evidence) occupied() (float64, bool) {
	active, known := e.Observed.Mean(series.Active)
	clients, also := e.clients()
	if !known || !also || clients <= 0 {
		return 0, false
	}
	return active / clients, true
}

// cpuLimit returns the CPUs that the server may use, and whether a limit of its own says so.
func (e Evidence) cpuLimit() (cpus float64, own, known bool) {
	if e.Elsewhere {
		return 0, false, false
	}
	all, known := e.Observed.Mean(series.MachineCPUs)
	if limit, limited := e.Observed.Mean(series.ServerCPULimit); limited && (!known || limit < all) {
		return limit, true, true
	}
	return all, false, known && all > 0
}

// serverCPU returns how much of its CPUs the server uses, and whether that is known.
func (e Evidence) serverCPU() (float64, bool) {
	used, known := e.Observed.Mean(series.ServerCPU)
	limit, _, also := e.cpuLimit()
	if !known || !also {
		return 0, false
	}
	return used / limit, true
}
