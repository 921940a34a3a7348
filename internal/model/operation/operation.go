// Package operation is what is recorded of an operation: a deed about a database that takes
// minutes or hours, as a number of named steps. How the steps are taken is told in
// control/operation; this package is pure, so that the API and the planner can read records.
//
// A record has one writer at each stage of its life: whoever begins the operation makes it,
// and from then on the control plane that leads changes it, by compare-and-swap. That it is
// to be cancelled is a wish, which has a key of its own.
package operation

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"howdah/internal/model/event"
	"howdah/internal/model/spec"
)

// State is where an operation is in its life.
type State string

// The states. The last three are final.
const (
	Running   State = "running"
	Undoing   State = "undoing"
	Done      State = "done"
	Failed    State = "failed"
	Cancelled State = "cancelled"
)

// Ended reports whether nothing happens any more.
func (s State) Ended() bool { return s == Done || s == Failed || s == Cancelled }

// Bounds of records, so that nobody fills etcd with them.
const (
	// MaxSize is how many bytes a record has at most, as JSON.
	MaxSize = 16 << 10
	// MaxActive is how many operations are under way at most, and MaxOfAccount and MaxOf how
	// many of them of one account and about one database.
	MaxActive    = 256
	MaxOfAccount = 64
	MaxOf        = 8
	// Keep is how long ended ones are kept, of which the newest Most are.
	Keep = 7 * 24 * time.Hour
	Most = 500
)

// Deed is something that is done to a database, and that an operation may exclude.
type Deed string

// The deeds.
const (
	Failover Deed = "failover" // one that was asked for, and one that is needed
	Restart  Deed = "restart"
	Change   Deed = "change" // of what is wanted of the database
	Delete   Deed = "delete"
)

// Kind is what all operations of one kind have in common.
type Kind struct {
	Name string
	// Within is how long one takes at most. After that an alarm is raised; it goes on.
	Within time.Duration
	// Excludes are the deeds that must not be done to the database meanwhile. An operation
	// holds up nothing else.
	Excludes []Deed
}

// About is the database that an operation is about.
type About struct {
	spec.Scope
	Type     event.SourceType `json:"type"`
	Name     string           `json:"name"`
	Database string           `json:"database"` // resource id
}

// Source is the database as what an event is about.
func (a About) Source() event.Source {
	return event.Source{Scope: a.Scope, Type: a.Type, Name: a.Name}
}

// ARN is the database's.
func (a About) ARN() string { return a.Scope.ARN(event.ARNKind(a.Type), a.Name) }

// Record is an operation.
type Record struct {
	ID    string `json:"id"`
	Kind  string `json:"kind"`
	About About  `json:"about"`
	State State  `json:"state"`
	// Step is the one that is being taken, or undone. It is recorded before it begins.
	Step string `json:"step,omitempty"`
	// Entered are the steps that have begun, each once, in this order. While they are undone
	// it has those of which that is not done yet.
	Entered []string `json:"entered,omitempty"`
	// Owner is the term of leadership that took the operation over last. Turn grows whenever
	// that or the step changes: what a step makes elsewhere has the turn with it, and whoever
	// keeps it refuses a lower one than it has seen.
	Owner string `json:"owner,omitempty"`
	Turn  int64  `json:"turn"`
	// Failures in a row of this step, and what the last one said.
	Failures int    `json:"failures,omitempty"`
	Trouble  string `json:"trouble,omitempty"`
	// Reason is why the operation failed or was cancelled.
	Reason string    `json:"reason,omitempty"`
	Next   time.Time `json:"next,omitzero"` // it naps until then
	// Ending is the state that follows when all is undone.
	Ending State `json:"ending,omitempty"`
	// Left are steps that could not be undone: what they made may still be there.
	Left []string `json:"left,omitempty"`

	Began     time.Time `json:"began"`
	StepBegan time.Time `json:"step_began,omitzero"`
	Deadline  time.Time `json:"deadline"`
	// Told: an event told that the deadline has passed.
	Told  bool      `json:"told,omitempty"`
	Ended time.Time `json:"ended,omitzero"`

	Progress Progress `json:"progress"`
	Excludes []Deed   `json:"excludes,omitempty"`
	// Args are the kind's own, and Notes what steps leave for those after them.
	Args  json.RawMessage   `json:"args,omitempty"`
	Notes map[string]string `json:"notes,omitempty"`
}

// Wish is that an operation be cancelled.
type Wish struct {
	By string    `json:"by"` // access key
	At time.Time `json:"at"`
	// Abandon: what it made is left as it is, where undoing cannot succeed.
	Abandon bool `json:"abandon,omitempty"`
}

var (
	// ErrTooLarge says that a record would have more than MaxSize.
	ErrTooLarge = errors.New("more than the record of an operation may hold")
	// ErrTooMany says that no more operations may be under way.
	ErrTooMany = errors.New("too many operations are under way")
	// ErrInvalid says that an operation cannot be begun.
	ErrInvalid = errors.New("invalid operation")
)

var idForm = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)

// ValidID reports whether something is the id of an operation, which is a part of a key.
func ValidID(id string) bool { return idForm.MatchString(id) }

// New is an operation that has not begun. Two with one id are one operation.
func New(id string, kind Kind, about About, args any, now time.Time) (Record, error) {
	now = now.UTC()
	r := Record{
		ID: id, Kind: kind.Name, About: about, State: Running, Began: now, Deadline: now.Add(kind.Within),
		Excludes: slices.Clone(kind.Excludes),
	}
	if !ValidID(id) || kind.Name == "" || kind.Within <= 0 || about.Database == "" || about.Account == "" || about.Name == "" {
		return Record{}, fmt.Errorf("begin operation %.80q: %w", id, ErrInvalid)
	}
	if args != nil {
		text, err := json.Marshal(args)
		if err != nil {
			return Record{}, fmt.Errorf("begin operation %s: encode its arguments: %w", id, err)
		}
		r.Args = text
	}
	return r, r.Fits(MaxSize / 2) // steps leave notes
}

// Fits refuses a record that has more than so many bytes.
func (r Record) Fits(most int) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode operation %s: %w", r.ID, err)
	}
	if len(text) > most {
		return fmt.Errorf("operation %s has %d bytes: %w", r.ID, len(text), ErrTooLarge)
	}
	return nil
}

// Late reports whether an operation should have ended before now.
func (r Record) Late(now time.Time) bool { return !r.State.Ended() && now.After(r.Deadline) }

// Room refuses one more operation beside others where there are too many.
func Room(others []*Record, next Record) error {
	var all, account, database int
	for _, o := range others {
		if o.State.Ended() {
			continue
		}
		all++
		if o.About.Account == next.About.Account {
			account++
		}
		if o.About.Database == next.About.Database {
			database++
		}
	}
	switch {
	case database >= MaxOf:
		return fmt.Errorf("%d about %s: %w", database, next.About.Name, ErrTooMany)
	case account >= MaxOfAccount:
		return fmt.Errorf("%d of account %s: %w", account, next.About.Account, ErrTooMany)
	case all >= MaxActive:
		return fmt.Errorf("%d: %w", all, ErrTooMany)
	}
	return nil
}

// Excluding is the operation among others that a deed to a database has to wait for, if there
// is one. An operation that does not say so in its record holds nothing up.
func Excluding(others []*Record, database string, deed Deed) (Record, bool) {
	for _, o := range others {
		if !o.State.Ended() && o.About.Database == database && slices.Contains(o.Excludes, deed) {
			return *o, true
		}
	}
	return Record{}, false
}

// Expired are the ids of ended operations that need not be kept any more.
func Expired(all []*Record, now time.Time) []string {
	var ended []*Record
	for _, r := range all {
		if r.State.Ended() {
			ended = append(ended, r)
		}
	}
	slices.SortFunc(ended, func(a, b *Record) int { return b.Ended.Compare(a.Ended) })
	var ids []string
	for n, r := range ended {
		if n >= Most || now.Sub(r.Ended) > Keep {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// Forget is what is to be said of an operation of a home that was restored: how far it came
// after the backup is not known. It is neither gone on with nor undone, as what it made may be
// in use by now.
func (r Record) Forget(now time.Time) Record {
	r.State, r.Ended, r.Next, r.Ending = Failed, now.UTC(), time.Time{}, ""
	r.Left, r.Entered, r.Step = slices.Clone(r.Entered), nil, ""
	r.Reason = "the home was restored from a backup, and how far this came since is not known: what it made is left as it is"
	return r
}
