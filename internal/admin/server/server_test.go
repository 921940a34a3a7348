package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"howdah/api/rds"
	"howdah/internal/admin"
	"howdah/internal/admin/client"
	"howdah/internal/admin/client/testserver"
	"howdah/internal/aws/wire/sigv4"
	"howdah/internal/testkit"
	"howdah/internal/testkit/patience"
)

func ptr[T any](v T) *T { return &v }

const masterPassword = "master-password-7"

// create makes an instance and waits until it is available.
func create(t *testing.T, s *testserver.Server, name string, multiAZ bool) {
	t.Helper()
	createOnly(t, s, name, multiAZ)
	testkit.Eventually(t, 20*time.Second, func() error { return wantStatus(t, s, name, "available") })
}

func createOnly(t *testing.T, s *testserver.Server, name string, multiAZ bool) {
	t.Helper()
	in := &rds.CreateDBInstanceMessage{
		DBInstanceIdentifier: &name, Engine: ptr("postgres"), DBInstanceClass: ptr("db.t3.micro"), AllocatedStorage: ptr(int32(20)),
		MasterUsername: ptr("app"), MasterUserPassword: ptr(masterPassword), MultiAZ: &multiAZ,
	}
	if err := s.Client.RDS(t.Context(), "CreateDBInstance", in, &rds.CreateDBInstanceResult{}); err != nil {
		t.Fatal(err)
	}
}

func wantStatus(t *testing.T, s *testserver.Server, name, status string) error {
	t.Helper()
	d := database(t, s, name)
	if d == nil {
		return fmt.Errorf("%s is not there", name)
	}
	if d.Status != status {
		return fmt.Errorf("%s is %s: %+v", name, d.Status, d.Steps)
	}
	return nil
}

func database(t *testing.T, s *testserver.Server, name string) *admin.Database {
	t.Helper()
	out := testserver.Must[admin.DatabaseAnswer](t, s, admin.VerbDatabase, admin.DatabaseRequest{Name: name})
	if len(out.Databases) == 0 {
		return nil
	}
	return &out.Databases[0]
}

func status(t *testing.T, s *testserver.Server) admin.Status {
	t.Helper()
	return testserver.Must[admin.Status](t, s, admin.VerbStatus, admin.Nothing{})
}

func wantCode(t *testing.T, err error, code string, status int) *client.Error {
	t.Helper()
	var e *client.Error
	if !errors.As(err, &e) || e.Code != code || e.Status != status {
		t.Fatalf("got %v, want %s with status %d", err, code, status)
	}
	return e
}

func codes(problems []admin.Problem) []string {
	var all []string
	for _, p := range problems {
		all = append(all, p.Code)
	}
	return all
}

func TestStatusTellsTheTruth(t *testing.T) {
	s := testserver.Start(t, testserver.Options{})
	create(t, s, "orders", true)
	got := status(t, s)
	if len(got.Control) != 1 || !got.Control[0].Leading || !got.Control[0].Running {
		t.Errorf("control planes %+v", got.Control)
	}
	if len(got.Etcd) != 1 || !got.Etcd[0].Healthy || !got.Etcd[0].Leader || got.Etcd[0].Bytes == 0 {
		t.Errorf("etcd %+v", got.Etcd)
	}
	if len(got.Edges) != 1 || got.Edges[0].Driver != "pretended" {
		t.Errorf("edges %+v", got.Edges)
	}
	if len(got.Hosts) != 3 || got.Hosts[0].State != admin.HostAlive || got.Hosts[0].Postgres[0] != "15.18" {
		t.Errorf("hosts %+v", got.Hosts)
	}
	if len(got.Problems) != 0 {
		t.Errorf("problems %+v", got.Problems)
	}
	if len(got.Databases) != 1 {
		t.Fatalf("databases %+v", got.Databases)
	}
	d := got.Databases[0]
	if d.Kind != admin.KindInstance || d.Name != "orders" || !d.MultiAZ || d.SyncMode != "on" || d.Account != got.Account || d.Region != got.Region {
		t.Errorf("database %+v", d)
	}
	if len(d.Endpoints) != 1 || d.Endpoints[0].Kind != admin.EndpointWriter || !strings.HasSuffix(d.Endpoints[0].Address, ":5432") {
		t.Errorf("endpoints %+v", d.Endpoints)
	}
	if want := []string{"m1"}; !slices.Equal(d.Endpoints[0].LeadsTo, want) {
		t.Errorf("the endpoint leads to %v, want %v", d.Endpoints[0].LeadsTo, want)
	}
	first, second := d.Members[0], d.Members[1]
	if first.Role != admin.RolePrimary || first.Sync != "" || !first.Ready || first.LagBytes != nil {
		t.Errorf("primary %+v", first)
	}
	if second.Role != admin.RoleStandby || second.Sync != admin.SyncSync || !second.Ready || second.LagBytes == nil || *second.LagBytes != 0 {
		t.Errorf("standby %+v", second)
	}
	if first.Zone == second.Zone {
		t.Error("both members are in one zone")
	}
}

func TestStatusNamesALostHostAndTheCommandThatMendsIt(t *testing.T) {
	s := testserver.Start(t, testserver.Losing)
	create(t, s, "orders", true)
	lost := database(t, s, "orders").Members[1].Host
	s.Hold(true)
	s.Lose(lost)
	testkit.Eventually(t, 10*time.Second, func() error {
		for _, p := range status(t, s).Problems {
			if p.Code == "host-lost" && p.Subject == "host "+lost && p.Command == "howdah up --detach" &&
				strings.Contains(p.Text, "orders/m2") && strings.Contains(p.Text, "howdah host forget "+lost) {
				return nil
			}
		}
		return fmt.Errorf("problems %+v", status(t, s).Problems)
	})
	if m := database(t, s, "orders").Members[1]; m.State != "host lost" || m.Ready {
		t.Errorf("the member on the lost host: %+v", m)
	}
}

func TestStatusShowsWhatIsGoingOn(t *testing.T) {
	s := testserver.Start(t, testserver.Options{})
	s.Hold(true)
	createOnly(t, s, "orders", true)
	testkit.Eventually(t, 10*time.Second, func() error {
		d := database(t, s, "orders")
		if d.Status != "creating" || len(d.Steps) == 0 || d.Steps[0].Name != "waiting for a primary" || d.Steps[0].Began.IsZero() {
			return fmt.Errorf("%s, steps %+v", d.Status, d.Steps)
		}
		return nil
	})
}

func TestStatusExplainsWhatMembersReport(t *testing.T) {
	s := testserver.Start(t, testserver.Options{})
	create(t, s, "orders", false)
	d := database(t, s, "orders")
	id := d.ResourceID + ".m1"
	cases := []struct{ problem, text, command string }{
		{"storage-full", "m1 on " + d.Members[0].Host + ": its storage is used up", "howdah db modify orders --storage 40 --apply-immediately"},
		{"storage-low", "less than a tenth", "howdah db modify orders --storage 40 --apply-immediately"},
		{"disk-full", "the disk of the host is full", "howdah host drain " + d.Members[0].Host},
		{"no-version", "PostgreSQL 15 is not installed", "scripts/install --postgresql 15"},
		{"start-fails", "it does not start (exit 1)", "howdah logs orders"},
		{"no-room", "no room for a copy beside them (exit 1)", "howdah host drain " + d.Members[0].Host},
		{"restore-fails", "its data cannot be restored (exit 1)", "howdah db delete orders"},
		{"source-away", "it is to be a clone of another database, which does not answer on this host (exit 1)", "howdah db list"},
		{"cannot-contain", "could not be killed", ""},
		{"hangs", "its PostgreSQL hangs (exit 1)", "howdah host drain " + d.Members[0].Host},
		{"no-module", "without the module howdah (exit 1)", "howdah db reboot orders"},
		{"port-taken", "moves to another", ""},
	}
	for _, c := range cases {
		s.Break(id, c.problem, "exit 1")
		testkit.Eventually(t, 5*time.Second, func() error {
			for _, p := range status(t, s).Problems {
				if p.Code == c.problem && strings.Contains(p.Text, c.text) && p.Command == c.command && p.Subject == "db orders" {
					return nil
				}
			}
			return fmt.Errorf("%s: problems %+v", c.problem, status(t, s).Problems)
		})
	}
}

// A member that lacks what only a start brings is restarted: the primary by a failover, if that is
// possible.
func TestStatusSaysHowAMemberIsRestarted(t *testing.T) {
	s := testserver.Start(t, testserver.Options{})
	create(t, s, "orders", true)
	for _, m := range database(t, s, "orders").Members {
		want := "howdah db reboot orders"
		if m.Role == "primary" {
			want = "howdah db failover orders"
		}
		s.Break(database(t, s, "orders").ResourceID+"."+m.Name, "no-module", "")
		testkit.Eventually(t, 5*time.Second, func() error {
			for _, p := range status(t, s).Problems {
				if p.Code == "no-module" && strings.HasPrefix(p.Text, m.Name+" ") && p.Command == want {
					return nil
				}
			}
			return fmt.Errorf("%s: problems %+v", m.Name, status(t, s).Problems)
		})
	}
}

func TestStatusWithoutHosts(t *testing.T) {
	s := testserver.Start(t, testserver.Options{NoHosts: true})
	if got, want := codes(status(t, s).Problems), []string{"no-edge", "no-host"}; !slices.Equal(got, want) {
		t.Errorf("problems %v, want %v", got, want)
	}
}

func TestADatabaseOfAnotherRegionIsNotTheCallers(t *testing.T) {
	s := testserver.Start(t, testserver.Options{})
	create(t, s, "orders", false)
	elsewhere := *s.Client
	elsewhere.Region = "eu-west-1"
	var out admin.DatabaseAnswer
	if err := elsewhere.Admin(t.Context(), admin.VerbDatabase, admin.DatabaseRequest{Name: "orders"}, &out); err != nil {
		t.Fatal(err)
	}
	if len(out.Databases) != 0 {
		t.Errorf("found %+v", out.Databases)
	}
	if len(status(t, s).Databases) != 1 {
		t.Error("status does not show all regions")
	}
}

func TestPostmortemsNewestFirst(t *testing.T) {
	s := testserver.Start(t, testserver.Options{})
	create(t, s, "orders", true)
	create(t, s, "stock", true)
	for _, name := range []string{"orders", "orders", "stock"} {
		failOver(t, s, name)
	}
	all := testserver.Must[admin.FailoversAnswer](t, s, admin.VerbFailovers, admin.FailoversRequest{}).Failovers
	var names []string
	for _, r := range all {
		names = append(names, r.Name)
	}
	if want := []string{"stock", "orders", "orders"}; !slices.Equal(names, want) {
		t.Errorf("post-mortems of %v, want %v: %+v", names, want, all)
	}
	one := testserver.Must[admin.FailoversAnswer](t, s, admin.VerbFailovers, admin.FailoversRequest{Name: "ORDERS", Limit: 1}).Failovers
	if len(one) != 1 || one[0].ID != all[1].ID {
		t.Errorf("the newest of orders is %+v", one)
	}
	if one[0].Cause != "planned" || !one[0].Planned || one[0].From == one[0].To || one[0].Sessions != 3 {
		t.Errorf("record %+v", one[0])
	}
	if last := status(t, s).LastFailover; last == nil || last.ID != all[0].ID {
		t.Errorf("last failover %+v", last)
	}
	_, err := testserver.Call[admin.FailoversAnswer](t, s, admin.VerbFailovers, admin.FailoversRequest{Limit: -1})
	wantCode(t, err, admin.CodeInvalidRequest, http.StatusBadRequest)
}

// failOver makes a standby take over, and waits for the complete record.
func failOver(t *testing.T, s *testserver.Server, name string) {
	t.Helper()
	before := len(testserver.Must[admin.FailoversAnswer](t, s, admin.VerbFailovers, admin.FailoversRequest{Name: name}).Failovers)
	in := &rds.RebootDBInstanceMessage{DBInstanceIdentifier: &name, ForceFailover: ptr(true)}
	if err := s.Client.RDS(t.Context(), "RebootDBInstance", in, &rds.RebootDBInstanceResult{}); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 20*time.Second, func() error {
		all := testserver.Must[admin.FailoversAnswer](t, s, admin.VerbFailovers, admin.FailoversRequest{Name: name}).Failovers
		if len(all) != before+1 || all[0].FirstWrite.IsZero() || all[0].Proof == "" {
			return fmt.Errorf("%d post-mortems, the newest %+v", len(all), all)
		}
		return wantStatus(t, s, name, "available")
	})
}

func TestCallsThatAreRefused(t *testing.T) {
	s := testserver.Start(t, testserver.Options{NoHosts: true})
	cases := []struct {
		name, method, path, service, body, code string
		status                                  int
	}{
		{"unknown verb", "POST", "explode", "howdah", "{}", admin.CodeUnknownVerb, 404},
		{"another method", "GET", "status", "howdah", "", "MethodNotAllowed", 405},
		{"another service", "POST", "status", "rds", "{}", admin.CodeWrongService, 403},
		{"no JSON", "POST", "status", "howdah", "{", admin.CodeInvalidRequest, 400},
		{"another type", "POST", "drain", "howdah", `{"host": 7}`, admin.CodeInvalidRequest, 400},
		{"unknown field", "POST", "drain", "howdah", `{"hots": "zone-a"}`, admin.CodeInvalidRequest, 400},
		{"two values", "POST", "status", "howdah", `{} {}`, admin.CodeInvalidRequest, 400},
		{"too large", "POST", "status", "howdah", `{"a": "` + strings.Repeat("x", 2<<20) + `"}`, admin.CodeInvalidRequest, 400},
		{"unknown host", "POST", "drain", "howdah", `{"host": "../spec"}`, admin.CodeHostNotFound, 404},
		{"no host at all", "POST", "undrain", "howdah", ``, admin.CodeHostNotFound, 404},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			status, e := raw(t, s, c.method, c.path, c.service, c.body, testserver.Secret)
			if status != c.status || e.Code != c.code || e.Message == "" {
				t.Errorf("answer %d %+v, want %d %s", status, e, c.status, c.code)
			}
		})
	}
	t.Run("wrong signature", func(t *testing.T) {
		status, e := raw(t, s, "POST", "wipe", "howdah", "{}", "another secret")
		if status != http.StatusForbidden || e.Code != "SignatureDoesNotMatch" {
			t.Errorf("answer %d %+v", status, e)
		}
	})
}

// raw makes a call that the client would not make.
func raw(t *testing.T, s *testserver.Server, method, path, service, body, secret string) (int, admin.Error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience.For(10*time.Second))
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "http://"+s.Home.Listen+admin.Path+path, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	sigv4.Sign(r, []byte(body), sigv4.Credentials{AccessKeyID: "TESTKEY", SecretAccessKey: secret}, s.Home.Region, service, time.Now())
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), secret) {
		t.Errorf("the answer holds the secret: %s", text)
	}
	var e admin.Error
	if err := json.Unmarshal(text, &e); err != nil {
		t.Fatalf("answer %q: %v", text, err)
	}
	if answer.Header.Get("x-amzn-RequestId") == "" || answer.Header.Get("Content-Type") != "application/json" {
		t.Errorf("headers %v", answer.Header)
	}
	return answer.StatusCode, e
}

func TestNoAnswerHoldsASecret(t *testing.T) {
	s := testserver.Start(t, testserver.Options{})
	create(t, s, "orders", true)
	for verb, in := range map[string]any{
		admin.VerbStatus: admin.Nothing{}, admin.VerbDatabase: admin.DatabaseRequest{Name: "orders"},
		admin.VerbFailovers: admin.FailoversRequest{}, admin.VerbDrain: admin.DrainRequest{Host: "zone-a", DryRun: true},
	} {
		text, err := testserver.Call[json.RawMessage](t, s, verb, in)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{testserver.Secret, masterPassword, "SCRAM-SHA-256", "hj1."} {
			if strings.Contains(string(text), secret) {
				t.Errorf("%s answers %q", verb, secret)
			}
		}
	}
}
