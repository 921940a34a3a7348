// Package agenttest opens agents that run nothing, for tests of what kinds of workloads are made
// of.
package agenttest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"howdah/internal/host/agent"
	"howdah/internal/host/job"
	"howdah/internal/host/proc"
	"howdah/internal/testkit/hosttest"
	"howdah/internal/testkit/patience"
)

// Idle is a kind whose members have no workload.
type Idle struct {
	agent.Kind
	Taken []string // see Dirs
}

// New answers none.
func (Idle) New(*agent.Member) agent.Workload { return nil }

// Dirs are those that are Taken.
func (i Idle) Dirs() []string { return i.Taken }

// Jobs answers none.
func (Idle) Jobs() []job.Kind { return nil }

// Open prepares nothing.
func (Idle) Open(context.Context, *agent.Agent) error { return nil }

// Lonely is an agent that is not open: it has a directory, and nothing else.
func Lonely(t *testing.T) *agent.Agent {
	t.Helper()
	return &agent.Agent{Config: agent.Config{Dir: t.TempDir(), Kind: Idle{}, Log: slog.New(slog.DiscardHandler)}}
}

// Open prepares an agent, which is not run. Directories of its kind may have users (agent.Kind).
// Nothing of its host is left when the test ends.
func Open(s *hosttest.Site, dirs ...string) *agent.Agent {
	s.Helper()
	a, err := agent.New(s.Context(), agent.Config{
		Name: hosttest.Name, Zone: "t", Address: "127.0.0.1", Dir: s.Dir, HomeID: s.HomeID, Version: "test", Kind: Idle{Taken: dirs}, Log: hosttest.Log(),
	})
	s.Must(err)
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience.For(30*time.Second))
		defer cancel()
		ending := agent.Ending{
			HomeID: s.HomeID, Host: hosttest.Name, Dir: s.Dir, Release: func(string) error { return nil },
			Stop: func(context.Context, *proc.Host, *proc.Group, string) error { return nil },
		}
		if err := ending.Run(ctx); err != nil {
			s.Error(err)
		}
	})
	return a
}
