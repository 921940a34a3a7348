package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"howdah/api/rds"
	"howdah/internal/identity/home"
)

// bench is one run of the program.
type bench struct {
	calls, changes, users int
	busy                  float64
	detection             time.Duration
	profiles              string
}

// result is what was measured with one number of instances.
type result struct {
	size, hosts int
	values      map[string]string
}

// site is a control plane with its fleet.
type site struct {
	*bench
	size   int
	home   *home.Home
	caller *caller
	plane  *process
	hosts  *hosts
	ids    []string // resource ids of the instances, by number

	mu      sync.Mutex
	waiting map[string]chan struct{} // by scope, guarded by mu
}

// measure takes all figures for one number of instances.
func (b *bench) measure(ctx context.Context, size int) (r result, err error) {
	dir, err := os.MkdirTemp("", "bench-scale-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	h, err := home.Ensure(filepath.Join(dir, "home"), home.Options{Disposable: true})
	if err != nil {
		return r, err
	}
	s := &site{bench: b, size: size, home: h, ids: make([]string, size), waiting: map[string]chan struct{}{}}
	r = result{size: size, hosts: (size + 9) / 10, values: map[string]string{}}
	if s.caller, err = newCaller(h); err != nil {
		return r, err
	}
	if s.plane, err = start(ctx, h.Dir, b.detection); err != nil {
		return r, err
	}
	defer func() { s.plane.stop() }()
	if s.hosts, err = startHosts(h.Dir, r.hosts, b.busy, s.told); err != nil {
		return r, err
	}
	defer s.hosts.stop()
	for _, step := range []struct {
		name string
		do   func(context.Context, map[string]string) error
	}{
		{"create", s.create}, {"rest", s.rest}, {"pages", s.pages}, {"single", s.single}, {"changes", s.change},
		{"memory", s.memory}, {"restart", s.restart},
	} {
		fmt.Fprintf(os.Stderr, "== %d instances: %s\n", size, step.name)
		err := s.plane.profile(b.profiles, step.name, size, func() error { return step.do(ctx, r.values) })
		if err != nil {
			return r, fmt.Errorf("%d instances: %s: %w", size, step.name, err)
		}
	}
	return r, nil
}

func name(n int) string { return fmt.Sprintf("db-%05d", n) }

func ptr[T any](v T) *T { return &v }

// create makes all instances as some users at a time would, every tenth with a standby, and waits
// until they serve.
func (s *site) create(ctx context.Context, values map[string]string) error {
	began := time.Now()
	group, calls := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range s.users {
		group.Go(func() error {
			for n := int(next.Add(1)) - 1; n < s.size; n = int(next.Add(1)) - 1 {
				text, err := s.createOne(calls, n)
				if err != nil {
					return err
				}
				s.ids[n] = element(text, "DbiResourceId")
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	asked := time.Since(began)
	err := until(ctx, 20*time.Minute, func() bool { return int(s.hosts.serving.Load()) == s.size })
	if err == nil {
		err = until(ctx, time.Minute, func() bool { return s.available(ctx, name(s.size-1)) })
	}
	values["create, calls per second"] = fmt.Sprintf("%.0f", float64(s.size)/asked.Seconds())
	values["create, all serve after"] = seconds(time.Since(began))
	return err
}

// createOne tries again as clients do.
func (s *site) createOne(ctx context.Context, n int) (text string, err error) {
	err = errors.Join(until(ctx, time.Minute, func() bool {
		text, _, err = s.caller.call(ctx, "CreateDBInstance", &rds.CreateDBInstanceMessage{
			DBInstanceIdentifier: ptr(name(n)), DBInstanceClass: ptr("db.t3.small"), Engine: ptr("postgres"),
			MasterUsername: ptr("master"), MasterUserPassword: ptr("long-enough"), AllocatedStorage: ptr(int32(20)), MultiAZ: ptr(n%10 == 0),
			BackupRetentionPeriod: ptr(int32(0)),
		})
		// No host was heard yet, or the machine is too busy. SDKs try again, too.
		return err == nil || !strings.Contains(err.Error(), "InsufficientDBInstanceCapacity") && !strings.Contains(err.Error(), "ServiceUnavailable")
	}), err)
	if err != nil && strings.Contains(err.Error(), "AlreadyExists") { // an attempt before was not answered in time
		text, _, err = s.caller.call(ctx, "DescribeDBInstances", &rds.DescribeDBInstancesMessage{DBInstanceIdentifier: ptr(name(n))})
	}
	return text, err
}

func (s *site) available(ctx context.Context, name string) bool {
	text, _, err := s.caller.call(ctx, "DescribeDBInstances", &rds.DescribeDBInstancesMessage{DBInstanceIdentifier: &name})
	return err == nil && element(text, "DBInstanceStatus") == "available"
}

// rest measures what the control plane needs while nobody asks it for anything.
func (s *site) rest(ctx context.Context, values map[string]string) error {
	if err := s.hosts.write(); err != nil || !pause(ctx, 5*time.Second) {
		return errors.Join(err, ctx.Err())
	}
	if _, err := s.plane.seen(); err != nil { // forget the rounds so far
		return err
	}
	before, err := s.plane.cpu()
	if err != nil || !pause(ctx, 10*time.Second) {
		return errors.Join(err, ctx.Err())
	}
	after, err := s.plane.cpu()
	if err != nil {
		return err
	}
	values["at rest, share of a CPU"] = fmt.Sprintf("%.0f %%", 100*float64(after-before)/float64(10*time.Second))
	seen, err := s.plane.seen()
	rounds(values, "at rest, round", seen.Rounds)
	return err
}

// pages walks over all instances in pages of 100, again and again.
func (s *site) pages(ctx context.Context, values map[string]string) error {
	var took []time.Duration
	marker := ""
	for range s.calls {
		in := &rds.DescribeDBInstancesMessage{MaxRecords: ptr(int32(100))}
		if marker != "" {
			in.Marker = &marker
		}
		text, t, err := s.caller.call(ctx, "DescribeDBInstances", in)
		if err != nil {
			return err
		}
		marker = element(text, "Marker")
		took = append(took, t)
	}
	spread(values, "DescribeDBInstances, page of 100", took)
	return nil
}

// single describes one instance by its name.
func (s *site) single(ctx context.Context, values map[string]string) error {
	var took []time.Duration
	for range s.calls {
		_, t, err := s.caller.call(ctx, "DescribeDBInstances", &rds.DescribeDBInstancesMessage{DBInstanceIdentifier: ptr(name(rand.N(s.size)))})
		if err != nil {
			return err
		}
		took = append(took, t)
	}
	spread(values, "DescribeDBInstances, one by name", took)
	return nil
}

// change modifies one instance after the other, and waits until its host was told.
func (s *site) change(ctx context.Context, values map[string]string) error {
	var calls, reached []time.Duration
	if _, err := s.plane.seen(); err != nil {
		return err
	}
	for _, n := range rand.Perm(s.size)[:min(s.changes, s.size)] {
		told := s.await(s.ids[n])
		began := time.Now()
		_, took, err := s.caller.call(ctx, "ModifyDBInstance", &rds.ModifyDBInstanceMessage{
			DBInstanceIdentifier: ptr(name(n)), MasterUserPassword: ptr("another-password"), ApplyImmediately: ptr(true),
		})
		if err != nil {
			return err
		}
		calls = append(calls, took)
		select {
		case <-told:
			reached = append(reached, time.Since(began))
		case <-time.After(time.Minute):
			return fmt.Errorf("the change of %s did not reach its host within a minute", name(n))
		}
	}
	spread(values, "ModifyDBInstance", calls)
	spread(values, "a change reaches its host", reached)
	seen, err := s.plane.seen()
	rounds(values, "with changes, round", seen.Rounds)
	return err
}

// await returns a channel on which a host tells that it was given the second password.
func (s *site) await(scope string) <-chan struct{} {
	told := make(chan struct{}, 1)
	s.mu.Lock()
	s.waiting[scope] = told
	s.mu.Unlock()
	return told
}

func (s *site) told(scope string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if told := s.waiting[scope]; told != nil {
		told <- struct{}{}
		delete(s.waiting, scope)
	}
}

func (s *site) memory(_ context.Context, values map[string]string) error {
	now, most, err := s.plane.memory()
	values["memory (RSS), now"] = fmt.Sprintf("%d MiB", now>>20)
	values["memory (RSS), at most"] = fmt.Sprintf("%d MiB", most>>20)
	if err == nil && s.profiles != "" {
		err = s.plane.save(s.profiles, fmt.Sprintf("heap-%d", s.size), "heap")
	}
	return err
}

// restart ends the control plane and starts it again on the same state.
func (s *site) restart(ctx context.Context, values map[string]string) error {
	s.plane.stop()
	plane, err := start(ctx, s.home.Dir, s.detection)
	if err != nil {
		return err
	}
	s.plane = plane
	seen, err := plane.seen()
	values["start, leads after"] = seconds(seen.Leading)
	values["start, looked at all after"] = seconds(seen.Ready)
	if err != nil {
		return err
	}
	now, _, err := plane.memory()
	values["start, memory (RSS)"] = fmt.Sprintf("%d MiB", now>>20)
	return err
}

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
