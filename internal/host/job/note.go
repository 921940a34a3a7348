package job

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"howdah/internal/model/member"
	"howdah/internal/system/plainfile"
)

// note is what is on disk of a job that was begun. Only root can read it.
type note struct {
	Job   member.Job `json:"job"`
	Asked int64      `json:"asked"` // revision of the job's key
	// Ended is how the job ended; nil: it goes on.
	Ended *member.JobReport `json:"ended,omitempty"`
}

const noteSuffix = ".json"

// idOf names a job's files and processes. A job's name has slashes, and any length.
func idOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:12])
}

// shelf has the notes of a host's jobs, and beside each the job's directory.
type shelf string

func (s shelf) notePath(id string) string { return filepath.Join(string(s), id+noteSuffix) }
func (s shelf) dir(id string) string      { return filepath.Join(string(s), id) }

// write keeps a note. It is on the disk when this returns nil.
func (s shelf) write(n note) error {
	text, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("note job %s: %w", n.Job.Name, err)
	}
	return plainfile.Replace(s.notePath(idOf(n.Job.Name)), text, 0o600)
}

// remove removes a note, after all that it stands for.
func (s shelf) remove(id string) error {
	if err := os.Remove(s.notePath(id)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("forget a job: %w", err)
	}
	return nil
}

// read returns all notes, and the ids of what has no note that can be read. Nothing of the latter
// was begun, or all of it is over but for the files.
func (s shelf) read() (notes []note, strays []string, err error) {
	entries, err := os.ReadDir(string(s))
	if err != nil {
		return nil, nil, fmt.Errorf("look for jobs: %w", err)
	}
	known := map[string]bool{}
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), noteSuffix)
		if !ok || e.IsDir() || e.Name() == turnsFile {
			continue
		}
		text, err := plainfile.Read(s.notePath(id))
		if err != nil {
			return nil, nil, err
		}
		var n note
		if json.Unmarshal(text, &n) == nil && idOf(n.Job.Name) == id {
			notes, known[id] = append(notes, n), true
		}
	}
	for _, e := range entries {
		id := strings.TrimSuffix(e.Name(), noteSuffix)
		if e.Name() != turnsFile && !known[id] && !slices.Contains(strays, id) {
			strays = append(strays, id)
		}
	}
	slices.SortFunc(notes, func(a, b note) int { return int(a.Asked - b.Asked) })
	return notes, strays, nil
}

// The turns that were seen are kept in one file: of the operations of the last days, and of no more
// than mostTurns.
const (
	turnsFile = "turns" + noteSuffix
	keepTurns = 30 * 24 * time.Hour
	mostTurns = 2000
)

// turns has the highest turn that was seen of each operation.
type turns struct {
	path string

	mu   sync.Mutex
	seen map[string]seenTurn // by operation; nil: not read yet. Guarded by mu.
}

type seenTurn struct {
	Turn int64     `json:"turn"`
	At   time.Time `json:"at"`
}

// errOldTurn says that a job was asked for by a control plane that had been overtaken.
var errOldTurn = errors.New("a newer turn of the operation was seen here")

// admit takes note of a job's turn, on disk, or refuses it.
func (t *turns) admit(job member.Job, now time.Time) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.load(); err != nil {
		return err
	}
	operation, _, _ := strings.Cut(job.Name, "/")
	switch seen := t.seen[operation]; {
	case job.Turn < seen.Turn:
		return Final(fmt.Errorf("turn %d of %s, after %d: %w", job.Turn, operation, seen.Turn, errOldTurn))
	case job.Turn == seen.Turn && !seen.At.IsZero():
		return nil
	}
	t.seen[operation] = seenTurn{job.Turn, now.UTC()}
	t.trim(now)
	text, err := json.Marshal(t.seen)
	if err == nil {
		err = plainfile.Replace(t.path, text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("note the turn of %s: %w", operation, err)
	}
	return nil
}

func (t *turns) load() error {
	if t.seen != nil {
		return nil
	}
	seen := map[string]seenTurn{}
	text, err := os.ReadFile(t.path)
	if err == nil {
		err = json.Unmarshal(text, &seen)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read the turns of operations: %w", err)
	}
	t.seen = seen
	return nil
}

// trim forgets the oldest.
func (t *turns) trim(now time.Time) {
	type named struct {
		name string
		at   time.Time
	}
	var all []named
	for name, s := range t.seen {
		all = append(all, named{name, s.At})
	}
	slices.SortFunc(all, func(a, b named) int { return b.at.Compare(a.at) })
	for n, s := range all {
		if n >= mostTurns || now.Sub(s.at) > keepTurns {
			delete(t.seen, s.name)
		}
	}
}
