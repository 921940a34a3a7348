package serve

import (
	"os"
	"runtime/debug"
)

// garbagePercent is how much garbage a control plane may have, in percent of what it
// needs, before it collects it. With Go's own 100 one of 10,000 instances takes half as
// much memory again (make bench-scale); it is at rest most of the time, and shares its
// machine with databases.
const garbagePercent = 50

// SaveMemory has this process collect its garbage early, unless the environment's GOGC
// says how often. It is for programs whose purpose is a control plane; call it once.
func SaveMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
}
