package operation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"howdah/internal/admin"
	"howdah/internal/aws/front"
	"howdah/internal/model/event"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/testkit/etcdtest"
)

// world has the verbs on operations, on a state of its own.
type world struct {
	*testing.T
	*service
	who front.Call
}

func newWorld(t *testing.T) world {
	t.Helper()
	store := etcdtest.Store(t)
	cache := etcdtest.Cache(t, store, nil)
	client := &state.Client{Store: store, Cache: cache, Newest: func(ctx context.Context) (int64, error) {
		answer, err := store.Client.Get(ctx, "/")
		if err != nil {
			return 0, err
		}
		return answer.Header.Revision, nil
	}}
	who := front.Call{Now: time.Now(), Who: front.Principal{Key: "KEY1"}}
	return world{t, &service{client, time.Now, slog.New(slog.DiscardHandler)}, who}
}

var copying = operation.Kind{Name: "copy", Within: time.Hour, Excludes: []operation.Deed{operation.Restart}}

// begin writes an operation about a database.
func (w world) begin(id, database string, change func(*operation.Record)) {
	w.Helper()
	scope := spec.Scope{Account: "000000000001", Region: "us-east-1"}
	about := operation.About{Scope: scope, Type: event.Instance, Name: database, Database: "db-" + strings.ToUpper(database)}
	r, err := operation.New(id, copying, about, nil, w.now())
	if err != nil {
		w.Fatal(err)
	}
	if change != nil {
		change(&r)
	}
	etcdtest.Put(w, w.Store, w.Cache, state.Put(state.Operation(id), r))
}

func (w world) ids(in admin.OperationsRequest) string {
	w.Helper()
	out, err := w.list(w.Context(), w.who, in)
	if err != nil {
		w.Fatal(err)
	}
	var ids []string
	for _, o := range out.Operations {
		ids = append(ids, o.ID)
	}
	return strings.Join(ids, " ")
}

func TestOperations(t *testing.T) {
	w := newWorld(t)
	ended := func(ago time.Duration) func(*operation.Record) {
		return func(r *operation.Record) { r.State, r.Ended = operation.Done, w.now().Add(-ago) }
	}
	const name = "o1"
	w.begin(name+"-old", "orders", ended(time.Hour))
	w.begin(name+"-new", "orders", ended(time.Minute))
	w.begin(name+"-now", "shop", func(r *operation.Record) { r.Began = w.now().Add(-time.Hour) })
	for _, c := range []struct {
		in   admin.OperationsRequest
		want string
	}{
		{admin.OperationsRequest{Name: "Orders"}, name + "-new " + name + "-old"},
		{admin.OperationsRequest{Name: "orders", Limit: 1}, name + "-new"},
		{admin.OperationsRequest{Name: "db-shop", Limit: 1}, name + "-now"},
		{admin.OperationsRequest{ID: name + "-old", Limit: 1}, name + "-old"},
	} {
		if got := w.ids(c.in); got != c.want {
			t.Errorf("%+v: %q, want %q", c.in, got, c.want)
		}
	}
	_, err := w.list(t.Context(), w.who, admin.OperationsRequest{Limit: -1})
	wantCode(t, err, admin.CodeInvalidRequest, http.StatusBadRequest)
	for _, id := range []string{"none", "../spec", strings.Repeat("x", 9999)} {
		_, err = w.list(t.Context(), w.who, admin.OperationsRequest{ID: id})
		wantCode(t, err, admin.CodeOperationNotFound, http.StatusNotFound)
		_, err = w.cancel(t.Context(), w.who, admin.OperationCancelRequest{ID: id})
		wantCode(t, err, admin.CodeOperationNotFound, http.StatusNotFound)
	}
	_, err = w.cancel(t.Context(), w.who, admin.OperationCancelRequest{ID: name + "-old"})
	wantCode(t, err, admin.CodeOperationEnded, http.StatusConflict)
}

func wantCode(t *testing.T, err error, code string, status int) {
	t.Helper()
	known, ok := errors.AsType[*admin.Error](err)
	if !ok || known.Code != code || known.Status != status || len(known.Message) > 200 {
		t.Errorf("%v, want %s", err, code)
	}
}

// To ask twice is to ask once. A mere cancel does not take back that an operation is to be
// abandoned.
func TestCancelAnOperation(t *testing.T) {
	w := newWorld(t)
	const id = "c1"
	w.begin(id, "orders", nil)
	for _, c := range []struct{ asked, want bool }{{false, false}, {false, false}, {true, true}, {false, true}} {
		out, err := w.cancel(t.Context(), w.who, admin.OperationCancelRequest{ID: id, Abandon: c.asked})
		if err != nil || !out.Cancelling {
			t.Fatalf("%+v, %v", out, err)
		}
		wish, err := state.Get[operation.Wish](t.Context(), w.Store, state.OperationCancel(id))
		if err != nil || wish.Value.Abandon != c.want || wish.Value.By == "" {
			t.Errorf("%+v, %v", wish, err)
		}
	}
}

// An operation that should have ended is a problem, of its database alone.
func TestALateOperation(t *testing.T) {
	w := newWorld(t)
	const id = "l1"
	w.begin(id, "orders", func(r *operation.Record) {
		r.Deadline, r.Step, r.StepBegan, r.Trouble = w.now().Add(-time.Minute), "fill", w.now(), "no room"
	})
	w.begin(id+"-done", "orders", func(r *operation.Record) { r.Deadline, r.State = w.now().Add(-time.Minute), operation.Done })
	found := Late(w.Cache, w.now(), "db-ORDERS")
	found = slices.DeleteFunc(found, func(p admin.Problem) bool { return p.Command != "howdah operations show "+id })
	if len(found) != 1 {
		t.Fatalf("%+v", found)
	}
	p := found[0]
	for _, part := range []string{id + " (copy)", "it is at fill since", "(no room)", "it holds up: restart"} {
		if !strings.Contains(p.Text, part) {
			t.Errorf("%q lacks %q", p.Text, part)
		}
	}
	if p.Code != "operation-late" || p.Subject != "db orders" || p.ResourceID != "db-ORDERS" {
		t.Errorf("%+v", p)
	}
	if other := Late(w.Cache, w.now(), "db-OTHER"); len(other) != 0 {
		t.Errorf("%+v", other)
	}
}

// An operation that is asked for by its id tells what hosts do for it. What a host said of an
// earlier job of the same name is not told.
func TestJobs(t *testing.T) {
	w := newWorld(t)
	w.begin("copy-1", "orders", nil)
	name := func(id string) member.Job { return member.Job{Name: id, Host: "zone-a", Kind: "copy", At: w.now()} }
	etcdtest.Put(t, w.Store, w.Cache, state.Put(state.Job("zone-a", "copy-1/fill"), name("copy-1/fill")), state.Put(state.Job("zone-a", "copy-11/fill"), name("copy-11/fill")))
	asked, err := state.Load[member.Job](w.Cache, state.Job("zone-a", "copy-1/fill"))
	if err != nil {
		t.Fatal(err)
	}
	for revision, want := range map[int64]string{asked.Revision: "running 3/8 files waits", asked.Revision - 1: "asked 0/0  "} {
		etcdtest.Put(t, w.Store, w.Cache, state.Put(state.JobReport("zone-a", "copy-1/fill"), member.JobReport{
			Name: "copy-1/fill", Asked: revision, State: member.JobRuns, Done: 3, Of: 8, Unit: "files", Detail: "waits", At: w.now(),
		}))
		out, err := w.list(t.Context(), w.who, admin.OperationsRequest{ID: "copy-1"})
		if err != nil || len(out.Operations) != 1 || len(out.Operations[0].Jobs) != 1 {
			t.Fatalf("%+v, %v", out, err)
		}
		j := out.Operations[0].Jobs[0]
		if got := fmt.Sprintf("%s %d/%d %s %s", j.State, j.Done, j.Of, j.Unit, j.Detail); got != want || j.Host != "zone-a" || j.Kind != "copy" {
			t.Errorf("%+v", j)
		}
	}
}
