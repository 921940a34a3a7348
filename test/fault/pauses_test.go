package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"howdah/api/rds"
	"howdah/internal/testkit/depth"
	"howdah/internal/testkit/pgversion"
	"howdah/internal/testkit/rig"
)

// pausesVariable says how long the story goes on, as 20m. make soak sets it.
const pausesVariable = "HOWDAH_TEST_PAUSES"

// Any process may stand still for a moment, as on a machine that is short of CPU time or whose disk
// stalls. However many do, each failover that is asked for comes to its end, with a changed
// parameter that a restart takes over, and nothing is lost.
func TestFailoversAmongPauses(t *testing.T) {
	depth.Deep(t)
	length := 20 * time.Second
	if text := os.Getenv(pausesVariable); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatalf("%s: %v", pausesVariable, err)
		}
	}
	s := begin(t, nil)
	id := s.given("orders", true)
	s.ownParameters("orders", "settings")
	w := s.writing("orders")
	stop := s.pauses(id)
	rounds := 0
	for began := time.Now(); time.Since(began) < length; rounds++ {
		connections := 100 + rounds%100
		s.asks(60*time.Second, "ModifyDBParameterGroup", &rds.ModifyDBParameterGroupMessage{
			DBParameterGroupName: new("settings"), Parameters: []rds.Parameter{{
				ParameterName: new("max_connections"), ParameterValue: new(fmt.Sprint(connections)), ApplyMethod: new("pending-reboot"),
			}},
		}, &rds.DBParameterGroupNameMessage{})
		s.asks(90*time.Second, "RebootDBInstance", &rds.RebootDBInstanceMessage{
			DBInstanceIdentifier: new("orders"), ForceFailover: new(true),
		}, &rds.RebootDBInstanceResult{})
		s.must(s.rig.WaitStatus(s.Context(), "orders", "available", 60*time.Second), "available after a failover")
		s.eventually(60*time.Second, func() error {
			got, err := s.query("orders", "SHOW max_connections")
			if err == nil && got != fmt.Sprint(connections) {
				err = fmt.Errorf("max_connections is %s, want %d", got, connections)
			}
			return err
		})
	}
	t.Logf("%d failovers, %d pauses", rounds, stop())
	s.eventually(60*time.Second, func() error { return s.rig.InSync(s.Context(), id, 1) })
	w.works(10 * time.Second)
	w.nothingLost()
}

// ownParameters gives an instance a parameter group of its own.
func (s *story) ownParameters(instance, group string) {
	s.Helper()
	s.asks(30*time.Second, "CreateDBParameterGroup", &rds.CreateDBParameterGroupMessage{
		DBParameterGroupName: &group, DBParameterGroupFamily: new(fmt.Sprintf("postgres%d", pgversion.Major())), Description: new("of a story"),
	}, &rds.CreateDBParameterGroupResult{})
	s.asks(30*time.Second, "ModifyDBInstance", &rds.ModifyDBInstanceMessage{
		DBInstanceIdentifier: &instance, DBParameterGroupName: &group, ApplyImmediately: new(true),
	}, &rds.ModifyDBInstanceResult{})
	s.must(s.rig.WaitStatus(s.Context(), instance, "available", 30*time.Second), "available with its own parameters")
}

// asks calls an action until it is not refused. No failover is accepted while no standby is in
// sync.
func (s *story) asks(within time.Duration, action string, in, out any) {
	s.Helper()
	s.eventually(within, func() error { return s.rig.Call(s.Context(), action, in, out) })
}

// pauses makes processes of a rig stand still, one after the other and two at a time, until it is
// stopped. stop returns how often.
func (s *story) pauses(database string) (stop func() int) {
	ctx, cancel := context.WithCancel(s.Context())
	var done sync.WaitGroup
	var mu sync.Mutex
	count := 0
	for range 2 {
		done.Go(func() {
			for passes(ctx, 500*time.Millisecond) {
				all, err := s.rig.Processes(ctx, database)
				if err != nil {
					continue // etcd stands still, too
				}
				pause(ctx, all[rand.IntN(len(all))])
				mu.Lock()
				count++
				mu.Unlock()
			}
		})
	}
	s.Cleanup(func() { cancel(); done.Wait() })
	return func() int { cancel(); done.Wait(); return count }
}

// pause makes one process stand still for up to two seconds. If it ended meanwhile, there is nobody
// to tell.
func pause(ctx context.Context, p rig.Process) {
	_ = p.Signal(syscall.SIGSTOP)
	passes(ctx, 2*time.Second)
	_ = p.Signal(syscall.SIGCONT)
}

// passes lets up to this much time pass. It returns false once ctx has ended.
func passes(ctx context.Context, most time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(rand.N(most)):
		return true
	}
}
