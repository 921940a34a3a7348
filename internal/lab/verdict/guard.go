package verdict

import (
	"fmt"
	"math"

	"howdah/internal/observe/series"
)

// What makes a measurement invalid.
const (
	mostForeign   = 0.03  // share of the machine's CPUs that strangers may use
	mostSteal     = 0.01  // share of the machine's CPUs that the hypervisor may take
	leastFree     = 0.20  // share of the file system that has to be free
	mostErrors    = 0.001 // share of transactions that may fail
	mostClockStep = 100   // ms that the wall clock may be stepped in one row
	mostSessions  = 0.25  // active sessions of others on the server
)

// Disturbed is what is said of a measurement that something else disturbed, without its reasons. Its figures
// count all the same: the report says which they are.
var Disturbed = Finding{Cause: Noise, Key: string(Noise), Sentence: "Something else disturbed the measurement: its figures may be too low."}

// noise: something that is not measured used the machine, or the measurement itself is broken.
func noise(e Evidence) (Finding, bool) {
	f := Disturbed
	if share, known := e.share(series.MachineForeign, series.MachineCPUs); known && share > mostForeign {
		f.Reasons = append(f.Reasons, reason("foreign", fmt.Sprintf("Other programs used %s of the machine's CPUs; %s are allowed.", percent(share), percent(mostForeign)),
			Figure{"foreign_share", share, "share", mostForeign}))
	}
	if share, known := e.share(series.MachineSteal, series.MachineCPUs); known && share > mostSteal {
		stolen := Figure{"steal_share", share, "share", mostSteal}
		why := reason("steal", fmt.Sprintf("The hypervisor gave %s of the machine's CPUs to others; %s are allowed.", percent(share), percent(mostSteal)), stolen)
		if e.Elsewhere {
			why = reason("steal_client", fmt.Sprintf("The hypervisor gave %s of the CPUs of the load generator's machine to others; %s are allowed.", percent(share), percent(mostSteal)), stolen)
		}
		f.Reasons = append(f.Reasons, why)
	}
	if others, known := e.Observed.Mean(series.SessionsForeign); known && others > mostSessions {
		f.Reasons = append(f.Reasons, reason("foreign_sessions", fmt.Sprintf("On average %s sessions of others were active on the server; %s may be.", number(others), number(mostSessions)),
			Figure{"foreign_sessions", others, "sessions", mostSessions}))
	}
	if free, known := e.Observed.Min(series.DeviceFreeShare); known && free < leastFree {
		f.Reasons = append(f.Reasons, reason("free", fmt.Sprintf("Only %s of the disk was free; disks get slow when they are full.", percent(free)),
			Figure{"free_share", free, "share", leastFree}))
	}
	if step, known := e.clockStep(); known && step > mostClockStep {
		f.Reasons = append(f.Reasons, reason("clock", fmt.Sprintf("The clock was stepped by %s ms.", number(step)),
			Figure{"clock_step", step, "ms", mostClockStep}))
	}
	if share := e.Load.ErrorShare; share > mostErrors {
		f.Reasons = append(f.Reasons, reason("errors", fmt.Sprintf("%s of the transactions failed; %s may.", percent(share), percent(mostErrors)),
			Figure{"error_share", share, "share", mostErrors}))
	}
	return f, len(f.Reasons) > 0
}

func (e Evidence) clockStep() (float64, bool) {
	stat, known := e.Observed.Columns[series.ObserverClockStep]
	return max(math.Abs(stat.Min), math.Abs(stat.Max)), known
}
