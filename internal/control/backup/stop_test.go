package backup

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	step "howdah/internal/control/operation"
	"howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/model/regain"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/testkit"
	"howdah/internal/testkit/etcdtest"
)

// brake stops a control plane at one of the points at which it deals with hosts, and has it go on
// when it is told to. Another one leads meanwhile.
type brake struct {
	at int

	mu      sync.Mutex
	n       int
	stopped chan struct{}
	goesOn  chan struct{}
}

// stopping is what the control plane that is stopped knows of hosts.
type stopping struct {
	*yard
	b *brake
}

func (s stopping) Ask(j step.Job) []state.Op {
	s.b.point()
	return s.yard.Ask(j)
}

func (s stopping) Forget(host, name string) []state.Op {
	s.b.point()
	return s.yard.Forget(host, name)
}

func (s stopping) Look(ctx context.Context, host, name string) (step.JobReport, error) {
	s.b.point()
	return s.yard.Look(context.WithoutCancel(ctx), host, name)
}

func (b *brake) point() {
	b.mu.Lock()
	b.n++
	here := b.n == b.at
	b.mu.Unlock()
	if here {
		close(b.stopped)
		<-b.goesOn
	}
}

// TestStoppedAtEachPoint: a control plane that stands still while another one leads, at whatever
// point, does nothing twice when it goes on, and leaves nothing half done.
func TestStoppedAtEachPoint(t *testing.T) {
	for name, c := range map[string]struct {
		begin func(s *site, i spec.Instance) string
		check func(s *site, i spec.Instance, id string) error
	}{
		"a snapshot": {
			func(s *site, i spec.Instance) string { return s.snapshot(i, "mine", backup.Take, nil) },
			func(s *site, i spec.Instance, id string) error { return s.once(i, id, operation.Done) },
		},
		"a final snapshot": {
			func(s *site, i spec.Instance) string {
				i.Final = "mine"
				s.put(state.Put(state.Instance(shop.Account, shop.Region, "orders"), i))
				return s.snapshot(i, "mine", backup.Final, nil)
			},
			func(s *site, i spec.Instance, id string) error {
				now, err := state.Load[spec.Instance](s.cache, state.Instance(shop.Account, shop.Region, "orders"))
				if err != nil || !now.Value.Deleting || now.Value.Generation != 2 {
					return fmt.Errorf("%+v, %w", now.Value, err)
				}
				return s.once(i, id, operation.Done)
			},
		},
		"a snapshot that fails": {
			func(s *site, i spec.Instance) string {
				s.yard.set(func() { s.yard.fails["zone-a"] = "!no room" })
				return s.snapshot(i, "mine", backup.Take, nil)
			},
			func(s *site, i spec.Instance, id string) error {
				if r := s.operation(id); r.State != operation.Failed || s.shot("mine").State != backup.Failed || s.events("orders") != "014" {
					return fmt.Errorf("%+v, events %q", r, s.events("orders"))
				}
				return nil
			},
		},
		"Tidy after the home was restored": {
			func(s *site, i spec.Instance) string {
				s.yard.set(func() {
					for _, o := range []string{"snap-a-000000000000", "snap-b-000000000000", "auto-c"} {
						s.yard.backUp(backup.BackupJob{Database: i.ResourceID, Repository: "main", Operation: o})
					}
				})
				s.put(state.Put(state.Restored(), regain.Home{ID: "r1", At: time.Now()}))
				r, err := operation.New("tidy", backup.Tidy, aboutOf(i), backup.TidyArgs{Repository: "main"}, time.Now())
				if err != nil {
					s.t.Fatal(err)
				}
				s.put(state.Put(state.Operation("tidy"), r))
				return "tidy"
			},
			func(s *site, i spec.Instance, id string) error {
				if r := s.operation(id); r.State != operation.Done || len(s.yard.stored[i.ResourceID]) != 3 || len(s.records(i.ResourceID)) != 3 {
					return fmt.Errorf("%+v, there are %+v", r, s.yard.stored)
				}
				if names := s.cache.Names(state.SnapshotRoot); len(names) != 2 || s.shot("a").State != backup.Available {
					return fmt.Errorf("snapshots %q", names)
				}
				return nil
			},
		},
		"Tidy": {
			func(s *site, i spec.Instance) string {
				s.yard.set(func() { s.yard.backUp(backup.BackupJob{Database: i.ResourceID, Repository: "main", Operation: "gone"}) })
				s.put(state.Put(state.Backup(i.ResourceID, "main", "B001"), s.yard.stored[i.ResourceID][0]))
				s.put(state.Delete(state.Instance(shop.Account, shop.Region, "orders")), state.Delete(state.Layout(i.ResourceID)))
				r, err := operation.New("tidy", backup.Tidy, aboutOf(i), backup.TidyArgs{Repository: "main"}, time.Now())
				if err != nil {
					s.t.Fatal(err)
				}
				s.put(state.Put(state.Operation("tidy"), r))
				return "tidy"
			},
			func(s *site, i spec.Instance, id string) error {
				left := append(s.cache.Keys(state.BackupRoot), s.cache.Keys(state.BackupPartRoot)...)
				if r := s.operation(id); r.State != operation.Done || len(left) > 0 || len(s.yard.stored[i.ResourceID]) > 0 {
					return fmt.Errorf("%+v, left %q", r, left)
				}
				return nil
			},
		},
	} {
		points := 1
		for at := 1; at <= points; at++ {
			points = stopAt(t, name, at, c.begin, c.check)
		}
		if points < 3 {
			t.Errorf("%s: only %d points", name, points)
		}
	}
}

// once fails unless a snapshot was made once.
func (s *site) once(i spec.Instance, id string, want operation.State) error {
	r, all, got := s.operation(id), s.records(i.ResourceID), s.shot("mine")
	if r.State != want || len(all) != 1 || got.State != backup.Available || got.Label != all[0].Label || s.events("orders") != "0002" || s.events("mine") != "0042" {
		return fmt.Errorf("%+v, backups %+v, snapshot %+v, events %q, %q", r, all, got, s.events("orders"), s.events("mine"))
	}
	return nil
}

// stopAt stops a control plane at one point. It returns how many there are.
func stopAt(t *testing.T, name string, at int, begin func(*site, spec.Instance) string, check func(*site, spec.Instance, string) error) (points int) {
	t.Helper()
	s := newSite(t)
	b := &brake{at: at, stopped: make(chan struct{}), goesOn: make(chan struct{})}
	var first *step.Runner
	etcdtest.Cache(t, s.store, func(c *state.Cache) {
		old := New(Config{Store: s.store, Cache: c, Hosts: stopping{s.yard, b}, Log: slog.New(slog.DiscardHandler)})
		old.pace = s.backups.pace
		first = step.New(step.Config{Store: s.store, Cache: c, Name: "s0", Definitions: old.Definitions(), Log: slog.New(slog.DiscardHandler)})
	})
	i := s.instance("orders", "zone-a", nil)
	s.serve(i.ResourceID, "zone-a", member.Archived{})
	id := begin(s, i)
	stop := s.lead(first, s.elect())
	testkit.Eventually(t, 20*time.Second, func() error {
		select {
		case <-b.stopped:
			return nil
		default:
		}
		if r := s.operation(id); !r.State.Ended() {
			return fmt.Errorf("%s, stopped at %d: %+v", name, at, r)
		}
		return nil
	})
	s.lead(s.runner, s.elect())
	testkit.Eventually(t, 20*time.Second, func() error {
		if r := s.operation(id); !r.State.Ended() {
			return fmt.Errorf("%s, stopped at %d: %+v", name, at, r)
		}
		return nil
	})
	close(b.goesOn)
	stop()
	if err := s.backups.fresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := check(s, i, id); err != nil {
		t.Errorf("%s, stopped at %d: %v", name, at, err)
	}
	s.clean(i.ResourceID)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.n >= at {
		return at + 1 // it may have more
	}
	return b.n
}
