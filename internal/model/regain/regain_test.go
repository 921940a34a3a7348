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
	c := Copy{Host: host, Assignment: member.Assignment{Scope: "db-1", Name: name}, System: "7", Timeline: timeline, LSN: at}
	for _, f := range change {
		f(&c)
	}
	return c
}

func primary(c *Copy) { c.Primary = true }
func streams(c *Copy) { c.Running, c.Streaming = true, true }
func follows(c *Copy) { c.Assignment.Cluster.Upstream = &patroni.Upstream{} }
func running(c *Copy) { c.Running, c.Primary = true, true }

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
