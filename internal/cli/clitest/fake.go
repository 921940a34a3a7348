// Package clitest has a control plane for tests of commands that answers as a fixture says, and runs
// their golden files.
package clitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"howdah/api/rds"
	"howdah/internal/admin"
	"howdah/internal/aws/wire"
	"howdah/internal/aws/wire/sigv4"
	"howdah/internal/cli"
	"howdah/internal/failover/postmortem"
	"howdah/internal/identity/certs"
	"howdah/internal/identity/home"
)

// Secret is that of the fake's access key.
const Secret = "verysecretaccesskey"

// Fake is a server that speaks the API's protocol, and answers as a fixture says. It verifies
// signatures and notes what was asked.
type Fake struct {
	empty bool // nothing was ever done
	Home  *home.Home

	mu        sync.Mutex
	status    admin.Status
	failovers []postmortem.Record
	moves     [][]admin.Move // of each call of drain; the last one stays
	instances []rds.DBInstance
	clusters  []rds.DBCluster
	events    []rds.Event
	Logs      Logs
	// later has the next statuses of a resource, one for each look. "" means that the resource is
	// gone.
	later map[string][]string
	// refuse holds errors by action or verb.
	refuse map[string]*admin.Error
	calls  []string
	// working is an operation that was begun: as it is at each of the next looks. The last one stays.
	working []admin.Operation
	made    []admin.Snapshot // by commands
	fetches int              // of downloads
}

// Start serves a fixture for a home of its own.
func Start(t *testing.T, fixture func(*Fake)) *Fake {
	t.Helper()
	f := &Fake{later: map[string][]string{}, refuse: map[string]*admin.Error{}}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.Home, err = home.Ensure(filepath.Join(t.TempDir(), "home"), home.Options{
		Listen: l.Addr().String(), Credential: &home.Credential{AccessKey: "TESTKEY", Secret: Secret, Account: "123456789012"},
	})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := certs.Load(f.Home.CertDir())
	if err != nil {
		t.Fatal(err)
	}
	config, err := pair.ServerTLS()
	if err != nil {
		t.Fatal(err)
	}
	fixture(f)
	server := httptest.NewUnstartedServer(f)
	server.Listener.Close()
	server.Listener, server.TLS = l, config
	server.StartTLS()
	t.Cleanup(server.Close)
	return f
}

// ServeHTTP answers one call.
func (f *Fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	identity, err := sigv4.Verify(r, body, func(key string) (string, bool) { return Secret, key == "TESTKEY" }, time.Now())
	if err != nil {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	if verb, ok := strings.CutPrefix(r.URL.Path, admin.Path); ok && identity.Service == admin.Service {
		f.answerVerb(w, r, verb, body)
		return
	}
	f.answerAction(w, r)
}

// read reads a request of the admin API.
func read(body []byte, in any) {
	if err := json.Unmarshal(body, in); err != nil {
		panic("clitest: " + err.Error())
	}
}

// secretsOf matches members of requests with secrets, which no golden file may have.
var secretsOf = regexp.MustCompile(`"(key_)?secret":"[^"]*"`)

func (f *Fake) answerVerb(w http.ResponseWriter, r *http.Request, verb string, body []byte) {
	f.note(verb + " " + secretsOf.ReplaceAllStringFunc(string(body), func(member string) string {
		name, value, _ := strings.Cut(member, ":")
		return fmt.Sprintf("%s:<%d characters>", name, len(value)-len(`""`))
	}))
	var out any
	e := f.refuse[verb]
	switch {
	case e != nil:
	case verb == admin.VerbSnapshotFetch:
		f.sendSnapshot(w, r, body)
		return
	case verb == admin.VerbSnapshotDownload:
		out, e = f.downloadSnapshot(body)
	default:
		out = f.verb(verb, body)
	}
	if e != nil {
		w.WriteHeader(e.Status)
		json.NewEncoder(w).Encode(e)
		return
	}
	json.NewEncoder(w).Encode(out)
}

func (f *Fake) verb(verb string, body []byte) any {
	if strings.HasPrefix(verb, "repository-") {
		return f.repository(verb, body)
	}
	switch verb {
	case admin.VerbBackups, admin.VerbBackupShow, admin.VerbBackupNow, admin.VerbBackupDrill, admin.VerbDrills, admin.VerbSnapshots:
		return f.backup(verb, body)
	case admin.VerbRoleAdd, admin.VerbRoleList, admin.VerbRoleRemove:
		return f.role(verb, body)
	case admin.VerbSnapshotCopy:
		return f.copySnapshot(body)
	case admin.VerbRestore:
		return f.restore(body)
	case admin.VerbRewind:
		return f.rewind(body)
	case admin.VerbStatus:
		return f.status
	case admin.VerbDatabase:
		return f.database(body)
	case admin.VerbFailovers:
		var in admin.FailoversRequest
		read(body, &in)
		all := slices.DeleteFunc(slices.Clone(f.failovers), func(r postmortem.Record) bool { return in.Name != "" && r.Name != in.Name && r.Database != in.Name })
		if in.Limit > 0 && len(all) > in.Limit {
			all = all[:in.Limit]
		}
		return admin.FailoversAnswer{Failovers: all}
	case admin.VerbDrain:
		moves := f.moves[0]
		if len(f.moves) > 1 {
			f.moves = f.moves[1:]
		}
		return admin.DrainAnswer{Draining: true, Moves: moves}
	case admin.VerbHostOff:
		return admin.HostOffAnswer{Databases: []string{"billing", "orders"}}
	case admin.VerbOperations:
		var in admin.OperationsRequest
		read(body, &in)
		if len(f.working) > 0 && in.ID == f.working[0].ID {
			now := f.working[0]
			f.working = f.working[min(1, len(f.working)-1):]
			return admin.OperationsAnswer{Operations: []admin.Operation{now}}
		}
		return admin.OperationsAnswer{Operations: slices.DeleteFunc(fakeOperations(), func(p admin.Operation) bool {
			return f.empty || in.ID != "" && p.ID != in.ID || in.Name != "" && p.Database != in.Name
		})}
	case admin.VerbOperationCancel:
		var in admin.OperationCancelRequest
		read(body, &in)
		return admin.Operation{ID: in.ID, Kind: "copy", Database: "orders", State: "running", Cancelling: true, Began: Noon, Deadline: Noon}
	case admin.VerbKeyCreate:
		return admin.KeyCreateAnswer{Key: Keys[1], Secret: "shown-this-once"}
	case admin.VerbKeyList:
		return admin.KeyListAnswer{Keys: Keys}
	case admin.VerbHeld:
		return fakeHeld
	case admin.VerbEtcd:
		return f.etcd(body)
	case admin.VerbAuthorityCreate:
		return fakeAuthorities[1]
	case admin.VerbAuthorityList:
		return admin.AuthorityListAnswer{Authorities: fakeAuthorities}
	case admin.VerbWipe:
		return admin.WipeAnswer{Instances: 2, Clusters: 1, Members: 5, Seconds: 0.42, Pending: []string{"zone-b/db-1.m2"}}
	}
	return admin.Nothing{}
}

func (f *Fake) database(body []byte) admin.DatabaseAnswer {
	var in admin.DatabaseRequest
	read(body, &in)
	out := admin.DatabaseAnswer{Databases: []admin.Database{}, Problems: []admin.Problem{}}
	for _, d := range f.status.Databases {
		if d.Name == in.Name || cli.HasInstance(&d, in.Name) {
			out.Databases = append(out.Databases, d)
			for _, p := range f.status.Problems {
				if p.ResourceID == d.ResourceID {
					out.Problems = append(out.Problems, p)
				}
			}
		}
	}
	return out
}

// answerAction answers a call of the API. A client that has hung up gets no answer.
func (f *Fake) answerAction(w http.ResponseWriter, r *http.Request) {
	action, values, _, err := wire.ReadRequest(r, wire.MaxBody)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	line := action
	for _, key := range slices.Sorted(func(yield func(string) bool) {
		for k := range values {
			if k != "Action" && k != "Version" && !yield(k) {
				return
			}
		}
	}) {
		value := values.Get(key)
		if key == "MasterUserPassword" {
			value = fmt.Sprintf("<%d characters>", len(value))
		}
		line += " " + key + "=" + value
	}
	f.note(line)
	if e := f.refuse[action]; e != nil {
		w.WriteHeader(e.Status)
		_ = (&wire.Error{Code: e.Code, Message: e.Message, Status: e.Status}).Encode(w, rds.Service.XMLNS, "id")
		return
	}
	out, refused := f.action(action, values.Get)
	if refused != nil {
		w.WriteHeader(refused.Status)
		_ = refused.Encode(w, rds.Service.XMLNS, "id")
		return
	}
	_ = wire.EncodeResult(w, action, "id", out)
}

// note keeps a call. Polls repeat, so the same call is noted once.
func (f *Fake) note(line string) {
	line = strings.TrimSuffix(line, " {}")
	if !slices.Contains(f.calls, line) {
		f.calls = append(f.calls, line)
	}
}

// action does what actions of the API do to the fixture.
func (f *Fake) action(action string, get func(string) string) (any, *wire.Error) {
	name := get("DBInstanceIdentifier")
	switch action {
	case "DescribeDBInstances":
		return f.describeInstances(name)
	case "DescribeDBClusters":
		return f.describeClusters(get("DBClusterIdentifier"))
	case "DescribeDBLogFiles":
		return f.Logs.list(name)
	case "DownloadDBLogFilePortion":
		return f.Logs.portion(name, get("LogFileName"), get("Marker"), get("NumberOfLines"))
	case "DescribeEvents":
		since := slices.DeleteFunc(slices.Clone(f.events), func(e rds.Event) bool {
			return e.Date.UTC().Format(time.RFC3339) < get("StartTime")
		})
		return &rds.EventsMessage{Events: since}, nil
	case "CreateDBInstance":
		i := instance(name, "creating")
		f.instances = append(f.instances, i)
		f.status.Databases = append(f.status.Databases, databaseOf(name, "db-NEW"))
		return &rds.CreateDBInstanceResult{DBInstance: &i}, nil
	case "ModifyDBInstance":
		return &rds.ModifyDBInstanceResult{DBInstance: &f.instances[0]}, nil
	case "DeleteDBInstance":
		return &rds.DeleteDBInstanceResult{DBInstance: &f.instances[0]}, nil
	case "RebootDBInstance":
		return &rds.RebootDBInstanceResult{DBInstance: &f.instances[0]}, nil
	case "StartDBInstance":
		return &rds.StartDBInstanceResult{DBInstance: &f.instances[0]}, nil
	case "StopDBInstance":
		return &rds.StopDBInstanceResult{DBInstance: &f.instances[0]}, nil
	case "PromoteReadReplica":
		return &rds.PromoteReadReplicaResult{DBInstance: &f.instances[0]}, nil
	case "FailoverDBCluster":
		return &rds.FailoverDBClusterResult{DBCluster: &f.clusters[0]}, nil
	case "DeleteDBCluster":
		return &rds.DeleteDBClusterResult{DBCluster: &f.clusters[0]}, nil
	case "RebootDBCluster":
		return &rds.RebootDBClusterResult{DBCluster: &f.clusters[0]}, nil
	}
	return f.snapshotAction(action, get)
}

func (f *Fake) describeInstances(name string) (any, *wire.Error) {
	if name == "" {
		return &rds.DBInstanceMessage{DBInstances: f.instances}, nil
	}
	for n, i := range f.instances {
		if cli.Value(i.DBInstanceIdentifier) != name {
			continue
		}
		if next := f.next(name); next != nil {
			if *next == "" {
				break
			}
			f.instances[n].DBInstanceStatus = next
		}
		return &rds.DBInstanceMessage{DBInstances: f.instances[n : n+1]}, nil
	}
	return nil, wire.NewError(rds.ErrDBInstanceNotFound, "DBInstance %s not found.", name)
}

func (f *Fake) describeClusters(name string) (any, *wire.Error) {
	if name == "" {
		return &rds.DBClusterMessage{DBClusters: f.clusters}, nil
	}
	for n, c := range f.clusters {
		if cli.Value(c.DBClusterIdentifier) != name {
			continue
		}
		if next := f.next(name); next != nil {
			if *next == "" {
				break
			}
			f.clusters[n].Status = next
		}
		return &rds.DBClusterMessage{DBClusters: f.clusters[n : n+1]}, nil
	}
	return nil, wire.NewError(rds.ErrDBClusterNotFound, "DBCluster %s not found.", name)
}

// next returns the status that a resource has from now on, or nil.
func (f *Fake) next(name string) *string {
	if len(f.later[name]) == 0 {
		return nil
	}
	status := f.later[name][0]
	if len(f.later[name]) > 1 {
		f.later[name] = f.later[name][1:]
	}
	return &status
}
