package agent

import (
	"path/filepath"

	"howdah/internal/host/proc"
)

// processParent names the group of all members of a host.
func processParent(homeID, host string) string { return "howdah-" + homeID + "-" + host }

// OpenProcesses sees the processes of a host's members, for those who look at a
// host from outside its agent.
func OpenProcesses(homeID, host, dir string) (*proc.Host, error) {
	return proc.Open(proc.Config{Parent: processParent(homeID, host), StateDir: filepath.Join(dir, "proc")})
}
