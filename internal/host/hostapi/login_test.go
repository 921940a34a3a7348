package hostapi

import (
	"context"
	"errors"
	"testing"

	"howdah/internal/model/member"
	"howdah/internal/state"
)

// onlyJane lets one user in, with one token.
func onlyJane(_ context.Context, database, user, token string) error {
	switch {
	case database != "db-1":
		return errors.New("the state does not answer")
	case user == "jane" && token == "good":
		return nil
	case user == "nobody":
		return RefuseToken("")
	}
	return RefuseToken("it is not hers")
}

func TestAgentsAskAboutTheirOwnMembers(t *testing.T) {
	w := newWorld(t)
	for _, a := range []member.Assignment{{ID: "db-1.m1", Scope: "db-1"}, {ID: "db-2.m1", Scope: "db-2"}} {
		if _, err := w.Store.Commit(t.Context(), state.Put(state.Assign("db1", a.ID), a)); err != nil {
			t.Fatal(err)
		}
	}
	agent := w.client(t, w.Issue(t, "agent:db1"))
	for name, c := range map[string]struct {
		client *Client
		in     LoginRequest
		want   LoginAnswer
		err    bool
	}{
		"a good token":             {agent, LoginRequest{"db-1.m1", "jane", "good"}, LoginAnswer{Allowed: true}, false},
		"a bad token":              {agent, LoginRequest{"db-1.m1", "jane", "bad"}, LoginAnswer{Why: "it is not hers"}, false},
		"no reason":                {agent, LoginRequest{"db-1.m1", "nobody", ""}, LoginAnswer{}, false},
		"while nobody can tell":    {agent, LoginRequest{"db-2.m1", "jane", "good"}, LoginAnswer{}, true},
		"a member that it has not": {agent, LoginRequest{"db-9.m1", "jane", "good"}, LoginAnswer{}, true},
		"another host":             {w.client(t, w.Issue(t, "agent:db2")), LoginRequest{"db-1.m1", "jane", "good"}, LoginAnswer{}, true},
		"an edge":                  {w.client(t, w.Issue(t, "edge:db1")), LoginRequest{"db-1.m1", "jane", "good"}, LoginAnswer{}, true},
	} {
		if got, err := c.client.Login(t.Context(), c.in); got != c.want || (err != nil) != c.err {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
