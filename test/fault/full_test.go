package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/admin"
	"howdah/internal/admin/client"
	"howdah/internal/testkit/rig"
)

// etcd is filled until it takes no writes, and PostgreSQL of the primary is killed at that moment.
// etcd mends itself, and the standby takes over.
func TestEtcdThatIsFull(t *testing.T) {
	s := begin(t, func(o *rig.Options) { o.Serve = append(o.Serve, "--etcd-quota", "16") })
	id := s.given("orders", true)
	w := s.writing("orders")
	old := s.leader(id)
	stop := s.fillEtcd("/howdah/attempt/filler")
	s.must(old.KillPostgres(), "kill PostgreSQL of "+old.Name)
	stop()
	w.works(15 * time.Second)
	s.eventually(30*time.Second, func() error { return s.rig.InSync(s.Context(), id, 1) })
	w.nothingLost()
	// What was written since the alarm ended is kept as history for minutes, unless somebody asks
	// for room.
	var done admin.EtcdAnswer
	s.must(s.ask(admin.VerbEtcd, admin.EtcdRequest{Do: admin.EtcdMend}, &done), "mend etcd")
	s.eventually(20*time.Second, s.isWell)
}

// What fills etcd is stored for good. Status names it, and nothing is created. What serves is left
// alone, even if its Patroni dies. Once there is room, a failover works.
func TestEtcdThatIsFullForGood(t *testing.T) {
	s := begin(t, func(o *rig.Options) { o.Serve = append(o.Serve, "--etcd-quota", "16") })
	id := s.given("orders", true)
	w := s.writing("orders")
	old := s.leader(id)
	s.fillForGood()
	s.eventually(20*time.Second, func() error { return s.hasProblem("etcd-full") })
	if err := s.rig.Create(s.Context(), "more", false); err == nil || !strings.Contains(err.Error(), "howdah etcd mend") {
		t.Errorf("a creation while etcd is full: %v", err)
	}
	s.must(old.KillPatroni(), "kill Patroni of "+old.Name)
	w.works(10 * time.Second)
	if now := s.leader(id); now.Name != old.Name {
		t.Errorf("%s leads in place of %s", now.Name, old.Name)
	}
	var done admin.EtcdAnswer
	s.must(s.ask(admin.VerbEtcd, admin.EtcdRequest{Do: admin.EtcdMend}, &done), "mend what cannot be mended")
	if !done.Members[0].Full {
		t.Errorf("room was made: %q", done.Deeds)
	}
	_, err := s.rig.Store.Client.Delete(s.Context(), "/howdah/attempt/filler", clientv3.WithPrefix())
	s.must(err, "delete what fills etcd")
	s.eventually(30*time.Second, s.isWell)
	leads := s.leader(id)
	s.must(leads.KillPostgres(), "kill PostgreSQL of "+leads.Name)
	w.works(15 * time.Second)
	w.nothingLost()
}

// fillForGood stores more and more, until etcd has taken nothing for two seconds. Then etcd can
// gain nothing more.
func (s *story) fillForGood() {
	s.Helper()
	value := strings.Repeat("x", 256<<10)
	var since time.Time
	for n := 0; since.IsZero() || time.Since(since) < 2*time.Second; {
		_, err := s.rig.Store.Client.Put(s.Context(), fmt.Sprintf("/howdah/attempt/filler-%03d", n), value)
		switch {
		case err == nil:
			n, since = n+1, time.Time{}
		case !errors.Is(err, rpctypes.ErrNoSpace):
			s.must(err, "fill etcd")
		case since.IsZero():
			since = time.Now()
		}
	}
}

// fillEtcd writes one key until etcd takes no more. Then it goes on writing whatever etcd takes,
// until it is stopped.
func (s *story) fillEtcd(key string) (stop func()) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	full := make(chan struct{})
	var once sync.Once
	var done sync.WaitGroup
	value := strings.Repeat("x", 512<<10)
	done.Go(func() {
		for ctx.Err() == nil {
			if _, err := s.rig.Store.Client.Put(ctx, key, value); errors.Is(err, rpctypes.ErrNoSpace) {
				once.Do(func() { close(full) })
			}
		}
	})
	stop = func() { cancel(); done.Wait() }
	s.Cleanup(stop)
	select {
	case <-full:
	case <-time.After(time.Minute):
		s.Fatal("etcd was never full")
	}
	return stop
}

// ask calls a verb of the admin API.
func (s *story) ask(verb string, in, out any) error {
	api, err := client.FromHome(s.rig.Home)
	if err != nil {
		return err
	}
	return api.Admin(s.Context(), verb, in, out)
}

func (s *story) problems() ([]string, error) {
	var status admin.Status
	err := s.ask(admin.VerbStatus, admin.Nothing{}, &status)
	var all []string
	for _, p := range status.Problems {
		all = append(all, p.Code+": "+p.Text)
	}
	return all, err
}

func (s *story) isWell() error {
	all, err := s.problems()
	if err == nil && len(all) > 0 {
		err = fmt.Errorf("%q", all)
	}
	return err
}

func (s *story) hasProblem(code string) error {
	all, err := s.problems()
	if err == nil && !slices.ContainsFunc(all, func(text string) bool { return strings.HasPrefix(text, code+": ") }) {
		err = fmt.Errorf("%q", all)
	}
	return err
}
