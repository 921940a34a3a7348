package server

import (
	"net/http"
	"net/http/httptest"
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

// What an operation under way excludes is refused, and nothing else. One that has ended excludes
// nothing.
func TestWhatAnOperationExcludes(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	for _, call := range []string{newDB, newCluster, newMember, second} {
		u.do(call)
		u.settle()
	}
	l := u.server.rds.Databases.Of(u.account)
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

// What waits for the window waits on while an operation excludes changes.
func TestWhatWaitsForTheWindowWaitsForAnOperation(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	w.at(at(t, "2026-11-22T12:00:00Z"))
	u.do(with(newDB, "PreferredMaintenanceWindow=mon:05:00-mon:06:00", "PreferredBackupWindow=01:00-02:00"))
	u.settle()
	u.do(modifyDB + "&DBInstanceClass=db.t3.small&ApplyImmediately=false")
	before, id := u.instanceRecord("db"), "w"+u.account[6:]
	excludes := func(o operation.State) func(*operation.Record) {
		return func(r *operation.Record) {
			r.About.Database, r.Excludes, r.State = before.ResourceID, []operation.Deed{operation.Change}, o
		}
	}
	u.begin(id, "db", excludes(operation.Running))
	w.at(at(t, "2026-11-23T05:30:00Z"))
	w.keep()
	if now := u.instanceRecord("db"); now.Class != before.Class || now.Pending == nil {
		t.Errorf("it was changed beside the operation: %+v", now)
	}
	u.begin(id, "db", excludes(operation.Done))
	w.keep()
	if now := u.instanceRecord("db"); now.Class != "db.t3.small" || now.Pending != nil {
		t.Errorf("it was not changed after the operation: %+v", now)
	}
}
