package server

import (
	"encoding/json"
	"slices"
	"testing"

	"howdah/internal/admin"
	"howdah/internal/admin/verb"
	"howdah/internal/aws/front"
)

// verb is one of the admin API, on the state of this world.
func (w *world) verb(name string) verb.Verb {
	w.Helper()
	known, ok := w.admin.Verb(name)
	if !ok {
		w.Fatalf("there is no verb %s", name)
	}
	return known
}

// ask does a verb of the admin API, whoever may.
func ask[Out any](t *testing.T, w *world, c front.Call, name string, in any) (Out, error) {
	t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	out, err := w.verb(name).Do(t.Context(), c, body)
	if err != nil {
		var none Out
		return none, err
	}
	return out.(Out), nil
}

// problems are those of a database of the user, as status tells them.
func (u *user) problems(name string) []admin.Problem {
	u.Helper()
	c := u.operator()
	c.Scope = u.scope()
	out, err := ask[admin.DatabaseAnswer](u.T, u.world, c, admin.VerbDatabase, admin.DatabaseRequest{Name: name})
	if err != nil {
		u.Fatal(err)
	}
	return out.Problems
}

// strangers are the problems of data of which the home knows no database.
func (w *world) strangers() []admin.Problem {
	w.Helper()
	out, err := ask[admin.Status](w.T, w, front.Call{}, admin.VerbStatus, admin.Nothing{})
	if err != nil {
		w.Fatal(err)
	}
	return slices.DeleteFunc(out.Problems, func(p admin.Problem) bool { return p.Code != admin.ProblemStranger })
}
