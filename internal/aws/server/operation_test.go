package server

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"howdah/internal/admin"
	"howdah/internal/aws/wire"
	"howdah/internal/aws/wire/sigv4"
	"howdah/internal/model/event"
	"howdah/internal/model/operation"
	"howdah/internal/state"
)

var copying = operation.Kind{Name: "copy", Within: time.Hour, Excludes: []operation.Deed{operation.Restart}}

// begin writes an operation about a database of a user.
func (u *user) begin(id, database string, change func(*operation.Record)) {
	u.Helper()
	about := operation.About{Scope: u.scope(), Type: event.Instance, Name: database, Database: "db-" + strings.ToUpper(database)}
	r, err := operation.New(id, copying, about, nil, u.now())
	if err != nil {
		u.Fatal(err)
	}
	if change != nil {
		change(&r)
	}
	revision, err := u.server.Store.Commit(u.Context(), state.Put(state.Operation(id), r))
	if err == nil {
		err = u.server.Cache.WaitRevision(u.Context(), revision)
	}
	if err != nil {
		u.Fatal(err)
	}
}

func (u *user) operationIDs(in admin.OperationsRequest) string {
	u.Helper()
	out, err := ask[admin.OperationsAnswer](u.T, u.world, u.operator(), admin.VerbOperations, in)
	if err != nil {
		u.Fatal(err)
	}
	var ids []string
	for _, o := range out.Operations {
		ids = append(ids, o.ID)
	}
	return strings.Join(ids, " ")
}

func TestOperations(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	ended := func(ago time.Duration) func(*operation.Record) {
		return func(r *operation.Record) { r.State, r.Ended = operation.Done, u.now().Add(-ago) }
	}
	name := "o" + u.account[6:]
	u.begin(name+"-old", "orders", ended(time.Hour))
	u.begin(name+"-new", "orders", ended(time.Minute))
	u.begin(name+"-now", "shop", func(r *operation.Record) { r.Began = u.now().Add(-time.Hour) })
	for _, c := range []struct {
		in   admin.OperationsRequest
		want string
	}{
		{admin.OperationsRequest{Name: "Orders"}, name + "-new " + name + "-old"},
		{admin.OperationsRequest{Name: "orders", Limit: 1}, name + "-new"},
		{admin.OperationsRequest{Name: "db-shop", Limit: 1}, name + "-now"},
		{admin.OperationsRequest{ID: name + "-old", Limit: 1}, name + "-old"},
	} {
		if got := u.operationIDs(c.in); got != c.want {
			t.Errorf("%+v: %q, want %q", c.in, got, c.want)
		}
	}
	_, err := ask[admin.OperationsAnswer](t, w, u.operator(), admin.VerbOperations, admin.OperationsRequest{Limit: -1})
	adminCode(t, err, admin.CodeInvalidRequest, http.StatusBadRequest)
	for _, id := range []string{"none", "../spec", strings.Repeat("x", 9999)} {
		_, err = ask[admin.OperationsAnswer](t, w, u.operator(), admin.VerbOperations, admin.OperationsRequest{ID: id})
		adminCode(t, err, admin.CodeOperationNotFound, http.StatusNotFound)
		_, err = ask[admin.Operation](t, w, u.operator(), admin.VerbOperationCancel, admin.OperationCancelRequest{ID: id})
		adminCode(t, err, admin.CodeOperationNotFound, http.StatusNotFound)
	}
	_, err = ask[admin.Operation](t, w, u.operator(), admin.VerbOperationCancel, admin.OperationCancelRequest{ID: name + "-old"})
	adminCode(t, err, admin.CodeOperationEnded, http.StatusConflict)
}

func adminCode(t *testing.T, err error, code string, status int) {
	t.Helper()
	known, ok := errors.AsType[*admin.Error](err)
	if !ok || known.Code != code || known.Status != status || len(known.Message) > 200 {
		t.Errorf("%v, want %s", err, code)
	}
}

// Asking twice is asking once, and what was abandoned is not taken back by a mere cancel.
func TestCancelAnOperation(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	id := "c" + u.account[6:]
	u.begin(id, "orders", nil)
	for _, c := range []struct{ asked, want bool }{{false, false}, {false, false}, {true, true}, {false, true}} {
		out, err := ask[admin.Operation](t, w, u.operator(), admin.VerbOperationCancel, admin.OperationCancelRequest{ID: id, Abandon: c.asked})
		if err != nil || !out.Cancelling {
			t.Fatalf("%+v, %v", out, err)
		}
		wish, err := state.Get[operation.Wish](t.Context(), w.server.Store, state.OperationCancel(id))
		if err != nil || wish.Value.Abandon != c.want || wish.Value.By == "" {
			t.Errorf("%+v, %v", wish, err)
		}
	}
}

// A policy that denies on a database denies cancelling what is under way there.
func TestWhoMayCancelAnOperation(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	id := "p" + u.account[6:]
	u.begin(id, "orders", nil)
	for _, c := range []struct {
		statements string
		denied     bool
	}{
		{`[{"Effect":"Allow","Action":"howdah:*","Resource":"*"}]`, false},
		{`[{"Effect":"Allow","Action":"howdah:*","Resource":"*"},{"Effect":"Deny","Action":"*","Resource":"arn:aws:rds:*:*:db:orders"}]`, true},
		{`[{"Effect":"Allow","Action":"howdah:*","Resource":"*"},{"Effect":"Deny","Action":"*","Resource":"arn:aws:rds:*:*:db:shop"}]`, false},
	} {
		k := u.limited(admin.KeyCreateRequest{Name: "ci", Policy: wire.Some(`{"Version":"2012-10-17","Statement":` + c.statements + `}`)})
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/", nil)
		sigv4.Sign(r, nil, sigv4.Credentials{AccessKeyID: k.key, SecretAccessKey: k.secret}, k.region, admin.Service, k.now())
		record := w.server.front.Begin(r, "an-id")
		identity, who, err := w.server.front.Authenticate(r, nil, record)
		if err != nil {
			t.Fatal(err)
		}
		asked := w.server.front.Call(r, identity, who, "OperationCancel", "an-id", record)
		_, err = ask[admin.Operation](t, w, asked, admin.VerbOperationCancel, admin.OperationCancelRequest{ID: id})
		if refused := err != nil && strings.Contains(err.Error(), "explicit deny"); refused != c.denied || err != nil && !refused {
			t.Errorf("%s: %v", c.statements, err)
		}
	}
}

// An operation that should have ended is a problem, of its database alone.
func TestALateOperation(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	id := "l" + u.account[6:]
	u.begin(id, "orders", func(r *operation.Record) {
		r.Deadline, r.Step, r.StepBegan, r.Trouble = u.now().Add(-time.Minute), "fill", u.now(), "no room"
	})
	u.begin(id+"-done", "orders", func(r *operation.Record) { r.Deadline, r.State = u.now().Add(-time.Minute), operation.Done })
	found := w.server.lateOperations(u.now(), "db-ORDERS")
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
	if other := w.server.lateOperations(u.now(), "db-OTHER"); len(other) != 0 {
		t.Errorf("%+v", other)
	}
}

// What an operation under way excludes is refused, and nothing else. One that has ended excludes
// nothing.
func TestWhatAnOperationExcludes(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	for _, call := range []string{newDB, newCluster, newMember, second} {
		u.do(call)
		u.settle()
	}
	l := u.server.look(u.account)
	db, err := l.FindInstance(u.scope(), "db")
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := l.FindCluster(u.scope(), "aura")
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]map[operation.Deed]string{
		db.Value.ResourceID: {
			operation.Change: modifyDB + "&BackupRetentionPeriod=3", operation.Restart: rebootDB, operation.Delete: dropDB,
		},
		cluster.Value.ResourceID: {
			operation.Change: modifyAura + "&BackupRetentionPeriod=3", operation.Restart: stopAura, operation.Failover: failover,
			operation.Delete: with(dropDB, "DBInstanceIdentifier=aura-1"),
		},
	}
	for database, deeds := range calls {
		for deed, call := range deeds {
			id := strings.ToLower("x" + u.account[6:] + "-" + string(deed) + "-" + database)
			excludes := func(o operation.State) func(*operation.Record) {
				return func(r *operation.Record) {
					r.About.Database, r.Excludes, r.State = database, []operation.Deed{deed}, o
				}
			}
			u.begin(id, "orders", excludes(operation.Running))
			u.try(call).has("Error/Message=The operation " + id + " (copy) of orders is under way, and excludes a " + string(deed) + " until it has ended.")
			for other, call := range deeds {
				if other == operation.Change && other != deed {
					u.do(call)
					u.settle()
				}
			}
			u.begin(id, "orders", excludes(operation.Done))
		}
	}
	u.do(stopAura)
	u.do(dropDB)
}
