package server

import (
	"context"
	"time"
)

// RunWindows applies modifications that wait for the maintenance window. It runs
// in the control plane that leads, until ctx ends.
func (s *Server) RunWindows(ctx context.Context) error {
	timer := time.NewTicker(10 * time.Second)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
	}
}
