package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/api/rds"
	"howdah/internal/admin"
	"howdah/internal/admin/client/testserver"
	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/state"
	"howdah/internal/testkit"
)

// keys returns all keys, without those that an empty home has.
func keys(t *testing.T, s *testserver.Server) []string {
	t.Helper()
	var left []string
	for _, root := range []string{"/howdah/", "/service/"} {
		answer, err := s.Store.Client.Get(t.Context(), root, clientv3.WithPrefix(), clientv3.WithKeysOnly())
		if err != nil {
			t.Fatal(err)
		}
		for _, kv := range answer.Kvs {
			key := string(kv.Key)
			if !slices.ContainsFunc([]string{state.HostRoot, state.LiveRoot, state.EdgeRoot, state.BetweenRoot, state.RunsRoot, state.ControlRoot, state.ElectionRoot, state.MetaRoot, state.AuthorityRoot, state.MembersAuthority, state.HomeFormat, state.RepositoryRoot},
				func(root string) bool { return strings.HasPrefix(key, root) }) {
				left = append(left, key)
			}
		}
	}
	return left
}

func TestWipeLeavesNothing(t *testing.T) {
	s := testserver.Start(t, testserver.Options{})
	for n := range 6 {
		createOnly(t, s, fmt.Sprintf("db%d", n), true)
	}
	for n := range 6 {
		testkit.Eventually(t, 20*time.Second, func() error { return wantStatus(t, s, fmt.Sprintf("db%d", n), "available") })
	}
	failOver(t, s, "db0")
	testserver.Must[admin.DrainAnswer](t, s, admin.VerbDrain, admin.DrainRequest{Host: "zone-c"})
	answer := testserver.Must[admin.WipeAnswer](t, s, admin.VerbWipe, admin.Nothing{})
	if left := keys(t, s); len(left) != 0 {
		t.Errorf("left are %q", left)
	}
	if answer.Instances != 6 || answer.Clusters != 0 || answer.Members < 12 || len(answer.Pending) != 0 || answer.Seconds <= 0 {
		t.Errorf("answer %+v", answer)
	}
	t.Logf("wiped %d instances with %d members in %.2f s", answer.Instances, answer.Members, answer.Seconds)
	again := testserver.Must[admin.WipeAnswer](t, s, admin.VerbWipe, admin.Nothing{})
	if again.Instances != 0 || again.Members != 0 {
		t.Errorf("a second wipe found %+v", again)
	}
	create(t, s, "db0", true)
}

func TestWipeIsRefusedForHomesThatLast(t *testing.T) {
	s := testserver.Start(t, testserver.Options{Permanent: true})
	createOnly(t, s, "orders", false)
	_, err := testserver.Call[admin.WipeAnswer](t, s, admin.VerbWipe, admin.Nothing{})
	wantCode(t, err, admin.CodeNotDisposable, http.StatusForbidden)
	if d := database(t, s, "orders"); d == nil || d.Status == "deleting" {
		t.Errorf("after the refusal: %+v", d)
	}
}

func TestWipeDeletesWhatIsProtectedAndHalfMade(t *testing.T) {
	s := testserver.Start(t, testserver.Options{})
	name := "fort"
	in := &rds.CreateDBInstanceMessage{
		DBInstanceIdentifier: &name, Engine: ptr("postgres"), DBInstanceClass: ptr("db.t3.micro"), AllocatedStorage: ptr(int32(20)),
		MasterUsername: ptr("app"), MasterUserPassword: ptr(masterPassword), DeletionProtection: ptr(true),
	}
	if err := s.Client.RDS(t.Context(), "CreateDBInstance", in, &rds.CreateDBInstanceResult{}); err != nil {
		t.Fatal(err)
	}
	// This comes at once: reconcile may be placing its members just now.
	testserver.Must[admin.WipeAnswer](t, s, admin.VerbWipe, admin.Nothing{})
	if left := keys(t, s); len(left) != 0 {
		t.Errorf("left are %q", left)
	}
	stays(t, s)
}

// stays checks that nothing comes back by itself.
func stays(t *testing.T, s *testserver.Server) {
	t.Helper()
	until := time.Now().Add(1500 * time.Millisecond)
	testkit.Eventually(t, 5*time.Second, func() error {
		if left := keys(t, s); len(left) != 0 {
			t.Fatalf("came back: %q", left)
		}
		if time.Now().Before(until) {
			return fmt.Errorf("still watching")
		}
		return nil
	})
}

func TestWipeManyTimesRightAfterCreating(t *testing.T) {
	s := testserver.Start(t, testserver.Options{})
	for n := range 20 {
		createOnly(t, s, fmt.Sprintf("db%d", n), n%2 == 0)
		testserver.Must[admin.WipeAnswer](t, s, admin.VerbWipe, admin.Nothing{})
		if left := keys(t, s); len(left) != 0 {
			t.Fatalf("round %d left %q", n, left)
		}
	}
	stays(t, s)
}

func TestWipeKeepsOrdersToLostHosts(t *testing.T) {
	s := testserver.Start(t, testserver.Losing)
	create(t, s, "orders", true)
	m := database(t, s, "orders").Members[1]
	id := database(t, s, "orders").ResourceID + "." + m.Name
	lose(t, s, m.Host)
	answer := testserver.Must[admin.WipeAnswer](t, s, admin.VerbWipe, admin.Nothing{})
	if want := []string{m.Host + "/" + id}; !slices.Equal(answer.Pending, want) {
		t.Fatalf("pending %q, want %q", answer.Pending, want)
	}
	order, err := state.Get[member.Assignment](t.Context(), s.Store, state.Assign(m.Host, id))
	if err != nil || order.Value.Want != member.Absent {
		t.Fatalf("the order to the lost host is %+v, %v", order.Value.Want, err)
	}
	s.Return(m.Host)
	testkit.Eventually(t, time.Minute, func() error {
		if left := keys(t, s); len(left) != 0 {
			return fmt.Errorf("left are %q", left)
		}
		return nil
	})
}

func TestWipeDeletesWhatACrashLeft(t *testing.T) {
	s := testserver.Start(t, testserver.Options{})
	create(t, s, "orders", true)
	d := database(t, s, "orders")
	// This is as if the resource had vanished without anything being told.
	_, err := s.Store.Commit(t.Context(), state.Delete(state.Instance(d.Account, d.Region, "orders")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := state.Get[plan.Layout](t.Context(), s.Store, state.Layout(d.ResourceID)); err != nil {
		t.Fatal(err)
	}
	answer := testserver.Must[admin.WipeAnswer](t, s, admin.VerbWipe, admin.Nothing{})
	if answer.Members != 2 {
		t.Errorf("answer %+v", answer)
	}
	if left := keys(t, s); len(left) != 0 {
		t.Errorf("left are %q", left)
	}
}
