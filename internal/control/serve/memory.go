package serve

import (
	"os"
	"runtime/debug"
)

// garbagePercent is how much garbage a control plane may have before it collects, in percent of
// what it needs. With Go's own 100, a control plane of 10,000 instances takes half as much memory
// again (make bench-scale). It is at rest most of the time, and shares its machine with databases.
const garbagePercent = 50

// SaveMemory makes this process collect its garbage early, unless the environment's GOGC says how
// often. It is for programs that are a control plane. Call it once.
func SaveMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
}
