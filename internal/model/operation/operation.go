// Package operation has the record of an operation. An operation does something to a database that
// takes minutes or hours, as a number of named steps. Package control/operation takes the steps;
// this package is pure, so that the API and the planner can read records.
//
// A record has one writer at each stage of its life. Whoever begins the operation makes the record.
// From then on only the control plane that leads changes it, by compare-and-swap. The wish to
// cancel an operation has a key of its own.
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

// State is the state of an operation.
type State string

// The states. The last three are final.
const (
	Running   State = "running"
	Undoing   State = "undoing"
	Done      State = "done"
	Failed    State = "failed"
	Cancelled State = "cancelled"
)

// Ended reports whether the state is final.
func (s State) Ended() bool { return s == Done || s == Failed || s == Cancelled }

// Limits of records, so that nobody can fill etcd with them.
const (
	// MaxSize is the largest size of a record, in bytes of JSON.
	MaxSize = 16 << 10
	// MaxActive is how many operations may be under way in all, MaxOfAccount how many of one
	// account, and MaxOf how many about one database.
	MaxActive    = 256
	MaxOfAccount = 64
	MaxOf        = 8
	// Keep is how long ended operations are kept. Of these only the newest Most are kept.
	Keep = 7 * 24 * time.Hour
	Most = 500
)

// Deed is something that can be done to a database, and that an operation can exclude.
type Deed string

// The deeds.
const (
	Failover Deed = "failover" // one that was asked for, and one that is needed
	Restart  Deed = "restart"  // also a stop, and a start
	Change   Deed = "change"   // of what is wanted of the database
	Delete   Deed = "delete"
)

// Kind is what all operations of one kind share.
type Kind struct {
	Name string
	// Within is how long an operation should take at most. After that it goes on, but raises an
	// alarm.
	Within time.Duration
	// Excludes lists the deeds that must not be done to the database while the operation is under
	// way. All other deeds go on.
	Excludes []Deed
}

// About is the database that an operation is about.
type About struct {
	spec.Scope
	Type     event.SourceType `json:"type"`
	Name     string           `json:"name"`
	Database string           `json:"database"` // resource id
}

// Source returns the database as the source of an event.
func (a About) Source() event.Source {
	return event.Source{Scope: a.Scope, Type: a.Type, Name: a.Name}
}

// ARN returns the resource name of the database.
func (a About) ARN() string { return a.Scope.ARN(event.ARNKind(a.Type), a.Name) }

// Record is the record of one operation.
type Record struct {
	ID    string `json:"id"`
	Kind  string `json:"kind"`
	About About  `json:"about"`
	State State  `json:"state"`
	// Step is the step that is being taken or undone. It is recorded before it begins.
	Step string `json:"step,omitempty"`
	// Entered lists the steps that have begun, each once, in the order in which they began. Undoing
	// a step removes it from the list.
	Entered []string `json:"entered,omitempty"`
	// Owner is the term of leadership that took the operation over last. Turn grows whenever Owner
	// or Step changes. A step marks with the turn what it makes elsewhere, and whoever keeps that
	// refuses a lower turn than the highest seen.
	Owner string `json:"owner,omitempty"`
	Turn  int64  `json:"turn"`
	// Failures counts the failures of this step in a row. Trouble is what the last one said.
	Failures int    `json:"failures,omitempty"`
	Trouble  string `json:"trouble,omitempty"`
	// Reason is why the operation failed or was cancelled.
	Reason string    `json:"reason,omitempty"`
	Next   time.Time `json:"next,omitzero"` // it naps until then
	// Ending is the state that follows when all steps are undone.
	Ending State `json:"ending,omitempty"`
	// Left lists the steps that could not be undone: what they made may still exist.
	Left []string `json:"left,omitempty"`

	Began     time.Time `json:"began"`
	StepBegan time.Time `json:"step_began,omitzero"`
	Deadline  time.Time `json:"deadline"`
	// Told says that an event told that the deadline has passed.
	Told  bool      `json:"told,omitempty"`
	Ended time.Time `json:"ended,omitzero"`

	Progress Progress `json:"progress"`
	Excludes []Deed   `json:"excludes,omitempty"`
	// Args are the arguments of this kind of operation. Notes are what a step leaves for later
	// steps.
	Args  json.RawMessage   `json:"args,omitempty"`
	Notes map[string]string `json:"notes,omitempty"`
}

// Wish is the wish to cancel an operation.
type Wish struct {
	By string    `json:"by"` // access key
	At time.Time `json:"at"`
	// Abandon leaves what the operation made as it is, for a case where undoing cannot succeed.
	Abandon bool `json:"abandon,omitempty"`
}

var (
	// ErrTooLarge says that a record would be larger than allowed.
	ErrTooLarge = errors.New("more than the record of an operation may hold")
	// ErrTooMany says that too many operations are under way to begin one more.
	ErrTooMany = errors.New("too many operations are under way")
	// ErrInvalid says that an operation cannot be begun.
	ErrInvalid = errors.New("invalid operation")
)

var idForm = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)

// ValidID reports whether id is a valid operation id. Ids are parts of keys.
func ValidID(id string) bool { return idForm.MatchString(id) }

// New makes the record of an operation that is about to begin. Two operations with the same id are
// one operation. It fails with ErrInvalid, or with ErrTooLarge if args leave no room for notes.
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

// Fits returns ErrTooLarge if the record has more than most bytes as JSON.
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

// Late reports whether the operation has not ended although its deadline has passed.
func (r Record) Late(now time.Time) bool { return !r.State.Ended() && now.After(r.Deadline) }

// Room returns ErrTooMany if there are too many operations for one more.
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

// Excluding finds an operation under way that a deed to the database has to wait for. Only what an
// operation lists in its Excludes waits.
func Excluding(others []*Record, database string, deed Deed) (Record, bool) {
	for _, o := range others {
		if !o.State.Ended() && o.About.Database == database && slices.Contains(o.Excludes, deed) {
			return *o, true
		}
	}
	return Record{}, false
}

// Expired returns the ids of ended operations that need not be kept any more.
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

// Forget ends an operation after the home was restored from a backup. Nobody knows how far the
// operation came after the backup. It is neither continued nor undone, as what it made may be in
// use by now.
func (r Record) Forget(now time.Time) Record {
	r.State, r.Ended, r.Next, r.Ending = Failed, now.UTC(), time.Time{}, ""
	r.Left, r.Entered, r.Step = slices.Clone(r.Entered), nil, ""
	r.Reason = "the home was restored from a backup, and how far this came since is not known: what it made is left as it is"
	return r
}
