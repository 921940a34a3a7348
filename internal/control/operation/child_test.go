package operation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"howdah/internal/identity/certs"
	"howdah/internal/model/operation"
	"howdah/internal/state"
	"howdah/internal/state/etcd"
)

// TestMain runs a control plane's operations where a test has started this program as one.
func TestMain(m *testing.M) {
	if text := os.Getenv("HOWDAH_TEST_OPERATION"); text != "" {
		if err := child(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// order is what a child is told.
type order struct {
	Etcd   []string
	Certs  string
	Op     string
	Shelf  string // directory
	Lead   string // key of the election that it has won, and the revision of that
	Rev    int64
	KillAt int // the point at which it kills itself; 0: none
	StopAt int // the point at which it stops itself
	WishAt int // the point at which it wants the operation to be cancelled
	Fails  string
}

// point counts where a process may die: before and after every record and every effect.
type point struct {
	order
	store *state.Store
	n     atomic.Int64
}

// pass is one point.
func (p *point) pass(what string) {
	n := int(p.n.Add(1))
	fmt.Printf("point %d %s\n", n, what)
	switch n {
	case p.WishAt:
		if _, err := p.store.Commit(context.Background(), state.Put(state.OperationCancel(p.Op), operation.Wish{By: "KEY", At: time.Now()})); err != nil {
			fmt.Println(err)
		}
	case p.KillAt:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		time.Sleep(time.Minute)
	case p.StopAt:
		// To this very thread, which does not go on for a moment then.
		runtime.LockOSThread()
		_ = unix.Tgkill(os.Getpid(), unix.Gettid(), syscall.SIGSTOP)
		runtime.UnlockOSThread()
	}
}

// mined is a ledger with points around each record.
type mined struct {
	ledger
	*point
}

func (m mined) write(ctx context.Context, r operation.Record, revision int64, ops ...state.Op) (int64, error) {
	m.pass("before the record " + r.Step)
	at, err := m.ledger.write(ctx, r, revision, ops...)
	m.pass(fmt.Sprintf("after the record %s: %v", r.Step, err))
	return at, err
}

func (m mined) prove(ctx context.Context, id string, revision int64) error {
	err := m.ledger.prove(ctx, id, revision)
	m.pass(fmt.Sprintf("after the proof: %v", err))
	return err
}

// child drives one operation, as a control plane that leads does, and says how it ended.
func child(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	pair, err := certs.Load(o.Certs)
	if err != nil {
		return err
	}
	client, err := etcd.Dial(ctx, o.Etcd, pair)
	if err != nil {
		return err
	}
	defer client.Close()
	p := &point{order: o, store: &state.Store{Client: client}}
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelDebug}))
	cache := state.NewCache(client, log, state.OperationRoot, state.OperationCancelRoot)
	d := &driver{
		id: o.Op, def: shelving(p), owner: "s-" + strconv.FormatInt(o.Rev, 10), wake: make(chan struct{}, 1), log: log,
		books: mined{books{store: p.store, cache: cache, leading: state.Held(o.Lead, o.Rev)}, p},
	}
	cache.OnChange(func(keys []string) {
		for _, key := range keys {
			if strings.HasPrefix(key, state.OperationCancelRoot) {
				d.poke()
			}
		}
	})
	go func() { _ = cache.Run(ctx) }()
	if err := cache.Loaded(ctx); err != nil {
		return err
	}
	err = d.live(ctx)
	r, _ := d.now()
	fmt.Printf("ended %s: %v\n", r.State, err)
	if errors.Is(err, ErrOvertaken) || errors.Is(err, state.ErrConflict) {
		return nil
	}
	return err
}

const bookCount = 3

// shelving puts books on a shelf outside of etcd, behind a place that is reserved in it, and
// writes into the catalogue at last.
func shelving(p *point) *Definition {
	s := shelf(p.Shelf)
	fails := func(step string) error {
		if p.Fails == step {
			return Final(errors.New("the shelf breaks"))
		}
		return nil
	}
	return &Definition{Kind: shelvingKind, First: "reserve", Steps: map[string]Step{
		"reserve": {
			Do: func(_ context.Context, run *Run) (Outcome, error) {
				p.pass("reserve")
				once := state.Swap(made(run, "place", run.Turn()), 0, true)
				return Next("fill").With(state.Put(made(run, "reserved", 0), true), once), fails("reserve")
			},
			Undo: func(_ context.Context, run *Run) (Outcome, error) {
				p.pass("undo reserve")
				return End().With(state.Delete(made(run, "reserved", 0))), nil
			},
		},
		"fill": {
			Do: func(_ context.Context, run *Run) (Outcome, error) {
				have, err := s.books()
				if err != nil {
					return Outcome{}, err
				}
				if len(have) == bookCount {
					return Next("list"), fails("fill")
				}
				p.pass("before a book")
				if err := s.put(run.Turn(), fmt.Sprintf("book-%d", len(have))); err != nil {
					return Outcome{}, err
				}
				p.pass("after a book")
				run.Progress(int64(len(have)+1), bookCount, "books")
				return Nap(time.Millisecond), nil
			},
			Undo: func(_ context.Context, run *Run) (Outcome, error) {
				p.pass("before the shelf is cleared")
				if err := s.clear(run.Turn()); err != nil {
					return Outcome{}, err
				}
				p.pass("after the shelf was cleared")
				return End(), nil
			},
		},
		"list": {
			Do: func(_ context.Context, run *Run) (Outcome, error) {
				p.pass("list")
				return End().With(state.Put(made(run, "listed", 0), true), state.Swap(made(run, "entry", run.Turn()), 0, true)), fails("list")
			},
		},
	}}
}

var shelvingKind = operation.Kind{Name: "shelve", Within: time.Hour}

// made is the key of something that the operation makes in etcd.
func made(run *Run, what string, turn int64) string { return madeBy(run.Record.ID, what, turn) }

func madeBy(id, what string, turn int64) string {
	return fmt.Sprintf("/test/%s/%s/%d", id, what, turn)
}

// shelf is a directory, as some store that is not etcd: it refuses turns lower than one that it
// has seen, and has every book by its name once.
type shelf string

type shelved struct {
	Turn  int64
	Books []string
	Log   []string
}

var errOldTurn = errors.New("an old turn")

// with changes the shelf, alone.
func (s shelf) with(change func(*shelved) error) error {
	lock, err := os.OpenFile(filepath.Join(string(s), "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	var now shelved
	path := filepath.Join(string(s), "shelf")
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &now)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	refused := change(&now)
	if text, err = json.Marshal(now); err != nil {
		return err
	}
	if err := errors.Join(os.WriteFile(path+".new", text, 0o600), os.Rename(path+".new", path)); err != nil {
		return err
	}
	return refused
}

func (s shelf) books() (books []string, err error) {
	err = s.with(func(now *shelved) error { books = now.Books; return nil })
	return books, err
}

func (s *shelved) admit(turn int64, what string) error {
	if turn < s.Turn {
		s.Log = append(s.Log, fmt.Sprintf("refused %d %s", turn, what))
		return errOldTurn
	}
	s.Turn = turn
	return nil
}

func (s shelf) put(turn int64, book string) error {
	return s.with(func(now *shelved) error {
		if err := now.admit(turn, book); err != nil {
			return err
		}
		for _, b := range now.Books {
			if b == book {
				return nil
			}
		}
		now.Books, now.Log = append(now.Books, book), append(now.Log, fmt.Sprintf("%d %s", turn, book))
		return nil
	})
}

func (s shelf) clear(turn int64) error {
	return s.with(func(now *shelved) error {
		if err := now.admit(turn, "clear"); err != nil {
			return err
		}
		now.Books, now.Log = nil, append(now.Log, fmt.Sprintf("%d clear", turn))
		return nil
	})
}
