package experiment

import "slices"

// What databases take when they are new, in bytes, with their indexes.
const (
	branchBytes    = 15_700_000 // of pgbench's scale
	warehouseBytes = 101_000_000
	itemsBytes     = 12_000_000
	rowBytes       = 157 // of pgbench_accounts
)

// Bytes returns about how much room the data take that the experiment makes, at most. WAL, and what runs
// add, come on top. SQL of one's own is not counted.
func (e *Experiment) Bytes() (int64, error) {
	var scale, warehouses, rows int
	for _, s := range e.Settings() {
		for _, step := range slices.Concat(e.Prepare, e.Each) {
			a, err := e.Arguments(step, s)
			if err != nil {
				return 0, err
			}
			if a.Init != nil {
				scale = max(scale, a.Init.Scale)
			}
			if a.BulkLoad != nil {
				rows = max(rows, a.BulkLoad.Rows)
			}
			if a.TPCC != nil {
				warehouses = max(warehouses, a.TPCC.Warehouses)
			}
			if f := a.Fault; f != nil && f.Load != nil {
				scale = max(scale, f.Scale)
			}
			if f := a.Fault; f != nil && f.TPCC != nil {
				warehouses = max(warehouses, f.TPCC.Warehouses)
			}
		}
	}
	bytes := int64(scale)*branchBytes + int64(warehouses)*warehouseBytes + int64(rows)*rowBytes
	if warehouses > 0 {
		bytes += itemsBytes
	}
	return bytes, nil
}

// Work is what is done besides loads.
type Work struct {
	Built    int64 // bytes of data that are made, in all
	Restores int   // of a snapshot
}

// Work returns what an experiment does besides its loads. Virtual users' data are counted once, where they are
// used again.
func (e *Experiment) Work() (w Work, err error) {
	warehouses := 0
	count := func(steps []Step, s Setting) error {
		for _, step := range steps {
			a, err := e.Arguments(step, s)
			if err != nil {
				return err
			}
			users := a.TPCC
			switch {
			case a.Init != nil:
				w.Built += int64(a.Init.Scale) * branchBytes
			case a.BulkLoad != nil:
				w.Built += int64(a.BulkLoad.Rows) * rowBytes
			case a.Restore != nil:
				w.Restores++
			case a.Fault != nil && a.Fault.Load != nil:
				w.Built += int64(a.Fault.Scale) * branchBytes
			case a.Fault != nil:
				users = a.Fault.TPCC
			}
			if users != nil && (users.Fresh || users.Warehouses != warehouses) {
				warehouses = users.Warehouses
				w.Built += int64(warehouses)*warehouseBytes + itemsBytes
			}
		}
		return nil
	}
	for n, p := range e.Points() {
		if n == 0 {
			err = count(e.Prepare, p.Setting)
		}
		if err == nil {
			err = count(e.Each, p.Setting)
		}
		if err != nil {
			return w, err
		}
	}
	return w, nil
}

// Seconds returns for how long the loads of a setting run.
func (e *Experiment) Seconds(s Setting) (seconds int, err error) {
	for _, step := range e.Each {
		a, err := e.Arguments(step, s)
		if err != nil {
			return 0, err
		}
		seconds += a.Seconds()
	}
	return seconds, nil
}
