package proc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"howdah/internal/host/proc/cgroup"
	"howdah/internal/host/proc/table"
)

// ErrNotProved says that it is not proved that a member is dead. It may still write or acknowledge
// something.
var ErrNotProved = errors.New("not proved dead")

const (
	killWithin   = 10 * time.Second       // the deadline of a Kill whose context has none
	strikeEvery  = 100 * time.Millisecond // SIGKILL again, should a first one have missed
	freezeWithin = 50 * time.Millisecond  // what is frozen by then is killed first
	leastPause   = 200 * time.Microsecond
	longestPause = 10 * time.Millisecond
	stopRounds   = 10 // scans in which new forks are stopped before all are killed

	scansForProof  = 2  // that find nothing, where the scan is all the proof
	scansIfUnclear = 30 // that find nothing, where none is clear
)

// Proof says why a member is known to be dead.
type Proof struct {
	Group       string      `json:"group"`
	Containment Containment `json:"containment"`
	Evidence    string      `json:"evidence"` // in words
	Found       int         `json:"found"`    // how many processes ran when Kill began
	Began       time.Time   `json:"began"`
	At          time.Time   `json:"at"` // nothing ran any more
	Warnings    []Warning   `json:"warnings,omitempty"`
}

// Survivor is a process that Kill could not get rid of.
type Survivor struct {
	Process Process `json:"process"`
	Name    string  `json:"name"`
	State   string  `json:"state"` // as in ps: R, S, D, T, …
}

// SurvivorError says that a Kill proved nothing. It wraps ErrNotProved.
type SurvivorError struct {
	Group     string
	After     time.Duration
	Survivors []Survivor // may be empty, when the kernel counts but does not show them
	Cause     error      // why it was given up
}

func (e *SurvivorError) Error() string {
	var who []string
	for _, s := range e.Survivors {
		text := fmt.Sprintf("process %d (%s) in state %s", s.Process.PID, s.Name, s.State)
		if s.State == "D" {
			text += ", uninterruptible: it waits for a device, a network file system or a freezer"
		}
		who = append(who, text)
	}
	if len(who) == 0 {
		who = []string{"no survivor can be named"}
	}
	return fmt.Sprintf("kill %s: %v after %s: %s: %v",
		e.Group, ErrNotProved, e.After.Round(time.Millisecond), strings.Join(who, "; "), e.Cause)
}

// Unwrap returns ErrNotProved and the cause.
func (e *SurvivorError) Unwrap() []error { return []error{ErrNotProved, e.Cause} }

// Kill sends SIGKILL to every process of the member, also to processes that are forked meanwhile,
// stopped or frozen. It returns once none is left and that is proved. An error says that nothing is
// proved, and a *SurvivorError says which processes are left. Without a deadline in ctx it gives up
// after ten seconds. It lifts the limits of CPU and IO meanwhile, so that a throttled member need
// not wait for its turn to die. Once a group is known, Kill reads and writes no disk, so that a
// disk that hangs delays nobody's fence. It is idempotent: an empty group is proved empty at once.
//
// What the proof is worth: in a control group the kernel itself counted the last process out, after
// that had closed its files, and one scan of the process table found none outside. In tree
// containment two scans in a row found none. The package comment says which programs can hide from
// them.
func (g *Group) Kill(ctx context.Context) (Proof, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, limited := ctx.Deadline(); !limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, killWithin)
		defer cancel()
	}
	return g.kill(ctx)
}

func (g *Group) kill(ctx context.Context) (Proof, error) {
	proof := Proof{Group: g.name, Containment: g.host.containment, Began: time.Now()}
	noted, unknown := g.record() // what cannot be known of it must not keep us from killing
	scan := g.scanner(noted)
	layout := g.host.layout
	restore := cgroup.Lift(layout.CPU.Version, g.limitDir(layout.CPU), layout.IO.Version, g.limitDir(layout.IO))
	ran, inside, err := g.killContained(ctx)
	var scans scanned
	if err == nil {
		scans, err = g.killScanned(ctx, scan)
	}
	if lost := restore(); lost != nil {
		proof.warn("cpu and io", "limits lifted for the kill could not be put back", lost)
	}
	if unknown != nil && g.host.containment == Tree {
		err = errors.Join(err, unknown)
	} else if unknown != nil {
		proof.warn("record", "processes outside of the control group were looked for by their environment only", unknown)
	}
	if err != nil {
		return Proof{}, &SurvivorError{Group: g.name, After: time.Since(proof.Began), Survivors: g.survivors(scan), Cause: err}
	}
	proof.At = time.Now()
	proof.Found = ran + len(scans.killed)
	proof.Evidence = g.evidence(scans)
	g.host.reaped(ctx, g.name)
	// Then the numbers of the sessions mean nothing any more, and the next start knows what to wait
	// for.
	noted.Sessions, noted.Begun, noted.Dead = nil, nil, slices.Concat(inside, scans.killed)
	g.remember(noted)
	return proof, nil
}

func (p *Proof) warn(resource, text string, err error) {
	p.Warnings = append(p.Warnings, Warning{Resource: resource, Reason: text + ": " + err.Error(), Err: err})
}

func (g *Group) evidence(scans scanned) string {
	var text string
	switch g.host.containment {
	case Cgroup2:
		text = "cgroup.events of " + g.containedDir() + " says populated 0"
	case Freezer:
		text = "the kernel removed " + g.containedDir() + ", which it refuses while a process is in it"
	default:
		text = fmt.Sprintf("%d scans of the process table in a row found no process of the member", scans.clear+scans.unclear)
		if scans.clear < scansForProof {
			text += "; processes came and went too fast to look at each"
		}
		return text
	}
	if n := len(scans.killed); n > 0 {
		text += fmt.Sprintf("; processes found outside of it and killed: %d", n)
	}
	return text + "; a scan of the process table found none outside"
}

// survivors lists which processes are left, as far as can be seen.
func (g *Group) survivors(scan *scanner) []Survivor {
	processes, _ := g.contained()
	found, _ := scan.find()
	seen := map[Process]bool{}
	var left []Survivor
	add := func(entry table.Entry) {
		if !seen[entry.ID] {
			seen[entry.ID] = true
			left = append(left, Survivor{Process: entry.ID, Name: entry.Name, State: string(entry.State)})
		}
	}
	for _, process := range processes {
		if entry, err := g.host.processes.Live(process); err == nil {
			add(entry)
		}
	}
	for _, entry := range found.members {
		add(entry)
	}
	return left
}

// killContained empties the group that contains all, and proves it empty. It returns how many
// processes ran there, and those of them that it could identify before they ended.
func (g *Group) killContained(ctx context.Context) (ran int, found []Process, err error) {
	dir := g.containedDir()
	if dir == "" {
		return 0, nil, nil
	}
	pids, _ := cgroup.Processes(dir) // only to be counted
	found, _ = g.identify(pids)
	strike, empty := g.means(dir)
	var last time.Time
	err = until(ctx, func() (bool, error) {
		if time.Since(last) >= strikeEvery {
			if err := strike(); err != nil {
				return false, err
			}
			last = time.Now()
		}
		return empty()
	})
	return len(pids), found, err
}

// means returns how to hit everything in a control group, and how to know that nothing is left, by
// what the kernel has.
func (g *Group) means(dir string) (strike func() error, empty func() (bool, error)) {
	if g.host.containment == Freezer {
		return func() error { return g.strikeFrozen(cgroup.V1, dir) },
			func() (bool, error) {
				err := cgroup.Remove(dir)
				if errors.Is(err, cgroup.ErrBusy) {
					return false, nil
				}
				return err == nil, err
			}
	}
	strike = func() error { return cgroup.Kill(dir) }
	if g.host.config.noKillFile || !cgroup.HasKill(dir) {
		strike = func() error { return g.strikeFrozen(cgroup.V2, dir) }
	}
	return strike, func() (bool, error) {
		populated, err := cgroup.Populated(dir)
		if err != nil || populated {
			return false, err
		}
		// Whoever froze the group did not mean processes that will start in it next.
		return true, cgroup.Freeze(cgroup.V2, dir, false)
	}
}

// strikeFrozen stops the whole group, so that nobody forks. Then it sends SIGKILL to all in it, and
// lets them go on to die. What does not freeze in time is hit all the same, and the next strike
// hits what it forked.
func (g *Group) strikeFrozen(version cgroup.Version, dir string) error {
	if err := cgroup.Freeze(version, dir, true); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), freezeWithin)
	defer cancel()
	_ = until(ctx, func() (bool, error) { return cgroup.Frozen(version, dir) })
	pids, err := cgroup.Processes(dir)
	for _, pid := range pids {
		g.strikeMember(pid)
	}
	return errors.Join(err, cgroup.Freeze(version, dir, false))
}

// strikeMember kills the process of this id if it is in the group. It checks the group after it has
// the descriptor, so it cannot hit a process that got the id since. A process that it cannot hit is
// still in the group afterwards, and only that counts.
func (g *Group) strikeMember(pid int) {
	fd, err := openPID(pid)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	inGroup := "/" + g.host.config.Parent + "/" + g.name + memberSuffix
	if pid != os.Getpid() && g.host.processes.InGroup(pid, inGroup) {
		_ = sendSignal(fd, pid, syscall.SIGKILL)
	}
}

// killScanned kills what a scan of the process table finds, until scans find nothing. In tree
// containment it takes two scans in a row in which every process was looked at. If processes come
// and go too fast for that, it takes a number of unclear scans (scansIfUnclear), and the evidence
// says so. If a control group has proved more, one scan of any kind is enough.
func (g *Group) killScanned(ctx context.Context, scan *scanner) (scanned, error) {
	wanted, unclearWanted := 1, 1
	if g.host.containment == Tree {
		wanted, unclearWanted = scansForProof, scansIfUnclear
	}
	var result scanned
	var refused error
	counted := map[Process]bool{}
	err := until(ctx, func() (bool, error) {
		found, err := scan.find()
		switch {
		case err != nil:
			return false, err
		case len(found.members) > 0:
			result = scanned{}
			refused = g.stopAndKill(scan, found.members, counted)
		case found.clear:
			result.clear++
		default:
			result.unclear++
		}
		return result.clear >= wanted || result.unclear >= unclearWanted, nil
	})
	result.killed = slices.Collect(maps.Keys(counted))
	return result, errors.Join(err, refusedIf(err, refused))
}

// scanned is the result of the last scans, which found no member, and of the scans before.
type scanned struct {
	killed         []Process
	clear, unclear int
}

func refusedIf(err, refused error) error {
	if err == nil {
		return nil
	}
	return refused
}

// stopAndKill stops members until no scan finds a new one, so that no fork escapes between two
// scans. Then it kills them all. It adds to killed what it kills. The error is that of the last
// signal that was not allowed.
func (g *Group) stopAndKill(scan *scanner, members []table.Entry, killed map[Process]bool) (refused error) {
	stopped := map[Process]bool{}
	for range stopRounds {
		fresh := false
		for _, member := range members {
			if !stopped[member.ID] {
				stopped[member.ID], fresh = true, true
				_ = g.host.Signal(member.ID, syscall.SIGSTOP)
			}
		}
		if !fresh {
			break
		}
		next, err := scan.find()
		if err != nil {
			break
		}
		members = next.members
	}
	for _, member := range members {
		// A process that was just killed in a control group may still be seen here while it ends.
		if !member.Ending() {
			killed[member.ID] = true
		}
		if err := g.host.Signal(member.ID, syscall.SIGKILL); err != nil && !errors.Is(err, ErrGone) {
			refused = err
		}
	}
	return refused
}

// until calls done again and again, with growing pauses, until done returns true or fails, or ctx
// ends.
func until(ctx context.Context, done func() (bool, error)) error {
	pause := leastPause
	for {
		finished, err := done()
		if finished || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		pause = min(pause*2, longestPause)
	}
}
