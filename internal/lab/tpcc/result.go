package tpcc

import (
	"slices"
	"time"

	"howdah/internal/lab/tpcc/meter"
)

// Result is what a run measured. Latencies are of a closed loop: a user sends the next transaction
// when the last one is answered. So they are times of service, and say little of how long requests
// would wait that come when they want to.
type Result struct {
	Schema        string        `json:"schema"`
	Mode          Mode          `json:"mode"`
	Call          Call          `json:"call"`
	Warehouses    int           `json:"warehouses"`
	Users         int           `json:"users"`
	AllWarehouses bool          `json:"all_warehouses"`
	Keying        bool          `json:"keying"`
	Seed          uint64        `json:"seed"`
	RampUp        time.Duration `json:"ramp_up_ns"`
	Asked         time.Duration `json:"asked_ns"` // how long to measure
	// SharedHomes is how many users have their home with another one; 0 with all warehouses.
	SharedHomes int `json:"shared_homes"`

	Began time.Time `json:"began"` // the first user, and the series
	From  time.Time `json:"from"`  // the measured time, from reading the server's counters to reading them again
	To    time.Time `json:"to"`

	// NOPM is how many orders the districts have more, by the minute that was measured.
	NOPM   float64 `json:"nopm"`
	Orders int64   `json:"orders"`
	// TPM is how many transactions were committed and rolled back, by the minute that was measured. As
	// in HammerDB it has all databases of the server, and whatever else ran there. With several
	// routers it is that of the server of Run's config alone.
	TPM          float64 `json:"tpm"`
	Transactions int64   `json:"transactions"`
	// Commits and Rollbacks are of the load's own database.
	Commits   int64 `json:"commits"`
	Rollbacks int64 `json:"rollbacks"`
	// ServerChanged says that the server's counters began anew, after a failover or a crash. Then TPM,
	// Transactions, Commits and Rollbacks are 0, as nobody knows them.
	ServerChanged bool `json:"server_changed"`

	Kinds []KindResult `json:"kinds"` // by kind of transaction
	// OutsideErrors are errors by SQLSTATE before and after the measured time, refused connections too.
	OutsideErrors map[string]int64  `json:"outside_errors"`
	ErrorTexts    map[string]string `json:"error_texts"` // of the first error of each SQLSTATE
	// Refused and Reconnected are of all of the run: attempts to connect that failed, and sessions in
	// the place of lost ones.
	Refused     int64 `json:"refused"`
	Reconnected int64 `json:"reconnected"`
	// Seconds are of all of the run. The first one begins at Began.
	Seconds []Second `json:"seconds"`
	// CPU is what this process used in the measured time.
	CPU meter.CPU `json:"cpu"`
}

// Measured is how long the measured time was.
func (r Result) Measured() time.Duration { return r.To.Sub(r.From) }

// Ratio is TPM by NOPM. The mix makes it about 2.3; another ratio means errors or other traffic.
func (r Result) Ratio() float64 {
	if r.NOPM == 0 {
		return 0
	}
	return r.TPM / r.NOPM
}

// Processors is how many processors the driver kept busy.
func (r Result) Processors() float64 {
	if r.Measured() <= 0 {
		return 0
	}
	return r.CPU.Sum().Seconds() / r.Measured().Seconds()
}

// Errors are those of the measured time, by SQLSTATE.
func (r Result) Errors() map[string]int64 {
	all := map[string]int64{}
	for _, k := range r.Kinds {
		for state, n := range k.Errors {
			all[state] += n
		}
	}
	return all
}

// count fills in what two readings differ in.
func (r *Result) count(first, last reading) {
	r.From, r.To = first.at, last.at
	minutes := r.Measured().Minutes()
	if minutes <= 0 {
		return
	}
	r.Orders = last.orders - first.orders
	r.NOPM = float64(r.Orders) / minutes
	if first.server != last.server || last.transactions < first.transactions {
		r.ServerChanged = true
		return
	}
	r.Transactions = last.transactions - first.transactions
	r.TPM = float64(r.Transactions) / minutes
	r.Commits, r.Rollbacks = last.commits-first.commits, last.rollbacks-first.rollbacks
}

// gather fills in what the recorder counted.
func (r *Result) gather(recorder *meter.Recorder) error {
	r.OutsideErrors, r.ErrorTexts, r.Seconds = recorder.Outside(), recorder.Texts(), recorder.Seconds()
	for _, s := range r.Seconds {
		r.Refused += s.Refused
		r.Reconnected += s.Reconnected
	}
	kinds, err := recorder.Kinds()
	r.Kinds = kinds
	return err
}

// sharedHomes counts those whose home another one has, too.
func sharedHomes(homes []int) (shared int) {
	homes = slices.Sorted(slices.Values(homes))
	for i, home := range homes {
		if i > 0 && homes[i-1] == home || i+1 < len(homes) && homes[i+1] == home {
			shared++
		}
	}
	return shared
}
