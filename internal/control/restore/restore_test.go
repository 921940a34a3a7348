package restore

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/control/plan"
	"howdah/internal/identity/certs"
	"howdah/internal/identity/home"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/model/patroni"
	"howdah/internal/model/regain"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/state/backup"
	"howdah/internal/state/etcd"
	"howdah/internal/state/format"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hometest"
)

const instanceKey = state.InstanceRoot + "1/us-west-2/orders"

// lived returns a home with a database at which something goes on, and a backup of the home.
func lived(t *testing.T) (h *hometest.Home, path string) {
	t.Helper()
	h = hometest.New(t)
	instance := spec.Instance{}
	instance.ResourceID = "db-1"
	layout := plan.Layout{ID: "db-1", Next: 2, Created: true, Asked: &plan.Asked{Request: "reboot"}, Members: []plan.Placed{
		{Name: "m1", Host: "a", Going: plan.Replaced, Leaving: true}, {Name: "m2", Host: "b"},
	}}
	put(t, h.Store, state.Put(instanceKey, instance), state.Put(state.Layout("db-1"), layout),
		state.Put(state.Assign("a", "db-1.m1"), member.Assignment{ID: "db-1.m1", Want: member.Absent}),
		state.Put(state.Assign("b", "db-1.m2"), member.Assignment{ID: "db-1.m2", Want: member.Running}),
		state.Put(state.Assign("c", "db-1.m0"), member.Assignment{ID: "db-1.m0", Scope: "db-1", Name: "m0", Want: member.Absent}),
		state.Put(state.Task("b", "db-1/restart"), member.Task{ID: "db-1/restart"}), state.Put(state.Live("a"), true),
		state.Put(state.Lead("db-1"), map[string]string{"member": "m1"}),
		state.Put(state.Operation("copy-1"), operation.Record{ID: "copy-1", State: operation.Running, Step: "fill", Entered: []string{"make", "fill"}}),
		state.Put(state.Operation("copy-0"), operation.Record{ID: "copy-0", State: operation.Done}),
		state.Put(state.Operation("copy-2"), map[string]any{"id": "copy-2", "state": "running", "turn": "first"}),
		state.Put(state.OperationCancel("copy-1"), operation.Wish{By: "KEY"}))
	for key, value := range map[string]string{
		patroni.LeaderKey("db-1"): "db-1.m1", patroni.SyncKey("db-1"): `{"leader":"db-1.m1","sync_standby":"db-1.m2"}`,
		patroni.ConfigKey("db-1"): `{"synchronous_mode":true}`, patroni.InitializeKey("db-1"): "7000", patroni.FailsafeKey("db-1"): "{}",
		patroni.MemberKey("db-1", "db-1.m1"): "{}", patroni.HistoryKey("db-1"): "[[1,5,\"x\"]]", patroni.LeaderKey("db-gone"): "m1",
	} {
		if _, err := h.Store.Client.Put(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
	b, err := backup.Take(t.Context(), filepath.Join(t.TempDir(), "backups"), backup.Source{Home: h.Home, Snapshot: h.Member.Snapshot, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return h, b.Path
}

func put(t *testing.T, s *state.Store, ops ...state.Op) {
	t.Helper()
	if _, err := s.Commit(t.Context(), ops...); err != nil {
		t.Fatal(err)
	}
}

func config(dir, path string) Config {
	return Config{Dir: dir, Backup: path, Name: "s1", PeerAddr: "127.0.0.1:2380", Log: slog.New(slog.DiscardHandler)}
}

// started runs the etcd of a home that was restored.
func started(t *testing.T, h *home.Home) (*state.Store, *etcd.Member) {
	t.Helper()
	m, err := etcd.Start(t.Context(), etcd.Config{
		Name: "s1", Dir: h.EtcdDir(), CertDir: h.CertDir(), ClientAddr: testkit.FreeAddr(t), PeerAddr: testkit.FreeAddr(t), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return &state.Store{Client: m.Client}, m
}

// keys returns all that a state holds.
func keys(t *testing.T, s *state.Store) map[string]string {
	t.Helper()
	answer, err := s.Client.Get(t.Context(), "/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, kv := range answer.Kvs {
		all[string(kv.Key)] = string(kv.Value)
	}
	return all
}

// A home that is gone comes back with its authority and tokens, which nobody else can read. In its
// state every database is held.
func TestALostHome(t *testing.T) {
	t.Parallel()
	h, path := lived(t)
	newest, err := h.Store.Client.Get(t.Context(), "/")
	if err != nil {
		t.Fatal(err)
	}
	h.StopEtcd()
	dir := filepath.Join(hometest.Dir(t), "home")
	p, err := Run(t.Context(), config(dir, path))
	if err != nil {
		t.Fatal(err)
	}
	if p.Held != 1 || p.Home != h.ID || p.Aside != "" {
		t.Errorf("%+v", p)
	}
	again, err := home.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if again.Config != h.Config {
		t.Errorf("the home is %+v, want %+v", again.Config, h.Config)
	}
	sameSecrets(t, h.Home, again)
	s, _ := started(t, again)
	checkHeld(t, s)
	now, err := s.Client.Get(t.Context(), "/")
	if err != nil {
		t.Fatal(err)
	}
	if now.Header.Revision < newest.Header.Revision+etcd.Beyond || now.Header.ClusterId == newest.Header.ClusterId {
		t.Errorf("revision %d after %d, of cluster %x after %x", now.Header.Revision, newest.Header.Revision, now.Header.ClusterId, newest.Header.ClusterId)
	}
	// A watcher that goes on from its old revision is told to read everything again.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if answer := <-s.Client.Watch(ctx, "/", clientv3.WithPrefix(), clientv3.WithRev(newest.Header.Revision+1000)); answer.CompactRevision == 0 {
		t.Errorf("a watch goes on: %+v", answer)
	}
}

// A second restore knows of the numbers of members what the first one knew, as long as the
// databases wait: since the first one the numbers have a gap.
func TestARestorationOfARestoredHome(t *testing.T) {
	t.Parallel()
	h, _ := lived(t)
	for range 2 {
		if _, err := Rewrite(t.Context(), h.Store, regain.Home{ID: "r"}, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
		checkHeld(t, h.Store)
	}
	old := regain.Hold{Database: "db-1", System: "7000"} // of an older release
	put(t, h.Store, state.Put(state.Hold("db-1"), old))
	if _, err := Rewrite(t.Context(), h.Store, regain.Home{ID: "r"}, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if hold, err := state.Get[regain.Hold](t.Context(), h.Store, state.Hold("db-1")); err != nil || hold.Value.Given != 0 {
		t.Errorf("%+v, %v", hold.Value, err)
	}
}

func sameSecrets(t *testing.T, a, b *home.Home) {
	t.Helper()
	for _, path := range []string{"join.json", "credentials.json", "pki/ca.key", "pki/ca.crt", "pki/tls.key"} {
		old, err := os.ReadFile(filepath.Join(a.Dir, path))
		if err != nil {
			t.Fatal(err)
		}
		now, err := os.ReadFile(filepath.Join(b.Dir, path))
		if err != nil || string(now) != string(old) {
			t.Errorf("%s is another one: %v", path, err)
		}
		info, err := os.Stat(filepath.Join(b.Dir, path))
		if err == nil && !strings.HasSuffix(path, ".crt") && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %s", path, info.Mode())
		}
	}
}

func checkHeld(t *testing.T, s *state.Store) {
	t.Helper()
	all := keys(t, s)
	for key, want := range map[string]string{
		patroni.SyncKey("db-1"): regain.NobodyInSync, patroni.ConfigKey("db-1"): `{"pause":true,"synchronous_mode":true}`,
		patroni.InitializeKey("db-1"): regain.Held, patroni.HistoryKey("db-1"): "[[1,5,\"x\"]]",
	} {
		if all[key] != want {
			t.Errorf("%s is %q, want %q", key, all[key], want)
		}
	}
	for _, gone := range []string{
		patroni.LeaderKey("db-1"), patroni.FailsafeKey("db-1"), patroni.MemberKey("db-1", "db-1.m1"), patroni.LeaderKey("db-gone"),
		state.Assign("a", "db-1.m1"), state.Task("b", "db-1/restart"), state.Live("a"), state.Lead("db-1"),
		state.OperationCancel("copy-1"),
	} {
		if text, there := all[gone]; there {
			t.Errorf("%s is still there: %s", gone, text)
		}
	}
	for _, there := range []string{instanceKey, state.Assign("b", "db-1.m2"), state.Restored()} {
		if all[there] == "" {
			t.Errorf("%s is gone", there)
		}
	}
	hold, err := state.Get[regain.Hold](t.Context(), s, state.Hold("db-1"))
	if err != nil || hold.Value.System != "7000" || hold.Value.Given != 2 || !slices.Equal(hold.Value.Left, []string{"c/m0"}) {
		t.Errorf("%+v, %v", hold, err)
	}
	layout, err := state.Get[plan.Layout](t.Context(), s, state.Layout("db-1"))
	if err != nil || layout.Value.Next <= 2 || layout.Value.Asked != nil ||
		slices.ContainsFunc(layout.Value.Members, func(m plan.Placed) bool { return m.Leaving || m.Going != plan.Staying }) {
		t.Errorf("%+v, %v", layout, err)
	}
	// What an operation made may be in use since. So the operation neither goes on nor is undone.
	copied, err := state.Get[operation.Record](t.Context(), s, state.Operation("copy-1"))
	if r := copied.Value; err != nil || r.State != operation.Failed || !slices.Equal(r.Left, []string{"make", "fill"}) || r.Step != "" {
		t.Errorf("%+v, %v", copied, err)
	}
	// One that nobody can read holds up nothing, and is not there any more.
	if _, err := state.Get[operation.Record](t.Context(), s, state.Operation("copy-2")); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("an operation that cannot be read: %v", err)
	}
}

// The others of a control plane are lost for good. What it has is restored as a backup is. Its own
// data are put aside, not lost.
func TestASurvivor(t *testing.T) {
	t.Parallel()
	h, _ := lived(t)
	for _, name := range []string{"s2", "s3"} {
		joined(t, h, name)
	}
	put(t, h.Store, state.Put(state.Drain("a"), true))
	h.StopEtcd()
	cfg := config(h.Dir, "")
	if _, err := Run(t.Context(), cfg); !errors.Is(err, ErrState) {
		t.Fatalf("%v", err)
	}
	cfg.Replace = true
	p, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(p.Aside, "member", "snap", "db")); err != nil {
		t.Error(err)
	}
	s, _ := started(t, h.Home)
	checkHeld(t, s)
	members, err := s.Client.MemberList(t.Context())
	if err != nil || len(members.Members) != 1 || keys(t, s)[state.Drain("a")] == "" {
		t.Errorf("%+v, %v", members, err)
	}
}

// joined starts a further member. The member is lost at the end of the function.
func joined(t *testing.T, h *hometest.Home, name string) {
	t.Helper()
	peer := testkit.FreeAddr(t)
	peers, err := etcd.Add(t.Context(), h.Store.Client, name, peer)
	if err != nil {
		t.Fatal(err)
	}
	m, err := etcd.Start(t.Context(), etcd.Config{
		Name: name, Dir: t.TempDir(), CertDir: h.CertDir(), ClientAddr: testkit.FreeAddr(t), PeerAddr: peer, Peers: peers, Join: true,
		Tick: 10 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	if err := m.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A restore that is killed leaves a home that does not start. The next restore finishes it,
// wherever it was.
func TestARestorationThatIsKilled(t *testing.T) {
	t.Parallel()
	h, path := lived(t)
	h.StopEtcd()
	for name, leave := range map[string]func(t *testing.T, dir string){
		"before the state is in place": func(t *testing.T, dir string) { remove(t, dir, "etcd", "howdah.json", "join.json") },
		"before the home is":           func(t *testing.T, dir string) { remove(t, dir, "howdah.json", "pki") },
		"at its end":                   func(t *testing.T, dir string) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(hometest.Dir(t), "home")
			if _, err := Run(t.Context(), config(dir, path)); err != nil {
				t.Fatal(err)
			}
			leave(t, dir)
			if err := errors.Join(os.MkdirAll(filepath.Join(dir, stagingDir, "etcd"), 0o700), os.WriteFile(filepath.Join(dir, home.RestoringFile), nil, 0o600)); err != nil {
				t.Fatal(err)
			}
			if _, err := home.Ensure(dir, home.Options{}); !errors.Is(err, home.ErrRestoring) {
				t.Errorf("it starts: %v", err)
			}
			if _, err := Run(t.Context(), config(dir, path)); err != nil {
				t.Fatal(err)
			}
			again, err := home.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(dir, stagingDir)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the staging is left: %v", err)
			}
			s, _ := started(t, again)
			checkHeld(t, s)
		})
	}
}

func remove(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// If a newer release wrote the records of a state, this one does not restore it, neither from a
// backup nor from a survivor. Nothing is left of the attempt.
func TestRecordsOfANewerRelease(t *testing.T) {
	t.Parallel()
	h, _ := lived(t)
	put(t, h.Store, state.Put(state.HomeFormat, format.Record{Format: format.Newest + 1, Release: "99.1"}))
	from := backup.Source{Home: h.Home, Snapshot: h.Member.Snapshot, Version: "99.1"}
	silent, err := backup.Take(t.Context(), t.TempDir(), from) // by a release that did not say it beside
	if err != nil {
		t.Fatal(err)
	}
	from.Format = format.Of(h.Store.Client)
	if _, err := backup.Take(t.Context(), t.TempDir(), from); !errors.Is(err, format.ErrNewer) {
		t.Errorf("a backup that this release could not read was taken: %v", err)
	}
	h.StopEtcd()
	dir := filepath.Join(hometest.Dir(t), "home")
	survivor := config(h.Dir, "")
	survivor.Replace = true
	for name, cfg := range map[string]Config{"a backup": config(dir, silent.Path), "a survivor": survivor} {
		if _, err := Run(t.Context(), cfg); !errors.Is(err, format.ErrNewer) || !strings.Contains(err.Error(), "start howdah 99.1 or newer") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := home.Open(dir); !errors.Is(err, home.ErrNone) {
		t.Errorf("a home was made: %v", err)
	}
}

// Nothing is restored over a home that runs or over another home, and nothing that cannot be
// restored.
func TestRefusals(t *testing.T) {
	t.Parallel()
	h, path := lived(t)
	lock, err := h.Lock("serve")
	if err != nil {
		t.Fatal(err)
	}
	cfg := config(h.Dir, path)
	cfg.Replace = true
	if _, err := Run(t.Context(), cfg); !errors.Is(err, ErrRuns) {
		t.Errorf("a home that runs: %v", err)
	}
	if _, err := Check(cfg); !errors.Is(err, ErrRuns) {
		t.Errorf("a home that runs: %v", err)
	}
	lock.Release()
	if _, err := Run(t.Context(), config(h.Dir, path)); !errors.Is(err, ErrState) {
		t.Errorf("a home with a state: %v", err)
	}
	other, err := home.Ensure(filepath.Join(hometest.Dir(t), "home"), home.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), config(other.Dir, path)); !errors.Is(err, ErrOther) {
		t.Errorf("another home: %v", err)
	}
	if err := os.Truncate(filepath.Join(path, backup.SnapshotFile), 100); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), cfg); !errors.Is(err, backup.ErrDamaged) {
		t.Errorf("a damaged backup: %v", err)
	}
	if _, err := certs.Load(h.CertDir()); err != nil {
		t.Error(err)
	}
}
