package proc

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"howdah/internal/host/proc/table"
)

// scanner finds the processes of a member in the process table alone. A process that it has found
// stays a member until it is dead, also if its parent dies, and with it the trace of where it came
// from.
type scanner struct {
	processes table.Root
	marker    string
	record    record
	known     map[Process]bool
	leaders   map[int]leader // of the member's sessions, as of the current scan
}

// leader is what a session's number means now.
type leader struct {
	since uint64 // when the process that we started got the number
	alive bool
	taken bool // by another process, so that the session has ended
}

// findings are the result of one scan.
type findings struct {
	members []table.Entry
	// clear says that every process that was there was looked at. If not, some came or went too
	// fast. Then it proves less that no member was found.
	clear bool
}

// listRounds bounds how often one scan lists the table again for what was forked since. A round
// after the first is short, because it looks only at new processes.
const listRounds = 10

func (g *Group) scanner(r record) *scanner {
	return &scanner{processes: g.host.processes, marker: g.marker(), record: r, known: map[Process]bool{}}
}

// find scans the process table for every live member. Members are processes known from an earlier
// scan, and processes with a mark of their own: their session, or, for processes of the member's
// user, the working directory or the environment. The descendants of both are members, too. This
// process and the processes above it are never members.
func (s *scanner) find() (findings, error) {
	s.lookUpLeaders()
	all := map[int]table.Entry{}
	marked := map[int]bool{}
	found := findings{clear: true}
	looked := map[int]bool{}
	for round := 0; ; round++ {
		pids, err := s.processes.IDs()
		if err != nil {
			return findings{}, err
		}
		fresh := false
		for _, pid := range pids {
			if looked[pid] {
				continue
			}
			looked[pid], fresh = true, true
			entry, mark, err := s.look(pid)
			switch {
			case errors.Is(err, ErrGone):
				found.clear = false
			case err != nil:
				return findings{}, err
			case !entry.Dead():
				all[pid], marked[pid] = entry, mark
			}
		}
		if !fresh {
			break
		}
		if round == listRounds {
			found.clear = false
			break
		}
	}
	found.members = grow(all, marked)
	for _, entry := range found.members {
		s.known[entry.ID] = true
	}
	return found, nil
}

// look reads one process, and whether it has a mark. It returns ErrGone if the process ended before
// that could be seen.
func (s *scanner) look(pid int) (table.Entry, bool, error) {
	entry, err := s.processes.Get(pid)
	if err != nil || entry.Dead() || entry.Kernel {
		return entry, false, err
	}
	if s.known[entry.ID] || s.marked(entry) {
		return entry, true, nil
	}
	// A process that was about to end may have shown no marks of its own.
	after, err := s.processes.Live(entry.ID)
	if err == nil && after.Ending() {
		err = ErrGone
	}
	return entry, false, err
}

// grow adds the descendants of the marked processes. It leaves out this process and all above it.
func grow(all map[int]table.Entry, marked map[int]bool) []table.Entry {
	seen := map[int]bool{}
	for pid := os.Getpid(); pid != 0 && !seen[pid]; pid = all[pid].Parent {
		seen[pid] = true
	}
	children := make(map[int][]table.Entry, len(all))
	var members []table.Entry
	for pid, entry := range all {
		children[entry.Parent] = append(children[entry.Parent], entry)
		if marked[pid] && !seen[pid] {
			seen[pid] = true
			members = append(members, entry)
		}
	}
	for i := 0; i < len(members); i++ { // grows while it runs
		for _, entry := range children[members[i].PID] {
			if !seen[entry.PID] {
				seen[entry.PID] = true
				members = append(members, entry)
			}
		}
	}
	return members
}

func (s *scanner) marked(entry table.Entry) bool {
	if session, certain := s.inSession(entry); session {
		return certain || s.sameUser(entry.PID)
	}
	return s.sameUser(entry.PID) && (s.inDataDir(entry.PID) || s.processes.HasEnv(entry.PID, s.marker))
}

func (s *scanner) lookUpLeaders() {
	s.leaders = map[int]leader{}
	for _, session := range s.record.Sessions {
		now, err := s.processes.Get(session.PID)
		s.leaders[session.PID] = leader{
			since: session.Start,
			alive: err == nil && now.ID == session && !now.Dead(),
			taken: err == nil && now.ID != session,
		}
	}
}

// inSession reports whether the process is in a session or process group that we started. The
// number stays taken while anyone is in it. Once the leader is dead and all have left, the number
// can come to mean another session. So with a dead leader the answer is not certain.
func (s *scanner) inSession(entry table.Entry) (in, certain bool) {
	for _, number := range []int{entry.Session, entry.Group} {
		leader, ours := s.leaders[number]
		if ours && !leader.taken && entry.Start >= leader.since {
			return true, leader.alive
		}
	}
	return false, false
}

// sameUser reports whether the process runs as the member's user. It returns true if no user of the
// member is recorded.
func (s *scanner) sameUser(pid int) bool {
	if s.record.UID == nil {
		return true
	}
	uid, err := s.processes.UID(pid)
	return err == nil && uid == *s.record.UID
}

func (s *scanner) inDataDir(pid int) bool {
	if s.record.DataDir == "" {
		return false
	}
	dir, err := s.processes.Dir(pid)
	if err != nil {
		return false
	}
	// The kernel appends this to the name of a directory that was removed meanwhile.
	dir = strings.TrimSuffix(dir, " (deleted)")
	return dir == s.record.DataDir || strings.HasPrefix(dir, s.record.DataDir+"/")
}

// resolve returns the name of a directory as the kernel will show it.
func resolve(dir string) (string, error) {
	if dir == "" {
		return "", nil
	}
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	resolved, err := filepath.EvalSymlinks(absolute)
	if os.IsNotExist(err) { // Patroni is going to make it
		parent, err := resolve(filepath.Dir(absolute))
		return filepath.Join(parent, filepath.Base(absolute)), err
	}
	return resolved, err
}
