package hostapi

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"howdah/internal/model/member"
	"howdah/internal/state"
)

// A host gets what a role opens only for its own members that run, and only if their database has a
// role for the feature.
func TestBucketsAreForDatabasesWithARole(t *testing.T) {
	w := newWorld(t)
	assign := func(host, id string, want member.Want) state.Op {
		return state.Put(state.Assign(host, id), member.Assignment{ID: id, Scope: id[:2], Want: want})
	}
	if _, err := w.Store.Commit(t.Context(),
		assign("db1", "d1.m1", member.Running), assign("db1", "d2.m1", member.Stopped), assign("db1", "d3.m1", member.Absent),
		assign("db1", "d4.m1", member.Running), assign("db2", "d5.m1", member.Running), assign("db1", "d6.m1", member.Running),
	); err != nil {
		t.Fatal(err)
	}
	var asked []string
	w.server.Bucket = func(_ context.Context, database, feature string) (member.Bucket, error) {
		asked = append(asked, database+" "+feature)
		switch database {
		case "d4":
			return member.Bucket{}, fmt.Errorf("%w: none", member.ErrNoRole)
		case "d6":
			return member.Bucket{}, errors.New("no etcd")
		}
		return member.Bucket{Role: "r", Secret: "s3cret of " + database}, nil
	}
	for _, c := range []struct{ name, caller, member, feature, want string }{
		{"it runs", "agent:db1", "d1.m1", member.Export, "s3cret of d1"},
		{"for the other feature", "agent:db1", "d1.m1", member.Import, "s3cret of d1"},
		{"it is stopped", "agent:db1", "d2.m1", member.Export, refused},
		{"it is to be deleted", "agent:db1", "d3.m1", member.Export, refused},
		{"without a role", "agent:db1", "d4.m1", member.Export, refused},
		{"of another host", "agent:db1", "d5.m1", member.Export, refused},
		{"of the caller", "agent:db2", "d5.m1", member.Export, "s3cret of d5"},
		{"of nobody", "agent:db1", "d7.m1", member.Export, refused},
		{"a path", "agent:db1", "../db2/d5.m1", member.Export, refused},
		{"no member", "agent:db1", "", member.Export, refused},
		{"another feature", "agent:db1", "d1.m1", "Lambda", refused},
		{"an edge", "edge:db1", "d1.m1", member.Export, refused},
		{"the state is away", "agent:db1", "d6.m1", member.Export, "an error"},
	} {
		got, err := w.client(t, w.Issue(t, c.caller)).Bucket(t.Context(), c.member, c.feature)
		switch {
		case c.want == refused && !errors.Is(err, ErrRefused),
			c.want == "an error" && (err == nil || errors.Is(err, ErrRefused)),
			c.want != refused && c.want != "an error" && (err != nil || got.Secret != c.want):
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
	if len(asked) != 5 {
		t.Errorf("asked for %v", asked)
	}
	w.server.Bucket = nil
	if _, err := w.client(t, w.Issue(t, "agent:db1")).Bucket(t.Context(), "d1.m1", member.Export); !errors.Is(err, ErrRefused) {
		t.Errorf("a control plane without roles: %v", err)
	}
}
