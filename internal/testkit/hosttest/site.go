// Package hosttest has a home with one host, for tests of what runs there: the records, the part of
// a control plane that hosts talk to, and the host's directories. The test brings the agent.
package hosttest

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/failover/fence"
	"howdah/internal/host/hostapi"
	"howdah/internal/host/proc"
	"howdah/internal/identity/certs"
	"howdah/internal/identity/kms"
	"howdah/internal/identity/repository"
	"howdah/internal/model/kind"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/state/etcd"
	"howdah/internal/system/fscrypt"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hometest"
	"howdah/internal/testkit/pgversion"
)

// Name is the host's name.
const Name = "zone-t"

// Soon is how long a host may take for what it does at once.
const Soon = 20 * time.Second

// Place is what an agent needs to start.
type Place struct {
	HomeID, Dir, CertDir string
	Etcd, Control        []string
}

// Identity returns the identity that the host shows.
func (p Place) Identity() (*certs.Identity, certs.Pair, error) {
	pair, err := certs.Load(p.CertDir)
	if err != nil {
		return nil, pair, err
	}
	identity, err := certs.NewIdentity(pair)
	return identity, pair, err
}

// Log returns the logger of agents in tests.
func Log() *slog.Logger { return slog.New(slog.NewTextHandler(os.Stderr, nil)) }

// Site is a home with one host. The test has to end the host's members.
type Site struct {
	*testing.T
	Place
	Home    *hometest.Home
	Store   *state.Store
	Members *certs.CA // the authority of members
	// Between may stand between an agent of Run and etcd.
	Between func(clientv3.KV) clientv3.KV
}

// reaps makes the test's process reap the dead for as long as it lives. An agent that is stopped
// here leaves its members as children of a process that goes on.
var reaps = sync.OnceFunc(func() { _ = proc.TakeOrphans(context.Background()) })

// New makes a site. If quota is not 0, its etcd takes no more writes once it is as large as quota,
// in bytes.
func New(t *testing.T, quota int64) *Site {
	t.Helper()
	if testing.Short() {
		t.Skip("starts processes")
	}
	reaps()
	h := hometest.NewSmall(t, quota)
	s := &Site{T: t, Home: h, Store: h.Store}
	s.Place = Place{HomeID: h.ID, Dir: filepath.Join(h.Dir, "host"), CertDir: filepath.Join(h.Dir, "agent"), Etcd: h.Etcd}
	s.Must(os.MkdirAll(s.CertDir, 0o700))
	s.Must(h.Issue(t, "agent:"+Name).Write(s.CertDir))
	s.Control = []string{s.serveHosts()}
	return s
}

// Must ends the test if there is an error.
func (s *Site) Must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// serveHosts is the part of a control plane that agents talk to.
func (s *Site) serveHosts() string {
	s.Helper()
	members, err := certs.New("members")
	s.Must(err)
	s.Members = members
	server := &hostapi.Server{
		Members: func(context.Context) (*certs.CA, error) { return members, nil },
		Home:    s.Home.Home, CA: s.Home.CA, Store: s.Store, Etcd: s.Store.Client,
		Beat: func(string, string) {}, Log: slog.New(slog.DiscardHandler), Authority: s.authority,
		Storage: func(ctx context.Context, database, member string) ([]byte, error) {
			return kms.Open(ctx, s.Store, s.Home.SealKey, database, member)
		},
		Placed: func(context.Context, string, string) (string, error) { return "", nil },
		Repository: func(ctx context.Context, name, database string) (member.Repository, error) {
			return repository.Open(ctx, s.Store, s.Home.SealKey, name, database)
		},
		Bucket: s.bucket,
	}
	listener := httptest.NewUnstartedServer(server.Handler())
	listener.Listener = s.Secure(listener.Listener)
	listener.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	listener.Start()
	s.Cleanup(listener.Close)
	url := "https://" + listener.Listener.Addr().String()
	s.Put(state.Control("s1"), hostapi.ControlMember{Name: "s1", URL: url})
	return url
}

// Secure shows a certificate of the home on loopback.
func (s *Site) Secure(l net.Listener) net.Listener {
	s.Helper()
	config, err := s.Home.Issue(s.T, "howdah-serve").ServerTLS()
	s.Must(err)
	return tls.NewListener(l, config)
}

// Run makes an agent work, with a client of etcd, until the test ends or stop is called.
func (s *Site) Run(work func(context.Context, *clientv3.Client) error) (stop func()) {
	s.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	_, pair, err := s.Identity()
	s.Must(err)
	client, err := etcd.Dial(ctx, s.Etcd, pair)
	s.Must(err)
	if s.Between != nil {
		client.KV = s.Between(client.KV)
	}
	var done sync.WaitGroup
	done.Go(func() {
		if err := work(ctx, client); err != nil {
			s.Errorf("agent ended: %v", err)
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		done.Wait()
		client.Close()
	})
	s.Cleanup(stop)
	return stop
}

// Put writes a record.
func (s *Site) Put(key string, value any) {
	s.Helper()
	_, err := s.Store.Commit(s.Context(), state.Put(key, value))
	s.Must(err)
}

// Assignment returns an assignment that the host can act on.
func (s *Site) Assignment(scope string, generation int64) member.Assignment {
	s.Helper()
	return member.Assignment{
		ID: scope + ".m1", Generation: generation, Want: member.Running, Scope: scope, Name: "m1", Major: pgversion.Major(),
		Address: "127.0.0.1", Port: FreePort(s.T), RESTPort: FreePort(s.T), RequireTLS: true,
		Cluster: patroni.Cluster{Sync: patroni.SyncOff}, ServerIPs: []string{"127.0.0.1"},
	}
}

// FreePort returns a port of loopback that nobody has.
func FreePort(t *testing.T) int {
	t.Helper()
	_, text, err := net.SplitHostPort(testkit.FreeAddr(t))
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// Assign tells the host of an assignment.
func (s *Site) Assign(a member.Assignment) { s.Put(state.Assign(Name, a.ID), a) }

// Awaits waits for a report for which check returns nil.
func (s *Site) Awaits(id string, within time.Duration, check func(member.Report) error) member.Report {
	s.Helper()
	var got member.Report
	testkit.Eventually(s.T, within, func() error {
		record, err := state.Get[member.Report](s.Context(), s.Store, state.Report(Name, id))
		if err != nil {
			return err
		}
		got = record.Value
		return check(got)
	})
	return got
}

// Running checks that a member's leader runs with a generation.
func Running(generation int64) func(member.Report) error {
	return func(r member.Report) error {
		if !r.Patroni || r.Generation != generation || r.Problem != member.None {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	}
}

// Refusing checks that a member runs with a generation, and says that its later assignments are of
// no use.
func Refusing(generation int64) func(member.Report) error {
	return func(r member.Report) error {
		if !r.Patroni || r.Generation != generation || r.Problem != member.BadAssignment {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	}
}

// Gone checks that nothing of a member is left.
func Gone(r member.Report) error {
	if !r.Gone {
		return fmt.Errorf("report %+v", r)
	}
	return nil
}

// MemberDir returns the directory of a member.
func (s *Site) MemberDir(id string) string { return filepath.Join(s.Dir, "members", id) }

// AssignedPath returns the file in which the host remembers what a member was last told.
func (s *Site) AssignedPath(id string) string { return filepath.Join(s.Dir, "assigned", id+".json") }

// TrashDir returns the host's trash.
func (s *Site) TrashDir() string { return filepath.Join(s.Dir, "trash") }

// Lines returns the words of a file in the member's directory. It returns none if there is no file.
func (s *Site) Lines(id, name string) []string {
	s.Helper()
	text, err := os.ReadFile(filepath.Join(s.MemberDir(id), name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.Fatal(err)
	}
	return strings.Fields(string(text))
}

// Ask gives the host a task.
func (s *Site) Ask(id string, kind member.TaskKind, of string, deadline time.Duration) member.Task {
	s.Helper()
	task := member.Task{ID: id, Kind: kind, Host: Name, Member: of, Deadline: time.Now().Add(deadline)}
	s.Put(state.Task(Name, id), task)
	return task
}

// Ended waits for the end of a task.
func (s *Site) Ended(id string) member.Result {
	s.Helper()
	var got member.Result
	testkit.Eventually(s.T, Soon, func() error {
		record, err := state.Get[member.Result](s.Context(), s.Store, state.Result(id))
		if err != nil {
			return err
		}
		if got = record.Value; got.Ended.IsZero() {
			return errors.New("not ended")
		}
		return nil
	})
	return got
}

// HasStorageKey makes the home keep a key of a database's storage.
func (s *Site) HasStorageKey(database string) {
	s.Helper()
	seal, err := s.Home.SealKey()
	s.Must(err)
	key, err := kms.New(seal, spec.Scope{Account: "1", Region: "us-east-1"}, time.Now())
	s.Must(err)
	storage, err := key.NewStorage(seal, database)
	s.Must(err)
	s.Put(state.KMSKey("1", "us-east-1", key.ID), key)
	s.Put(state.StorageKey(database), storage)
}

// HasKey reports whether the kernel has the key of a member.
func (s *Site) HasKey(id fscrypt.ID) bool {
	s.Helper()
	state, err := fscrypt.KeyState(s.Dir, id)
	s.Must(err)
	return state != fscrypt.Absent
}

// Stopped waits until nothing of a member runs, and until its key is not in the kernel.
func (s *Site) Stopped(a member.Assignment, id fscrypt.ID) {
	s.Helper()
	s.Awaits(a.ID, time.Minute, func(r member.Report) error {
		if r.Patroni || r.Postgres {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
	testkit.Eventually(s.T, time.Minute, func() error {
		if s.HasKey(id) {
			return errors.New("its key is in the kernel")
		}
		return nil
	})
}

// authority makes any authority of databases that a host asks for.
func (s *Site) authority(_ context.Context, name string) (*certs.CA, error) {
	ca, _, err := s.Home.CA.NewAuthority(name, kind.RSA2048)
	return ca, err
}

// SealedText returns an assignment in the form of a newer control plane.
func SealedText(t *testing.T, a member.Assignment) string {
	t.Helper()
	a.Seal = "sealed"
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(string(text), "{", `{"of_a_newer_release":"<1>",`, 1)
}

// Suspect returns a case against m2 on another host. Our m1 is a standby of m2.
func Suspect(postgres, rest string) fence.Case {
	return fence.Case{
		ID: "case-1", Phase: fence.Suspected, Host: "zone-lost", Postgres: postgres, Patroni: rest, Opened: time.Now(),
		Leadership: fence.Leadership{Database: "db-1", Leader: "m2", Sync: patroni.Sync{Leader: "m2", Standbys: []string{"m1"}}},
	}
}
