package regain

import (
	"errors"
	"slices"
	"testing"

	"howdah/internal/model/lsn"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
)

func copyOf(host, name string, timeline int, at lsn.LSN, change ...func(*Copy)) Copy {
	c := Copy{Ground: Sealed, Host: host, Assignment: member.Assignment{Scope: "db-1", Name: name}, System: "7", Timeline: timeline, LSN: at}
	for _, f := range change {
		f(&c)
	}
	return c
}

func primary(c *Copy) { c.Primary = true }
func streams(c *Copy) { c.Running, c.Streaming = true, true }
func follows(c *Copy) { c.Assignment.Cluster.Upstream = &patroni.Upstream{} }
func running(c *Copy) { c.Running, c.Primary = true, true }
func retired(c *Copy) { c.Ground = Retired }
func claimed(c *Copy) { c.Ground = Unfounded }

// The newest copy leads on, whatever the restored state says of it.
func TestElect(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		hold   Hold
		copies []Copy
		want   string
		err    error
	}{
		{name: "the primary serves on", copies: []Copy{copyOf("a", "m1", 1, 50, running), copyOf("b", "m2", 1, 60)}, want: "a/m1"},
		{name: "a failover since", copies: []Copy{copyOf("a", "m1", 1, 90, primary), copyOf("b", "m2", 2, 60, running)}, want: "b/m2"},
		{name: "a primary that was frozen goes on", copies: []Copy{copyOf("a", "m1", 1, 90, running), copyOf("b", "m2", 2, 60, primary)}, want: "b/m2"},
		{name: "nobody serves, one was primary", copies: []Copy{copyOf("a", "m1", 2, 50), copyOf("b", "m2", 2, 50, primary)}, want: "b/m2"},
		{name: "only standbys", copies: []Copy{copyOf("a", "m1", 2, 50), copyOf("b", "m2", 2, 51)}, want: "b/m2"},
		{name: "standbys that are level", copies: []Copy{copyOf("b", "m2", 2, 50), copyOf("a", "m1", 2, 50)}, want: "a/m1"},
		{name: "one made since", copies: []Copy{copyOf("a", "m1", 1, 50), copyOf("c", "m7", 3, 51, running)}, want: "c/m7"},
		{name: "two primaries on one timeline", copies: []Copy{copyOf("a", "m1", 2, 50, running), copyOf("b", "m2", 2, 51, primary)}, err: ErrUndecided},
		{name: "one is starting", copies: []Copy{copyOf("a", "m1", 1, 50, running), copyOf("b", "m2", 1, 0, func(c *Copy) { c.Unsettled = "PostgreSQL is starting" })}, err: ErrUndecided},
		{name: "none at all", err: ErrNoData},
		{name: "an empty directory", copies: []Copy{copyOf("a", "m1", 0, 0, func(c *Copy) { c.System = "" })}, err: ErrNoData},
		{name: "of another database", copies: []Copy{copyOf("a", "m1", 1, 1, func(c *Copy) { c.Assignment.Scope = "db-2" })}, err: ErrNoData},
		{name: "data that are not its own", hold: Hold{System: "7"}, copies: []Copy{copyOf("a", "m1", 9, 90, func(c *Copy) { c.System = "8" }), copyOf("b", "m2", 1, 10)}, err: ErrUndecided},
		{name: "only data that are not its own", hold: Hold{System: "7"}, copies: []Copy{copyOf("a", "m1", 9, 90, func(c *Copy) { c.System = "8" })}, err: ErrUndecided},
		{name: "an operator knows which are its own", hold: Hold{System: "7", Chosen: "a/m1"}, copies: []Copy{copyOf("a", "m1", 9, 90, func(c *Copy) { c.System = "8" })}, want: "a/m1"},
		{name: "one whose control file cannot be read", copies: []Copy{copyOf("a", "m1", 0, 0, func(c *Copy) { c.System, c.Unsettled = "", "input/output error" }), copyOf("b", "m2", 1, 10)}, err: ErrUndecided},
		{name: "its primary is on a host that nobody knows", copies: []Copy{copyOf("a", "m1", 2, 50, streams), copyOf("b", "m2", 2, 60)}, err: ErrUndecided},
		{name: "… and the one before is known", copies: []Copy{copyOf("a", "m1", 2, 50, streams), copyOf("b", "m2", 1, 60, running)}, err: ErrUndecided},
		{name: "standbys that stream from their primary", copies: []Copy{copyOf("a", "m1", 2, 50, streams), copyOf("b", "m2", 2, 40, running)}, want: "b/m2"},
		{name: "a read replica streams from another database", copies: []Copy{copyOf("a", "m1", 2, 50, streams, follows)}, want: "a/m1"},
		{name: "nobody knows which are its own", copies: []Copy{copyOf("a", "m1", 9, 90, func(c *Copy) { c.System = "8" }), copyOf("b", "m2", 1, 10)}, err: ErrUndecided},
		{name: "a host that only says itself that it has one", copies: []Copy{copyOf("a", "m1", 1, 50, running), copyOf("x", "m2", 99, 90, running, claimed)}, err: ErrUndecided},
		{name: "… also where it is behind", copies: []Copy{copyOf("a", "m1", 5, 50, running), copyOf("x", "m2", 1, 1, claimed)}, err: ErrUndecided},
		{name: "… and an operator chose another one", hold: Hold{Chosen: "a/m1"}, copies: []Copy{copyOf("a", "m1", 1, 50), copyOf("x", "m2", 9, 50, running, claimed)}, want: "a/m1"},
		{name: "… and it is the one that an operator chose", hold: Hold{Chosen: "x/m2"}, copies: []Copy{copyOf("a", "m1", 1, 50), copyOf("x", "m2", 9, 50, running, claimed)}, want: "x/m2"},
		{name: "a member that was given up before", copies: []Copy{copyOf("a", "m1", 99, 90, running, retired), copyOf("b", "m2", 2, 60, running)}, want: "b/m2"},
		{name: "… whose host says nothing of use", copies: []Copy{copyOf("a", "m1", 0, 0, retired, func(c *Copy) { c.System, c.Unsettled = "", "it is starting" }), copyOf("b", "m2", 2, 60, running)}, want: "b/m2"},
		{name: "… and there is no other", copies: []Copy{copyOf("a", "m1", 99, 90, running, retired)}, err: ErrUndecided},
		{name: "the restored state knows of it", copies: []Copy{copyOf("a", "m1", 1, 50, running, func(c *Copy) { c.Ground = Assigned })}, want: "a/m1"},
		{name: "an operator's word", hold: Hold{Chosen: "a/m1"}, copies: []Copy{copyOf("a", "m1", 1, 50), copyOf("b", "m2", 2, 50, running)}, want: "a/m1"},
		{name: "an operator's word on what is not there", hold: Hold{Chosen: "a/m3"}, copies: []Copy{copyOf("a", "m1", 1, 50)}, err: ErrUndecided},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.hold.Database = "db-1"
			got, err := Elect(c.hold, c.copies)
			switch {
			case !errors.Is(err, c.err):
				t.Errorf("%v, want %v", err, c.err)
			case err == nil && got.Name() != c.want:
				t.Errorf("%s leads, want %s", got.Name(), c.want)
			}
			slices.Reverse(c.copies)
			if again, err := Elect(c.hold, c.copies); again.Name() != got.Name() || !errors.Is(err, c.err) {
				t.Errorf("in another order %s, %v", again.Name(), err)
			}
		})
	}
}

// What a host says that nobody else says counts for nothing, however it is put.
func TestGroundOf(t *testing.T) {
	t.Parallel()
	placed := map[string]string{"m2": "b", "m4": "d"}
	for _, c := range []struct {
		name, host, member string
		sealed             bool
		given              int
		want               Ground
	}{
		{"the restored state has it there", "b", "m2", false, 5, Assigned},
		{"… and the home sealed it", "b", "m2", true, 5, Assigned},
		{"the restored state has it elsewhere", "x", "m2", false, 5, Unfounded},
		{"… whatever was sealed", "x", "m2", true, 5, Unfounded},
		{"it was made since", "c", "m6", true, 5, Sealed},
		{"… says its host", "c", "m6", false, 5, Unfounded},
		{"it was given up before", "a", "m1", true, 5, Retired},
		{"… and its agent is older", "a", "m1", false, 5, Retired},
		{"the last that was given up", "e", "m5", true, 5, Retired},
		{"restored by an older release", "a", "m1", true, 0, Sealed},
		{"… and told by one", "a", "m1", false, 0, Unfounded},
		{"no name of a member", "a", "m01", false, 5, Unfounded},
		{"none at all", "a", "", false, 5, Unfounded},
	} {
		got := GroundOf(Hold{Database: "db-1", Given: c.given}, copyOf(c.host, c.member, 9, 9), c.sealed, placed)
		if got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestMissing(t *testing.T) {
	t.Parallel()
	said := map[string]Holding{"a": {Home: "2"}, "b": {Home: "1", Hosts: []string{"x"}}}
	if got := Missing(Home{ID: "2"}, []string{"c", "b", "a"}, said, nil); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("%q", got)
	}
	// Hosts know others that joined after the backup.
	said = map[string]Holding{"a": {Home: "2", Hosts: []string{"a", "b", "d", "e"}}, "d": {Home: "2", Hosts: []string{"f", "g"}}}
	if got := Missing(Home{ID: "2"}, []string{"a", "b"}, said, []string{"b", "g"}); !slices.Equal(got, []string{"e", "f"}) {
		t.Errorf("%q", got)
	}
}
