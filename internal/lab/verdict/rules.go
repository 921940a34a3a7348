package verdict

import (
	"fmt"

	"howdah/internal/observe/series"
	"howdah/internal/observe/wait"
)

// Thresholds. All are shares.
const (
	generatorFull = 0.85 // of the generator's CPUs: it cannot send more
	serverIdle    = 0.70 // of the server's CPUs: below, these do not limit it
	serverFull    = 0.90 // of the server's CPUs: these limit it
	machineFull   = 0.95 // of the machine's CPUs, if the generator is there, too
	serverPart    = 0.30 // of a full machine's CPUs: below, others filled it
	fewOccupied   = 0.50 // of the clients: below, the server waits for them
	tripsMatter   = 0.50 // of the latency that round trips take
	cpuShare      = 0.50 // of the active sessions
	walShare      = 0.40 // of the active sessions
	waitShare     = 0.30 // of the active sessions, for other waits
	pressureIO    = 0.20 // of the time, some task waited for I/O
	fewReads      = 0.10 // of the active sessions: fewer do not explain a pressure
	goodHits      = 0.99 // of blocks found in shared buffers
	imageShare    = 0.50 // of the bytes of WAL
	imagesMatter  = 0.20 // of the active sessions that write WAL or data
	checkpointDip = 0.70 // of the throughput without a checkpoint
	mostOfLimit   = 0.80 // of the operations that a control group may do
)

const (
	// farAway is a round trip that is longer than on one machine, in ms.
	farAway = 0.5
	// heldBack is how many of the ten periods in a second show that a limit was met.
	heldBack = 1
)

// machine returns how much of its CPUs the generator's machine uses, which may be the server's, too.
func (e Evidence) machine() (share float64, known bool) {
	return e.share(series.MachineCPU, series.MachineCPUs)
}

// generatorCPU: the generator itself has no CPU left, or its machine, if the server is on another one.
func generatorCPU(e Evidence) (Finding, bool) {
	used, known := e.Observed.Mean(series.GeneratorCPU)
	if all, seen := e.machine(); e.Elsewhere && seen && all >= machineFull {
		return Finding{
			Cause: Client, Key: "client_machine", Subject: "CPU", Sentence: "The load generator limits it: its machine has no CPU left.",
			Reasons: []Reason{reason("client_machine_cpu", fmt.Sprintf("All programs together used %s of the CPUs of the load generator's machine.", percent(all)),
				Figure{"machine_cpu_share", all, "share", machineFull})},
		}, true
	}
	if !known || e.Load.Cores <= 0 || used/e.Load.Cores < generatorFull {
		return Finding{}, false
	}
	share := used / e.Load.Cores
	return Finding{
		Cause: Client, Key: "client_cpu", Subject: "CPU", Sentence: "The load generator limits it: it has no CPU left.",
		Reasons: []Reason{reason("generator_cpu", fmt.Sprintf("It used %s of the %s CPUs that it can use.", percent(share), number(e.Load.Cores)),
			Figure{"generator_cpu_share", share, "share", generatorFull}, Figure{Name: "generator_cores", Value: e.Load.Cores, Unit: "cores"})},
	}, true
}

// poolerCPU: a pooler takes more of a full machine than the server that is observed.
func poolerCPU(e Evidence) (Finding, bool) {
	machine, known := e.share(series.MachineCPU, series.MachineCPUs)
	cpus, _ := e.Observed.Mean(series.MachineCPUs)
	share := e.Load.Pooler / max(1, cpus)
	if !known || machine < serverFull || share < serverPart || e.Load.Pooler < e.mean(series.ServerCPU) {
		return Finding{}, false
	}
	return Finding{
		Cause: Pooler, Subject: "CPU", Sentence: "pgpool-II limits it: it takes more CPU than the server that takes writes, and none is left.",
		Reasons: []Reason{reason("pooler_cpu", fmt.Sprintf("All programs together used %s of the machine's CPUs, and pgpool-II %s.", percent(machine), percent(share)),
			Figure{"machine_cpu_share", machine, "share", serverFull}, Figure{"pooler_cpu_share", share, "share", serverPart})},
	}, true
}

// idleServer: the sessions mostly have nothing to do. Either their statements are on the way, or
// the generator does not send any.
func idleServer(e Evidence) (Finding, bool) {
	occupied, known := e.occupied()
	if !known || e.serverWorks() {
		return Finding{}, false
	}
	waits := e.of(wait.Client)
	if occupied >= fewOccupied && waits < cpuShare {
		return Finding{}, false
	}
	decided := reason("occupied", fmt.Sprintf("On average %s of the clients had a session that was active.", percent(occupied)),
		Figure{"occupied_share", occupied, "share", fewOccupied})
	if occupied >= fewOccupied {
		decided = reason("client_waits", fmt.Sprintf("%s of the active sessions waited for their client to send or to take data.", percent(waits)),
			Figure{"client_wait_share", waits, "share", cpuShare})
	}
	f := Finding{Cause: Client, Key: "client_rate", Subject: "rate", Sentence: "The load generator limits it: it leaves the server idle.", Reasons: []Reason{decided}}
	if trips, ok := e.network(); ok && !e.near() {
		f.Cause, f.Key, f.Subject, f.Sentence = Network, "network", "", "Round trips limit it: most of the time statements and answers are on their way."
		f.Reasons = append(f.Reasons, trips)
	} else if e.Load.Beyond {
		f.Cause, f.Key, f.Subject, f.Sentence = Unknown, "unknown_beyond", "", "What limits it is not known: the server that takes writes is idle, and the load goes to others, or through a pooler."
	} else if ok {
		f.Key, f.Subject, f.Sentence = "client_turns", "turns", "The load generator limits it: each of its clients waits for one answer after the other, on the server's own machine."
		f.Reasons = append(f.Reasons, trips)
	} else if busy, known := e.underWay(); known {
		f.Reasons = append(f.Reasons, reason("under_way", fmt.Sprintf("A client had a transaction under way in %s of the time.", percent(busy)),
			Figure{Name: "under_way_share", Value: busy, Unit: "share"}))
	}
	if share, known := e.serverCPU(); known {
		f.Reasons = append(f.Reasons, reason("server_cpu", fmt.Sprintf("The server used %s of its CPUs.", percent(share)), Figure{"server_cpu_share", share, "share", serverIdle}))
	}
	return f, true
}

// serverWorks reports whether the CPUs are used so much that sessions may only seem to be idle.
func (e Evidence) serverWorks() bool {
	if share, known := e.serverCPU(); known && share >= serverIdle {
		return true
	}
	_, own, _ := e.cpuLimit()
	cpus, known := e.Observed.Mean(series.MachineCPUs)
	used, also := e.Observed.Mean(series.MachineCPU)
	ours := used - e.mean(series.MachineForeign) // strangers do not make the server's sessions idle
	return !e.Elsewhere && !own && known && also && ours >= serverFull*cpus
}

// underWay returns the share of the time in which a client has a transaction under way.
func (e Evidence) underWay() (float64, bool) {
	l := e.Load
	if l.Clients <= 0 || l.TPS <= 0 || l.LatencyMS <= 0 {
		return 0, false
	}
	return min(1, l.TPS*l.LatencyMS/1000/float64(l.Clients)), true
}

// near reports whether the generator is on the server's machine, with no network in between: a round trip is
// then the time until either gets a CPU.
func (e Evidence) near() bool {
	trip, _ := e.Observed.Min(series.ObserverRoundTrip)
	_, seen := e.Observed.Mean(series.ServerCPU)
	return !e.Elsewhere && seen && trip < farAway
}

// network reports whether round trips take most of a transaction. The least of what was measured is
// the network's; the rest is the server's.
func (e Evidence) network() (Reason, bool) {
	trip, known := e.Observed.Min(series.ObserverRoundTrip)
	busy, also := e.underWay()
	if !known || !also || busy < fewOccupied {
		return Reason{}, false
	}
	trips := Figure{Name: "round_trip", Value: trip, Unit: "ms"}
	if e.Load.RoundTrips <= 0 {
		return reason("round_trip", fmt.Sprintf("A round trip to the server takes %s ms.", number(trip)), trips), trip >= farAway
	}
	share := min(1, trip*e.Load.RoundTrips/e.Load.LatencyMS)
	text := fmt.Sprintf("%s round trips of %s ms each are %s of the latency of %s ms.",
		number(e.Load.RoundTrips), number(trip), percent(share), number(e.Load.LatencyMS))
	return reason("round_trips", text, Figure{Name: "round_trips", Value: e.Load.RoundTrips, Unit: "1"}, trips,
		Figure{"round_trip_share", share, "share", tripsMatter}, Figure{Name: "latency", Value: e.Load.LatencyMS, Unit: "ms"}), share >= tripsMatter
}

// cpu: the server uses all that it may, and its sessions want more.
func cpu(e Evidence) (Finding, bool) {
	used, known := e.serverCPU()
	limit, own, _ := e.cpuLimit()
	if !known || !e.computes(own) {
		return Finding{}, false
	}
	throttled, _ := e.Observed.Mean(series.ServerThrottled)
	machine, seen := e.machine()
	f := Finding{Cause: CPU, Key: "cpu_class", Subject: "class", Sentence: fmt.Sprintf("The CPU limits it: the server may use %s CPUs.", number(limit))}
	spent := reason("server_cpu", fmt.Sprintf("The server used %s of its %s CPUs.", percent(used), number(limit)),
		Figure{"server_cpu_share", used, "share", serverFull}, Figure{Name: "server_cpus", Value: limit, Unit: "cores"})
	switch {
	case used >= serverFull:
	case own && throttled >= heldBack && used >= serverIdle:
	case seen && machine >= machineFull && used >= serverPart:
		own = false // others have what it might use
		spent = reason("machine_cpu", fmt.Sprintf("All programs together used %s of the machine's CPUs, and the server %s.", percent(machine), percent(used)),
			Figure{"machine_cpu_share", machine, "share", machineFull}, Figure{Name: "server_cpu_share", Value: used, Unit: "share"})
	default:
		return Finding{}, false
	}
	if !own {
		f.Key, f.Subject, f.Sentence = "cpu_machine", "machine", "The CPUs of the machine limit it."
	}
	f.Reasons = append([]Reason{spent}, e.queue(limit)...)
	return f, true
}

// computes reports whether the sessions mostly run. A server that is held back by its control group
// stands still most of the time, and whoever asks its sessions with it: they are seen only while
// they run, or while they just take the next statement.
func (e Evidence) computes(held bool) bool {
	if _, seen := e.Observed.Mean(series.Active); !seen {
		return false
	}
	throttled, _ := e.Observed.Mean(series.ServerThrottled)
	if !held || throttled < heldBack {
		return e.of(wait.CPU) >= cpuShare
	}
	return 1-e.of(wait.CPU)-e.of(wait.Client) < cpuShare || e.mean(series.Active) == 0
}

// queue says how many sessions wanted the CPUs.
func (e Evidence) queue(limit float64) []Reason {
	share, active := e.of(wait.CPU), e.mean(series.ActiveCPU)
	reasons := []Reason{reason("cpu_share", fmt.Sprintf("%s of the active sessions ran, or waited for a CPU.", percent(share)),
		Figure{"cpu_share", share, "share", cpuShare})}
	if throttled, known := e.Observed.Mean(series.ServerThrottled); known && throttled > 0 {
		reasons = append(reasons, reason("throttled", fmt.Sprintf("The kernel held it back %s times a second.", number(throttled)),
			Figure{Name: series.ServerThrottled, Value: throttled, Unit: "1/s"}))
	}
	if active > limit {
		reasons = append(reasons, reason("queue", fmt.Sprintf("On average %s sessions wanted %s CPUs: they queue.", number(active), number(limit)),
			Figure{Name: series.ActiveCPU, Value: active, Unit: "sessions"}, Figure{Name: "server_cpus", Value: limit, Unit: "cores"}))
	}
	return reasons
}

// locks: sessions wait for each other's transactions.
func locks(e Evidence) (Finding, bool) {
	share := e.of(wait.Lock)
	if share < waitShare {
		return Finding{}, false
	}
	rows, row := e.events(wait.Event.Row)
	_, top := e.events(func(event wait.Event) bool { return event.Class() == wait.Lock })
	on := e.Observed.Top(series.LockOnPrefix, 1)
	f := Finding{Cause: Lock, Subject: top.String(), Sentence: fmt.Sprintf("A lock limits it: sessions wait for %s.", top)}
	if rows >= share/2 {
		f = Finding{Cause: RowLock, Subject: row.String(), Sentence: "Locks on rows limit it: sessions change the same rows, one after the other."}
	}
	f.Reasons = append(f.Reasons, reason("lock_share", fmt.Sprintf("%s of the active sessions waited for a lock.", percent(share)),
		Figure{"lock_share", share, "share", waitShare}), e.topReason(top))
	if len(on) > 0 {
		f.Subject = on[0].Name
		f.Reasons = append(f.Reasons, reason("lock_on", fmt.Sprintf("On average %s of them waited for %s.", number(on[0].Value), on[0].Name),
			Figure{Name: series.LockOnPrefix + on[0].Name, Value: on[0].Value, Unit: "sessions"}))
	}
	if rest, holder := e.events(func(event wait.Event) bool { return event.Class() != wait.Lock }); rest > 0 {
		f.Reasons = append(f.Reasons, reason("holders", fmt.Sprintf("Of the others, who may hold the locks, most were in %s.", holder),
			Figure{Name: series.WaitPrefix + holder.String(), Value: e.mean(series.WaitPrefix + holder.String()), Unit: "sessions"}))
	}
	return f, true
}

// lwlock: sessions wait inside of the server.
func lwlock(e Evidence) (Finding, bool) {
	share := e.of(wait.LWLock)
	if share < waitShare {
		return Finding{}, false
	}
	_, top := e.events(func(event wait.Event) bool { return event.Class() == wait.LWLock })
	return Finding{
		Cause: LWLock, Subject: top.String(), Sentence: fmt.Sprintf("A lock inside of the server limits it: %s.", top.Name),
		Reasons: []Reason{reason("lwlock_share", fmt.Sprintf("%s of the active sessions waited for such a lock.", percent(share)),
			Figure{"lwlock_share", share, "share", waitShare}), e.topReason(top)},
	}, true
}

// otherWait: some other wait stands out.
func otherWait(e Evidence) (Finding, bool) {
	share, top := e.events(func(event wait.Event) bool {
		class := event.Class()
		return (class == wait.IPC || class == wait.Timeout || class == wait.Other) && !event.Replication() && !event.Reads() && !event.Writes()
	})
	if share < waitShare {
		return Finding{}, false
	}
	return Finding{
		Cause: Wait, Subject: top.String(), Sentence: fmt.Sprintf("A wait limits it: %s.", top),
		Reasons: []Reason{reason("wait_share", fmt.Sprintf("%s of the active sessions were in waits of this kind.", percent(share)),
			Figure{"wait_share", share, "share", waitShare}), e.topReason(top)},
	}, true
}

// topReason names the event that most sessions waited for.
func (e Evidence) topReason(top wait.Event) Reason {
	value := e.mean(series.WaitPrefix + top.String())
	return reason("top", fmt.Sprintf("Most waited for %s: %s sessions on average.", top, number(value)),
		Figure{Name: series.WaitPrefix + top.String(), Value: value, Unit: "sessions"})
}

func (e Evidence) mean(name string) float64 {
	value, _ := e.Observed.Mean(name)
	return value
}
