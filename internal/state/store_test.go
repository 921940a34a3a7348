package state

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/identity/certs"
	"howdah/internal/state/etcd"
	"howdah/internal/testkit"
	"howdah/internal/testkit/patience"
)

type thing struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

func newStore(t *testing.T) *Store {
	t.Helper()
	ca, err := certs.New("test")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.Issue(certs.Subject{CommonName: "s1", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}})
	if err != nil {
		t.Fatal(err)
	}
	certDir := t.TempDir()
	if err := pair.Write(certDir); err != nil {
		t.Fatal(err)
	}
	m, err := etcd.Start(t.Context(), etcd.Config{
		Name: "s1", Dir: t.TempDir(), CertDir: certDir,
		ClientAddr: testkit.FreeAddr(t), PeerAddr: testkit.FreeAddr(t), Tick: 10 * time.Millisecond, Log: quiet(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return &Store{Client: m.Client}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestSwapAndRemoveGuardAgainstLostUpdates(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	if _, err := Get[thing](ctx, s, "/x"); !errors.Is(err, ErrNotFound) {
		t.Fatalf("reading nothing: %v", err)
	}
	if _, err := s.Commit(ctx, Swap("/x", 0, thing{"a", 1})); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(ctx, Swap("/x", 0, thing{"b", 1})); !errors.Is(err, ErrConflict) {
		t.Errorf("creating twice: %v, want ErrConflict", err)
	}
	first, err := Get[thing](ctx, s, "/x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(ctx, Swap("/x", first.Revision, thing{"a", 2})); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(ctx, Swap("/x", first.Revision, thing{"a", 3})); !errors.Is(err, ErrConflict) {
		t.Errorf("a write over a newer one: %v, want ErrConflict", err)
	}
	if _, err := s.Commit(ctx, Remove("/x", first.Revision)); !errors.Is(err, ErrConflict) {
		t.Errorf("removing what changed: %v, want ErrConflict", err)
	}
	last, err := Get[thing](ctx, s, "/x")
	if err != nil || last.Value.Count != 2 {
		t.Errorf("left %+v, %v", last.Value, err)
	}
}

func TestSizeIsThatOfWhatIsWritten(t *testing.T) {
	op := Put("/k", thing{Name: strings.Repeat("<", 1000)})
	if n := op.Size(); n < 1000 || n > 1100 {
		t.Errorf("%d bytes: a value takes about what it is long", n)
	}
	if n := Delete("/k").Size(); n != 2 {
		t.Errorf("a deletion takes %d bytes", n)
	}
}

func TestCommitIsAllOrNothing(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	_, err := s.Commit(ctx, Put("/a", thing{"a", 1}), Unchanged("/b", 42), Put("/c", thing{"c", 1}))
	if !errors.Is(err, ErrConflict) {
		t.Fatalf("%v, want ErrConflict", err)
	}
	left, err := List[thing](ctx, s, "/")
	if err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestUpdateCountsEveryIncrement(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	if _, err := s.Commit(ctx, Put("/n", thing{})); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			for range 10 {
				_, err := Update(ctx, s, "/n", func(v *thing) error { v.Count++; return nil })
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	got, err := Get[thing](ctx, s, "/n")
	if err != nil || got.Value.Count != 50 {
		t.Errorf("counted %d, %v", got.Value.Count, err)
	}
	stop := errors.New("stop")
	if _, err := Update(ctx, s, "/n", func(*thing) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("the error of change: %v", err)
	}
}

func runCache(t *testing.T, s *Store, prefixes ...string) *Cache {
	t.Helper()
	c := NewCache(s.Client, quiet(), prefixes...)
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { c.Run(ctx) })
	t.Cleanup(func() { cancel(); done.Wait() })
	if err := c.Loaded(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCacheSeesWhatWasWritten(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	if _, err := s.Commit(ctx, Put("/t/p/old", thing{"old", 1}), Put("/t/q/x", thing{"x", 1})); err != nil {
		t.Fatal(err)
	}
	c := runCache(t, s, "/t/p/", "/t/q/")
	for i := range 50 {
		revision, err := s.Commit(ctx, Put(fmt.Sprintf("/t/p/%02d", i), thing{"new", i}))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.WaitRevision(ctx, revision); err != nil {
			t.Fatal(err)
		}
		got, err := Load[thing](c, fmt.Sprintf("/t/p/%02d", i))
		if err != nil || got.Value.Count != i || got.Revision != revision {
			t.Fatalf("after waiting for its revision: %+v, %v", got, err)
		}
	}
	revision, err := s.Commit(ctx, Delete("/t/p/old"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.WaitRevision(ctx, revision); err != nil {
		t.Fatal(err)
	}
	if _, err := Load[thing](c, "/t/p/old"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a deleted key: %v", err)
	}
	if n := len(LoadAll[thing](c, "/t/p/")); n != 50 {
		t.Errorf("%d values below /p/, want 50", n)
	}
	if diff := cmp.Diff([]string{"/t/q/x"}, c.Keys("/t/q/")); diff != "" {
		t.Error(diff)
	}
}

// A write that the mirror does not hold must not make readers wait for ever.
func TestCacheWaitsForRevisionsElsewhere(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	c := runCache(t, s, "/t/p/")
	revision, err := s.Commit(ctx, Put("/elsewhere", thing{}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(ctx, patience.For(5*time.Second))
	defer cancel()
	if err := c.WaitRevision(ctx, revision); err != nil {
		t.Error(err)
	}
}

func TestCacheTellsChangesInOrder(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	c := NewCache(s.Client, quiet(), "/t/p/")
	var mu sync.Mutex
	var seen []string
	c.OnChange(func(keys []string) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, keys...)
	})
	runCtx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { c.Run(runCtx) })
	t.Cleanup(func() { cancel(); done.Wait() })
	if err := c.Loaded(ctx); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"/t/p/1", "/t/p/2", "/t/p/1"} {
		if _, err := s.Commit(ctx, Put(key, thing{})); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Eventually(t, 5*time.Second, func() error {
		mu.Lock()
		defer mu.Unlock()
		if got := strings.Join(seen, " "); got != "/t/p/1 /t/p/2 /t/p/1" {
			return fmt.Errorf("told %q", got)
		}
		return nil
	})
}

func TestCacheLeavesOutACorruptRecord(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	if _, err := s.Client.Put(ctx, "/t/p/bad", "{not json"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(ctx, Put("/t/p/good", thing{"good", 1})); err != nil {
		t.Fatal(err)
	}
	c := runCache(t, s, "/t/p/")
	all := LoadAll[thing](c, "/t/p/")
	if len(all) != 1 || all[0].Value.Name != "good" {
		t.Errorf("loaded %+v", all)
	}
	if _, err := Load[thing](c, "/t/p/bad"); err == nil {
		t.Error("the corrupt record was read")
	}
}
