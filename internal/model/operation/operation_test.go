package operation

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"howdah/internal/model/event"
	"howdah/internal/model/spec"
)

var (
	noon  = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	shelf = About{Scope: spec.Scope{Account: "123456789012", Region: "us-east-1"}, Type: event.Instance, Name: "orders", Database: "db-1"}
	stock = Kind{Name: "count", Within: time.Hour, Excludes: []Deed{Restart}}
)

func begun(t *testing.T, id string, change func(*Record)) *Record {
	t.Helper()
	r, err := New(id, stock, shelf, nil, noon)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&r)
	}
	return &r
}

func TestNewRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		id    string
		kind  Kind
		about About
		args  any
		want  error
	}{
		"a path":           {"../spec", stock, shelf, nil, ErrInvalid},
		"no id":            {"", stock, shelf, nil, ErrInvalid},
		"a long id":        {strings.Repeat("a", 64), stock, shelf, nil, ErrInvalid},
		"capitals":         {"Count", stock, shelf, nil, ErrInvalid},
		"no kind":          {"a", Kind{Within: time.Hour}, shelf, nil, ErrInvalid},
		"no deadline":      {"a", Kind{Name: "count"}, shelf, nil, ErrInvalid},
		"nobody":           {"a", stock, About{}, nil, ErrInvalid},
		"large arguments":  {"a", stock, shelf, strings.Repeat("x", MaxSize), ErrTooLarge},
		"a good one":       {"a-1", stock, shelf, map[string]int{"of": 3}, nil},
		"none of the kind": {"a", stock, shelf, nil, nil},
	} {
		if _, err := New(c.id, c.kind, c.about, c.args, noon); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// One account, and one database, cannot take the places of all others.
func TestRoom(t *testing.T) {
	var all []*Record
	add := func(n int, account, database string, state State) {
		for range n {
			all = append(all, begun(t, fmt.Sprintf("op-%d", len(all)), func(r *Record) {
				r.About.Account, r.About.Database, r.State = account, database, state
			}))
		}
	}
	next := func(account, database string) error {
		r := begun(t, "next", func(r *Record) { r.About.Account, r.About.Database = account, database })
		return Room(all, *r)
	}
	add(MaxOf, "a", "busy", Undoing)
	add(1000, "a", "quiet", Done)
	if err := next("a", "busy"); !errors.Is(err, ErrTooMany) {
		t.Errorf("about one database: %v", err)
	}
	if err := next("a", "quiet"); err != nil {
		t.Errorf("ended ones take places: %v", err)
	}
	for n := range (MaxOfAccount - MaxOf) / MaxOf {
		add(MaxOf, "a", fmt.Sprint(n), Running)
	}
	if err := next("a", "quiet"); !errors.Is(err, ErrTooMany) {
		t.Errorf("of one account: %v", err)
	}
	if err := next("b", "other"); err != nil {
		t.Errorf("another account: %v", err)
	}
	for n := range (MaxActive - MaxOfAccount) / MaxOf {
		add(MaxOf, fmt.Sprint(n), fmt.Sprint(n), Running)
	}
	if err := next("b", "other"); !errors.Is(err, ErrTooMany) {
		t.Errorf("of all: %v", err)
	}
}

// An operation holds up only what its record says, only of its database, and only until it ends.
func TestExcluding(t *testing.T) {
	running := begun(t, "one", nil)
	for _, c := range []struct {
		state    State
		database string
		deed     Deed
		want     bool
	}{
		{Running, "db-1", Restart, true},
		{Undoing, "db-1", Restart, true},
		{Running, "db-1", Failover, false},
		{Running, "db-1", Change, false},
		{Running, "db-2", Restart, false},
		{Done, "db-1", Restart, false},
		{Failed, "db-1", Restart, false},
		{Cancelled, "db-1", Restart, false},
	} {
		running.State = c.state
		if r, got := Excluding([]*Record{running}, c.database, c.deed); got != c.want || got && r.ID != "one" {
			t.Errorf("%s of %s while %s: %v", c.deed, c.database, c.state, got)
		}
	}
}

func TestExpired(t *testing.T) {
	ended := func(id string, ago time.Duration) *Record {
		return begun(t, id, func(r *Record) { r.State, r.Ended = Done, noon.Add(-ago) })
	}
	running := begun(t, "old-and-running", func(r *Record) { r.Began = noon.Add(-100 * 24 * time.Hour) })
	all := []*Record{running, ended("new", time.Hour), ended("old", Keep+time.Second), ended("edge", Keep)}
	if got := Expired(all, noon); !slices.Equal(got, []string{"old"}) {
		t.Errorf("expired %q", got)
	}
	all = []*Record{ended("oldest", 2*time.Hour)}
	for n := range Most {
		all = append(all, ended(fmt.Sprintf("n-%d", n), time.Hour))
	}
	if got := Expired(all, noon); !slices.Equal(got, []string{"oldest"}) {
		t.Errorf("of %d: expired %q", len(all), got)
	}
}

func TestProgressNeverGoesBackward(t *testing.T) {
	for _, c := range []struct{ was, next, want Progress }{
		{Progress{}, Progress{3, 10, "files"}, Progress{3, 10, "files"}},
		{Progress{3, 10, "files"}, Progress{1, 10, "files"}, Progress{3, 10, "files"}},
		{Progress{3, 10, "files"}, Progress{4, 12, "files"}, Progress{4, 12, "files"}},
		{Progress{8, 10, "files"}, Progress{8, 5, "files"}, Progress{8, 10, "files"}},
		{Progress{8, 10, "files"}, Progress{30, 10, "files"}, Progress{10, 10, "files"}},
		{Progress{8, 10, "files"}, Progress{0, 0, "bytes"}, Progress{0, 0, "bytes"}},
		{Progress{8, 0, "files"}, Progress{-3, -4, "files"}, Progress{8, 0, "files"}},
		{Progress{8, 10, "files"}, Progress{-3, -4, "bytes"}, Progress{0, 0, "bytes"}},
	} {
		if got := c.was.Advance(c.next); got != c.want {
			t.Errorf("%+v after %+v: %+v, want %+v", c.next, c.was, got, c.want)
		}
	}
}

// A reason may be what a tenant's database says: it does not command the operator's terminal.
func TestReason(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                        "plain",
		"\x1b[2Jgone\a":                "[2Jgone",
		"two\nlines\r\tand":            "two lines  and",
		"bad \xff\xfe":                 "bad ",
		"turned \u202e round":          "turned  round",
		"größer":                       "größer",
		strings.Repeat("ß", maxReason): strings.Repeat("ß", maxReason/2),
	} {
		if got := Reason(text); got != want || !utf8.ValidString(got) {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestForget(t *testing.T) {
	r := begun(t, "a", func(r *Record) { r.State, r.Entered, r.Step, r.Next = Undoing, []string{"copy"}, "copy", noon })
	got := r.Forget(noon)
	if got.State != Failed || !got.Ended.Equal(noon) || !slices.Equal(got.Left, []string{"copy"}) || got.Step != "" || got.Reason == "" {
		t.Errorf("%+v", got)
	}
}
