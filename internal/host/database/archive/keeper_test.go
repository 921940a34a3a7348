package archive

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"howdah/internal/host/agent"
	"howdah/internal/host/hostapi"
	"howdah/internal/identity/certs"
	"howdah/internal/model/member"
	"howdah/internal/repository/store"
	"howdah/internal/testkit"
)

// site is a host's directory, with a repository beside it.
type site struct {
	*testing.T
	agent      *agent.Agent
	repository string

	mu      sync.Mutex
	refuses error        // guarded by mu
	asked   map[Part]int // guarded by mu
	told    chan string  // holders that were told of
	wrote   chan string  // keys of objects
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{T: t, repository: t.TempDir(), asked: map[Part]int{}, told: make(chan string, 16), wrote: make(chan string, 16)}
	s.agent = &agent.Agent{Config: agent.Config{Dir: t.TempDir(), Address: "127.0.0.1", Name: "a", Log: slog.New(slog.DiscardHandler)}}
	files, err := store.OpenDirectory(s.repository, "")
	s.must(err)
	s.must(store.WriteMarker(t.Context(), files, store.Marker{ID: "repo-1", Home: "h", Created: time.Now()}))
	return s
}

func (s *site) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *site) refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuses = err
}

// open opens the keeper as the agent does when it starts.
func (s *site) open() *Keeper {
	s.Helper()
	k, err := New(s.agent)
	s.must(err)
	k.Opened = func(holder string) { s.told <- holder }
	k.Wrote = func(repository, database, key string) { s.wrote <- repository + " " + database + " " + key }
	k.fetch = func(_ context.Context, p Part) (member.Repository, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked[p]++
		if s.refuses != nil {
			return member.Repository{}, s.refuses
		}
		return member.Repository{Name: p.Repository, ID: "repo-1", Kind: "directory", Path: s.repository, Passphrase: "of " + p.Database}, nil
	}
	return k
}

// run has it work until the test ends, or stop is called.
func (s *site) run(k *Keeper) (stop func()) {
	s.Helper()
	ca, err := certs.New("home")
	s.must(err)
	pair, err := ca.Issue(certs.Subject{CommonName: "server:a"})
	s.must(err)
	cert, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
	s.must(err)
	work, err := k.Begin(s.Context(), func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &cert, nil })
	s.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { _ = work(ctx) })
	stop = sync.OnceFunc(func() { cancel(); done.Wait() })
	s.Cleanup(stop)
	return stop
}

var own = Part{Database: "db-1", Repository: "main"}

// TestAHolderIsLetInWithoutAControlPlane, once one has told what opens the repository; also by the
// next agent, with the same key at the same port.
func TestAHolderIsLetInWithoutAControlPlane(t *testing.T) {
	s := newSite(t)
	s.refuse(errors.New("nobody answers"))
	k := s.open()
	stop := s.run(k)
	if _, err := k.Known("db-1.m1", own); !errors.Is(err, ErrAwaited) {
		t.Fatalf("before it is told: %v", err)
	}
	testkit.Eventually(t, 10*time.Second, func() error {
		if why := k.Why("db-1.m1"); !strings.Contains(why, "nobody answers") {
			return fmt.Errorf("why: %q", why)
		}
		return nil
	})
	s.refuse(nil)
	if holder := <-s.told; holder != "db-1.m1" {
		t.Errorf("told %s", holder)
	}
	first, err := k.Known("db-1.m1", own)
	if err != nil || len(first) != 1 || first[0].Passphrase != "of db-1" || first[0].Path != "/db-1" || first[0].Bucket != "main" || first[0].Key == "" || first[0].Secret == "" {
		t.Fatalf("%+v, %v", first, err)
	}
	stop()
	s.refuse(errors.New("nobody answers"))
	k = s.open()
	s.run(k)
	again, err := k.Known("db-1.m1", own)
	if err != nil || len(again) != 1 || again[0] != first[0] {
		t.Fatalf("%+v, %v; before: %+v", again, err, first)
	}
	testkit.Eventually(t, 10*time.Second, func() error {
		_, err := k.Store("main")
		return err
	})
	err = filepath.WalkDir(filepath.Join(s.agent.Dir, ownDir), func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if info, err := entry.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
		return nil
	})
	s.must(err)
}

// TestTheKeyOfAJobEndsWithTheAgent: the job may be gone when the next one comes, and then nobody
// dismisses its key.
func TestTheKeyOfAJobEndsWithTheAgent(t *testing.T) {
	s := newSite(t)
	k := s.open()
	stop := s.run(k)
	var old []string
	for _, name := range []string{"job/op-1/0", "db-1.m1" + "/restore"} {
		all, err := k.Admit(t.Context(), name, own)
		s.must(err)
		old = append(old, all[0].Key)
	}
	stop()
	k = s.open()
	for name := range k.holders {
		t.Errorf("%s is let in", name)
	}
	if left, err := os.ReadDir(k.dir(keysDir)); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	s.run(k)
	anew, err := k.Admit(t.Context(), "job/op-1/0", own)
	if err != nil || anew[0].Key == old[0] {
		t.Errorf("%+v, %v", anew, err)
	}
}

// TestEachHasAKeyOfItsOwn, which opens nothing once it is dismissed.
func TestEachHasAKeyOfItsOwn(t *testing.T) {
	s := newSite(t)
	k := s.open()
	s.run(k)
	one, err := k.Admit(t.Context(), "db-1.m1", own)
	s.must(err)
	other, err := k.Admit(t.Context(), "job/restore", Part{Database: "db-1", Repository: "main", ReadOnly: true}, Part{Database: "db-2", Repository: "main"})
	s.must(err)
	if len(other) != 2 || other[0].Key == one[0].Key || other[0].Secret == one[0].Secret || other[0].Key != other[1].Key || other[1].Passphrase != "of db-2" {
		t.Errorf("%+v and %+v", one, other)
	}
	// The parts may change, and the key stays.
	changed, err := k.Admit(t.Context(), "job/restore", Part{Database: "db-2", Repository: "main"})
	if err != nil || len(changed) != 1 || changed[0].Key != other[0].Key {
		t.Errorf("%+v, %v", changed, err)
	}
	s.must(k.Dismiss("job/restore"))
	s.must(k.Dismiss("job/restore"))
	anew, err := k.Admit(t.Context(), "job/restore", Part{Database: "db-2", Repository: "main"})
	if err != nil || anew[0].Key == other[0].Key {
		t.Errorf("%+v, %v", anew, err)
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	answer, err := client.Get(one[0].Endpoint + "/main/db-1/secret")
	s.must(err)
	answer.Body.Close()
	if answer.StatusCode != http.StatusForbidden {
		t.Errorf("without a key: %s", answer.Status)
	}
}

// TestARefusalIsTold, and not waited out.
func TestARefusalIsTold(t *testing.T) {
	s := newSite(t)
	s.refuse(fmt.Errorf("no work there: %w", hostapi.ErrRefused))
	k := s.open()
	s.run(k)
	if _, err := k.Admit(t.Context(), "job/1", own); !errors.Is(err, hostapi.ErrRefused) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	s.refuse(errors.New("nobody answers"))
	if _, err := k.Admit(ctx, "job/2", own); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// TestWhatIsWrongSaysWhatToDo about a repository.
func TestWhatIsWrongSaysWhatToDo(t *testing.T) {
	s := newSite(t)
	k := s.open()
	s.run(k)
	_, err := k.Admit(t.Context(), "db-1.m1", own)
	s.must(err)
	for _, c := range []struct {
		err  error
		says string
	}{
		{store.ErrFull, "make room"}, {store.ErrReadOnly, "mount it for writing"}, {store.ErrAway, "the directory " + s.repository + " is not the repository: mount it on this host"},
	} {
		k.fails("main", fmt.Errorf("put: %w", c.err))
		if why := k.Why("db-1.m1"); !strings.Contains(why, c.says) || !strings.Contains(why, "repository main") {
			t.Errorf("%v: %q", c.err, why)
		}
	}
}

// TestAnUnmountedRepositoryIsOpenedLater.
func TestAnUnmountedRepositoryIsOpenedLater(t *testing.T) {
	s := newSite(t)
	away := s.repository + ".away"
	s.must(os.Rename(s.repository, away))
	s.must(os.Mkdir(s.repository, 0o700))
	k := s.open()
	s.run(k)
	_, err := k.Admit(t.Context(), "db-1.m1", own)
	s.must(err)
	testkit.Eventually(t, 10*time.Second, func() error {
		if why := k.Why("db-1.m1"); !strings.Contains(why, "mount it on this host") {
			return fmt.Errorf("why: %q", why)
		}
		return nil
	})
	if _, err := k.Store("main"); !errors.Is(err, store.ErrAway) {
		t.Errorf("%v", err)
	}
	s.must(os.Remove(s.repository))
	s.must(os.Rename(away, s.repository))
	testkit.Eventually(t, 20*time.Second, func() error {
		_, err := k.Store("main")
		return err
	})
	if why := k.Why("db-1.m1"); why != "" {
		t.Errorf("why: %q", why)
	}
}
