package server_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"howdah/internal/admin"
	"howdah/internal/admin/client/testserver"
	"howdah/internal/model/event"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/testkit"
)

// A control plane that is put together carries operations out. An operation of a kind that it does
// not know is late, is told of, and can be abandoned.
func TestAControlPlaneCarriesOperationsOut(t *testing.T) {
	s := testserver.Start(t, testserver.Options{NoHosts: true})
	about := operation.About{Scope: spec.Scope{Account: s.Home.Account, Region: s.Home.Region}, Type: event.Instance, Name: "orders", Database: "db-1"}
	r, err := operation.New("teleport-1", operation.Kind{Name: "teleport", Within: time.Millisecond}, about, nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Store.Commit(t.Context(), state.Put(state.Operation(r.ID), r)); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 20*time.Second, func() error {
		now, err := state.Get[operation.Record](t.Context(), s.Store, state.Operation(r.ID))
		if err == nil && !now.Value.Told {
			return fmt.Errorf("nobody was told: %+v", now.Value)
		}
		return err
	})
	for _, p := range status(t, s).Problems {
		if p.Code == "operation-late" && p.Command != "howdah operations show teleport-1" {
			t.Errorf("%+v", p)
		}
	}
	if all := codes(status(t, s).Problems); len(all) != 3 || all[2] != "operation-late" {
		t.Errorf("problems %q", all)
	}
	out := testserver.Must[admin.Operation](t, s, admin.VerbOperationCancel, admin.OperationCancelRequest{ID: r.ID, Abandon: true})
	if !out.Cancelling || !out.Late {
		t.Errorf("%+v", out)
	}
	testkit.Eventually(t, 20*time.Second, func() error {
		all := testserver.Must[admin.OperationsAnswer](t, s, admin.VerbOperations, admin.OperationsRequest{ID: r.ID}).Operations
		if len(all) != 1 || all[0].State != "cancelled" || all[0].Cancelling {
			return fmt.Errorf("%+v", all)
		}
		return nil
	})
	_, err = testserver.Call[admin.Operation](t, s, admin.VerbOperationCancel, admin.OperationCancelRequest{ID: r.ID})
	wantCode(t, err, admin.CodeOperationEnded, http.StatusConflict)
}
