// Package verdict says what limited the throughput of a measurement, by what was observed. It is
// pure: the same evidence gives the same verdict.
//
// The rules are tried in a fixed order, and the first that matches decides. What matches further
// down is told, too. A rule whose figures are not known does not match.
package verdict

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"howdah/internal/observe/series"
	"howdah/internal/observe/wait"
)

// Cause is what limited the throughput.
type Cause string

// The causes.
const (
	Noise       Cause = "noise"       // the measurement does not hold: something else disturbed it
	Client      Cause = "client"      // the load generator
	Pooler      Cause = "pooler"      // a pooler before the servers
	Network     Cause = "network"     // round trips between generator and server
	CPU         Cause = "cpu"         // the server's CPUs, or what it may use of them
	IOLimit     Cause = "io_limit"    // what the server may read or write
	WAL         Cause = "wal"         // writing and flushing WAL: commits
	RowLock     Cause = "row_lock"    // sessions change the same rows
	Lock        Cause = "lock"        // another lock of SQL, by its name
	ReadIO      Cause = "read_io"     // reads of data files
	WriteIO     Cause = "write_io"    // writes of data files
	Temporary   Cause = "temporary"   // temporary files
	Replication Cause = "replication" // commits wait for a standby
	LWLock      Cause = "lwlock"      // a lock inside of the server, by its name
	Checkpoint  Cause = "checkpoint"  // checkpoints, or the page images after them
	Wait        Cause = "wait"        // another wait, by its name
	None        Cause = "none"        // nothing was found
	Unknown     Cause = "unknown"     // the sessions could not be seen
)

// Verdict says what limited a measurement.
type Verdict struct {
	Finding
	// Also has what matched further down, in the order of the rules.
	Also []Finding `json:"also,omitempty"`
}

// Limit returns what limited the measurement if the noise is left aside: it may be repeated to see
// whether that holds.
func (v Verdict) Limit() Finding {
	for _, f := range append([]Finding{v.Finding}, v.Also...) {
		if f.Cause != Noise {
			return f
		}
	}
	return v.Finding
}

// Finding is a rule that matched.
type Finding struct {
	Cause Cause `json:"cause"`
	// Key tells the sentences apart, for other languages. It is the cause, unless that has several
	// sentences.
	Key string `json:"key"`
	// Subject names it further: a wait event, a relation, a standby. It may be "".
	Subject string `json:"subject,omitempty"`
	// Sentence says it in English.
	Sentence string `json:"sentence"`
	// Reasons has the figures that it is based on. The first one decided.
	Reasons []Reason `json:"reasons,omitempty"`
}

// Reason is a sentence with the figures in it.
type Reason struct {
	// Key tells the sentences apart, for other languages.
	Key string `json:"key"`
	// Text is the sentence in English.
	Text string `json:"text"`
	// Figures has its numbers, in the order of the text.
	Figures []Figure `json:"figures"`
}

// Figure is a number of a reason.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"` // share, cores, ms, sessions, 1/s, …
	// Threshold is what the value was compared with; 0 for none.
	Threshold float64 `json:"threshold,omitempty"`
}

// rule returns a finding, and whether it matches.
type rule func(Evidence) (Finding, bool)

// rules in their order.
var rules = []rule{
	noise, generatorCPU, poolerCPU, idleServer, cpu, ioLimit, walCommit, locks, reads, writes, temporary, replication, lwlock, checkpoint, otherWait,
}

// Judge says what limited the throughput.
func Judge(e Evidence) Verdict {
	var found []Finding
	for _, each := range rules {
		if f, ok := each(e); ok {
			found = append(found, f)
		}
	}
	if last := len(found) - 1; last < 0 || found[last].Cause == Noise {
		found = append(found, none(e))
	}
	for i := range found {
		found[i].Key = cmp.Or(found[i].Key, string(found[i].Cause))
	}
	return Verdict{Finding: found[0], Also: found[1:]}
}

// none says why nothing was found.
func none(e Evidence) Finding {
	if _, seen := e.Observed.Mean(series.Active); !seen {
		return Finding{Cause: Unknown, Sentence: "What limits it is not known: the sessions could not be seen."}
	}
	f := Finding{Cause: None, Sentence: "Nothing was found that limits it: no kind of wait stands out."}
	busy := e.of(wait.CPU)
	switch from, to, known := around(e.Sweep, e.Load.Clients); {
	case known && gain(from, to) >= kneeGain:
		more := gain(from, to)
		f.Key, f.Sentence = "none_yet", "Nothing limits it yet: more clients still give more."
		f.Reasons = append(f.Reasons, reason("gain", fmt.Sprintf("Between %d and %d clients, twice as many gave %s more.", from.Clients, to.Clients, percent(more)),
			Figure{"gain", more, "share", kneeGain}, Figure{Name: "from_clients", Value: float64(from.Clients), Unit: "1"}, Figure{Name: "to_clients", Value: float64(to.Clients), Unit: "1"}))
	case busy >= cpuShare && !e.cpuSeen() && !e.cpuLeft():
		f.Cause, f.Key, f.Sentence = Unknown, "unknown_cpu", "What limits it is not known: its sessions compute, and the server's CPUs cannot be seen."
	case busy >= cpuShare && e.cpuLeft():
		f.Key, f.Sentence = "none_computes", "Nothing limits the server: its sessions compute, and there are too few to use all of its CPUs."
	}
	if share, known := e.serverCPU(); known {
		f.Reasons = append(f.Reasons, reason("server_cpu", fmt.Sprintf("The server used %s of its CPUs.", percent(share)), Figure{"server_cpu_share", share, "share", serverFull}))
	}
	if active, known := e.Observed.Mean(series.Active); known {
		f.Reasons = append(f.Reasons, reason("active", fmt.Sprintf("On average %s sessions were active: %s.", number(active), e.classes()), Figure{Name: series.Active, Value: active, Unit: "sessions"}))
	}
	return f
}

func (e Evidence) cpuSeen() bool {
	_, known := e.serverCPU()
	return known
}

// cpuLeft reports whether the server could use more CPU than it does, and no session waits for that.
func (e Evidence) cpuLeft() bool {
	used, known := e.serverCPU()
	limit, _, _ := e.cpuLimit()
	machine, seen := e.machine()
	if !known {
		return e.mean(series.ActiveCPU) < 1 // it does not fill a single one
	}
	return used < serverIdle && (!seen || machine < machineFull) && e.mean(series.ActiveCPU) <= limit
}

// classes lists what the active sessions did, the greatest share first.
func (e Evidence) classes() string {
	var parts []string
	for _, each := range e.Observed.Top(series.Active+".", 4) {
		share, _ := e.share(series.Active+"."+each.Name, series.Active)
		parts = append(parts, fmt.Sprintf("%s %s", each.Name, percent(share)))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

func reason(key, text string, figures ...Figure) Reason {
	return Reason{Key: key, Text: text, Figures: figures}
}

// percent writes a share for people.
func percent(share float64) string {
	if share != 0 && math.Abs(share) < 0.1 {
		return fmt.Sprintf("%.1f %%", share*100)
	}
	return fmt.Sprintf("%.0f %%", share*100)
}

// number writes three digits at least.
func number(value float64) string {
	switch size := math.Abs(value); {
	case size >= 100 || size == 0:
		return fmt.Sprintf("%.0f", value)
	case size >= 10:
		return fmt.Sprintf("%.1f", value)
	case size >= 1:
		return fmt.Sprintf("%.2f", value)
	default:
		return fmt.Sprintf("%.3f", value)
	}
}
