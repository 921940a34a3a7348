package server_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"howdah/internal/admin"
	"howdah/internal/admin/client/testserver"
	"howdah/internal/failover/fence"
	"howdah/internal/model/member"
	"howdah/internal/state"
	"howdah/internal/testkit"
)

func TestDrainDryRunChangesNothing(t *testing.T) {
	s := testserver.Start(t, testserver.Options{})
	create(t, s, "orders", true)
	host := database(t, s, "orders").Members[0].Host
	answer := testserver.Must[admin.DrainAnswer](t, s, admin.VerbDrain, admin.DrainRequest{Host: host, DryRun: true})
	if answer.Draining || len(answer.Moves) != 1 {
		t.Fatalf("answer %+v", answer)
	}
	move := answer.Moves[0]
	if move.Database != "orders" || move.Member != "m1" || move.Role != admin.RolePrimary || move.Problem != "" || move.To == "" || move.To == host {
		t.Errorf("move %+v", move)
	}
	for _, m := range database(t, s, "orders").Members {
		if m.Host == move.To {
			t.Errorf("it would move to %s, where %s is", move.To, m.Name)
		}
	}
	if status(t, s).Hosts[0].Draining {
		t.Error("a dry run drains")
	}
}

func TestDrainEmptiesAHost(t *testing.T) {
	s := testserver.Start(t, testserver.Options{})
	create(t, s, "orders", true)
	host := database(t, s, "orders").Members[0].Host
	answer := testserver.Must[admin.DrainAnswer](t, s, admin.VerbDrain, admin.DrainRequest{Host: host})
	if !answer.Draining || len(answer.Moves) != 1 {
		t.Fatalf("answer %+v", answer)
	}
	testkit.Eventually(t, 20*time.Second, func() error {
		left := testserver.Must[admin.DrainAnswer](t, s, admin.VerbDrain, admin.DrainRequest{Host: host, DryRun: true}).Moves
		if len(left) > 0 {
			return fmt.Errorf("left are %+v", left)
		}
		return wantStatus(t, s, "orders", "available")
	})
	d := database(t, s, "orders")
	if len(d.Members) != 2 || d.Members[0].Host == host || d.Members[1].Host == host {
		t.Errorf("members %+v", d.Members)
	}
	testserver.Must[admin.Nothing](t, s, admin.VerbUndrain, admin.HostRequest{Host: host})
	testserver.Must[admin.Nothing](t, s, admin.VerbUndrain, admin.HostRequest{Host: host})
	for _, h := range status(t, s).Hosts {
		if h.Draining {
			t.Errorf("%s is still being drained", h.Name)
		}
	}
}

func TestDrainSaysWhatCannotMove(t *testing.T) {
	s := testserver.Start(t, testserver.Options{})
	create(t, s, "orders", true)
	members := database(t, s, "orders").Members
	for _, h := range status(t, s).Hosts {
		if h.Name != members[0].Host && h.Name != members[1].Host {
			testserver.Must[admin.DrainAnswer](t, s, admin.VerbDrain, admin.DrainRequest{Host: h.Name})
		}
	}
	answer := testserver.Must[admin.DrainAnswer](t, s, admin.VerbDrain, admin.DrainRequest{Host: members[0].Host, DryRun: true})
	if len(answer.Moves) != 1 || answer.Moves[0].To != "" || !strings.Contains(answer.Moves[0].Problem, "is being drained") {
		t.Errorf("moves %+v", answer.Moves)
	}
}

func TestForgetHostRefuses(t *testing.T) {
	s := testserver.Start(t, testserver.Losing)
	create(t, s, "single", false)
	host := database(t, s, "single").Members[0].Host
	_, err := testserver.Call[admin.Nothing](t, s, admin.VerbForgetHost, admin.HostRequest{Host: "zone-x"})
	if e := wantCode(t, err, admin.CodeHostNotFound, http.StatusNotFound); !strings.Contains(e.Hint, "zone-a, zone-b, zone-c") {
		t.Errorf("hint %q", e.Hint)
	}
	_, err = testserver.Call[admin.Nothing](t, s, admin.VerbForgetHost, admin.HostRequest{Host: host})
	wantCode(t, err, admin.CodeHostAlive, http.StatusConflict)
	lose(t, s, host)
	_, err = testserver.Call[admin.Nothing](t, s, admin.VerbForgetHost, admin.HostRequest{Host: host})
	if e := wantCode(t, err, admin.CodeOnlyCopy, http.StatusConflict); !strings.Contains(e.Message, "single") {
		t.Errorf("the refusal does not name the database: %s", e.Message)
	}
}

// lose makes a host fall silent, and waits until everyone knows.
func lose(t *testing.T, s *testserver.Server, host string) {
	t.Helper()
	s.Lose(host)
	testkit.Eventually(t, 15*time.Second, func() error {
		for _, h := range status(t, s).Hosts {
			if h.Name == host && h.State == admin.HostLost {
				return nil
			}
		}
		return errors.New(host + " is not lost")
	})
}

func TestForgottenHostsLeaveNothingButOrders(t *testing.T) {
	s := testserver.Start(t, testserver.Losing)
	create(t, s, "orders", true)
	host := database(t, s, "orders").Members[1].Host
	lose(t, s, host)
	testserver.Must[admin.Nothing](t, s, admin.VerbForgetHost, admin.HostRequest{Host: host})
	for _, h := range status(t, s).Hosts {
		if h.Name == host {
			t.Errorf("%s is still listed", host)
		}
	}
	testkit.Eventually(t, 20*time.Second, func() error {
		d := database(t, s, "orders")
		for _, m := range d.Members {
			if m.Host != host && m.Role == admin.RoleStandby && m.Ready && m.Sync != admin.SyncAsync {
				return nil
			}
		}
		return fmt.Errorf("no new standby: %+v", d.Members)
	})
	orders, err := state.List[member.Assignment](t.Context(), s.Store, state.AssignPrefix(host))
	if err != nil || len(orders) != 1 {
		t.Errorf("orders to the forgotten host: %+v, %v", orders, err)
	}
	reports, err := state.List[member.Report](t.Context(), s.Store, state.Report(host, ""))
	if err != nil || len(reports) != 0 {
		t.Errorf("reports of the forgotten host: %+v, %v", reports, err)
	}
}

// An operator's word on a host that is alive is no proof. The word on a lost host names the
// databases that it is about.
func TestHostOff(t *testing.T) {
	s := testserver.Start(t, testserver.Losing)
	create(t, s, "single", false)
	host := database(t, s, "single").Members[0].Host
	_, err := testserver.Call[admin.HostOffAnswer](t, s, admin.VerbHostOff, admin.HostOffRequest{Host: "zone-x"})
	wantCode(t, err, admin.CodeHostNotFound, http.StatusNotFound)
	_, err = testserver.Call[admin.HostOffAnswer](t, s, admin.VerbHostOff, admin.HostOffRequest{Host: host})
	wantCode(t, err, admin.CodeHostAlive, http.StatusConflict)
	lose(t, s, host)
	dry := testserver.Must[admin.HostOffAnswer](t, s, admin.VerbHostOff, admin.HostOffRequest{Host: host, DryRun: true})
	_, err = state.Get[fence.Sworn](t.Context(), s.Store, state.Sworn(host))
	if !slices.Contains(dry.Databases, "single") || !errors.Is(err, state.ErrNotFound) {
		t.Errorf("a dry run answers %v, and the word: %v", dry.Databases, err)
	}
	testserver.Must[admin.HostOffAnswer](t, s, admin.VerbHostOff, admin.HostOffRequest{Host: host})
	word, err := state.Get[fence.Sworn](t.Context(), s.Store, state.Sworn(host))
	if err != nil || word.Value.Host != host || !strings.Contains(word.Value.By, "root") {
		t.Errorf("%+v, %v", word.Value, err)
	}
}
