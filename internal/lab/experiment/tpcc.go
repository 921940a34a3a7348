package experiment

import "slices"

// TPCC is a run of the load of the TPC-C family: virtual users on a database of warehouses, which is
// built if it is not there, and checked afterwards.
type TPCC struct {
	Warehouses int `json:"warehouses"`
	Users      int `json:"users"`
	// Mode is "compatible", with HammerDB, or "specification". Their figures are never compared.
	Mode string `json:"mode,omitempty"`
	// Calls is "procedures", or "client" for each statement by itself.
	Calls string `json:"calls,omitempty"`
	// AllWarehouses spreads the users over all warehouses. Otherwise each draws one home, and some have
	// the same.
	AllWarehouses bool `json:"all_warehouses,omitempty"`
	// Reach is "usual", or "home" or "away" for transactions that touch one warehouse or always another one
	// too: in a sharded database, one shard or several. It needs mode specification, or calls client.
	Reach string `json:"reach,omitempty"`
	// RampUp is how many seconds run before what counts.
	RampUp  int `json:"ramp_up,omitempty"`
	Seconds int `json:"seconds"`
	// Keying makes users type and think, as TPC-C has it. A user then makes little more than one order a minute.
	Keying bool `json:"keying,omitempty"`
	// Workers is how many sessions build; 0: one for each processor here.
	Workers int `json:"workers,omitempty"`
	// Fresh builds the database anew, also if it is there. Runs make it larger.
	Fresh bool `json:"fresh,omitempty"`
	// Prefix is before the names of its figures, where an experiment has several such steps.
	Prefix string `json:"prefix,omitempty"`
}

// Bounds of the load; its own package has the same.
const (
	mostWarehouses = 100_000
	mostUsers      = 1024
	mostWorkers    = 256
)

func (t *TPCC) check() error {
	if t.Mode == "" {
		t.Mode = "compatible"
	}
	if t.Calls == "" {
		t.Calls = "procedures"
	}
	if t.Reach == "" {
		t.Reach = "usual"
	}
	switch {
	case !slices.Contains([]string{"usual", "home", "away"}, t.Reach):
		return wrong("reach is %q, and neither usual, home nor away", t.Reach)
	case t.Reach != "usual" && t.Mode == "compatible" && t.Calls == "procedures":
		return wrong("reach %s needs the mode specification, or calls client: HammerDB's procedures draw the warehouses themselves", t.Reach)
	case t.Reach == "away" && t.Warehouses == 1:
		return wrong("reach away needs two warehouses")
	case t.Warehouses < 1 || t.Warehouses > mostWarehouses:
		return wrong("warehouses are %d, and not from 1 to %d", t.Warehouses, mostWarehouses)
	case t.Users < 1 || t.Users > mostUsers:
		return wrong("users are %d, and not from 1 to %d", t.Users, mostUsers)
	case !slices.Contains([]string{"compatible", "specification"}, t.Mode):
		return wrong("mode is %q, and neither compatible nor specification", t.Mode)
	case !slices.Contains([]string{"procedures", "client"}, t.Calls):
		return wrong("calls is %q, and neither procedures nor client", t.Calls)
	case t.Seconds < 1 || t.RampUp < 0:
		return wrong("it needs seconds above 0, and a ramp_up that is not below 0")
	case t.Workers < 0 || t.Workers > mostWorkers:
		return wrong("workers are %d, and not from 0 to %d", t.Workers, mostWorkers)
	}
	return prefixed(t.Prefix)
}

// sessions are those of the users, and the one that reads the server's counters.
func (t *TPCC) sessions() int { return max(t.Users, t.Workers) + 1 }
