package fault

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/testkit/patience"
	"howdah/internal/testkit/rig"
)

// login makes one connection, and asks for one row.
func login(ctx context.Context, config *pgx.ConnConfig) error {
	ctx, cancel := context.WithTimeout(ctx, patience.For(5*time.Second))
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "SELECT 1")
	return err
}

// honest asks for the status until it is available. Then a login has to work.
func (s *story) honest(name string, config *pgx.ConnConfig) {
	s.Helper()
	s.eventually(time.Minute, func() error {
		i, err := s.rig.Instance(s.Context(), name)
		if err == nil && *i.DBInstanceStatus != "available" {
			err = fmt.Errorf("%s is %s", name, *i.DBInstanceStatus)
		}
		return err
	})
	if err := login(s.Context(), config); err != nil {
		s.Fatalf("%s is available, and a login fails: %v", name, err)
	}
}

// Everything is killed at once, as by a power cut. What starts again finds a state which says that
// all of it serves: agents' reports, living hosts, edges.
func TestAStatusAfterEverythingWasKilled(t *testing.T) {
	s := begin(t, nil)
	s.given("orders", false)
	config, err := s.rig.Config(s.Context(), "orders")
	s.must(err, "find the endpoint")
	for round, first := range [][]string{
		{"serve"}, // it alone, for as long as it may take to hear of the others
		{"serve", "edge"},
		{"edge", "agent-a", "agent-b", "agent-c", "serve"},
	} {
		s.honest("orders", config)
		for _, zone := range rig.Zones {
			s.must(s.rig.LoseHost(zone), "lose zone "+zone)
		}
		s.rig.KillPart("edge")
		s.rig.KillPart("serve")
		t.Logf("round %d: first of all %v", round, first)
		started := map[string]bool{}
		for _, part := range first {
			s.must(s.rig.StartPart(part), "start "+part)
			started[part] = true
		}
		if len(first) < len(s.rig.Parts()) {
			s.eventually(30*time.Second, func() error {
				i, err := s.rig.Instance(s.Context(), "orders")
				if err == nil && *i.DBInstanceStatus == "available" {
					t.Fatal("available, and nothing of it runs")
				}
				return err
			})
		}
		for _, part := range s.rig.Parts() {
			if !started[part] {
				s.must(s.rig.StartPart(part), "start "+part)
			}
		}
		s.honest("orders", config)
	}
}

// A control plane that dies alone, and comes back, never says that a database is not there.
func TestAControlPlaneAloneIsStartedAgain(t *testing.T) {
	s := begin(t, nil)
	s.given("orders", false)
	s.rig.KillPart("serve")
	s.must(s.rig.StartPart("serve"), "start serve")
	answers := 0
	s.eventually(30*time.Second, func() error {
		i, err := s.rig.Instance(s.Context(), "orders")
		if err != nil {
			return err
		}
		answers++
		if *i.DBInstanceStatus != "available" {
			t.Fatalf("answer %d: orders is %s", answers, *i.DBInstanceStatus)
		}
		if answers < 50 {
			return fmt.Errorf("%d answers", answers)
		}
		return nil
	})
}
