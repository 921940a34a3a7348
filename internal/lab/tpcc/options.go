package tpcc

import (
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/lab/tpcc/form"
)

// MostUsers bounds the virtual users of a run.
const MostUsers = 1024

// spawnEvery is how far apart users begin if nobody says otherwise, as in HammerDB.
const spawnEvery = 500 * time.Millisecond

// RunOptions say how to run.
type RunOptions struct {
	Schema string // DefaultSchema if empty
	Users  int    // 1 to MostUsers, each with a session of its own
	// AllWarehouses spreads the users over all warehouses: user k of n has k, k+n, k+2n and so on, and
	// draws one of them for each transaction. Otherwise each user draws one home for all of the run;
	// several may draw the same one, and then wait for each other.
	AllWarehouses bool
	Call          Call
	Mode          Mode // that the database was built in
	// Reach is which warehouses orders and payments touch; "": the usual ones. Another one needs lines that
	// are drawn here: not the procedures of the compatible mode, which draw them on the server.
	Reach  Reach
	Keying bool // users type and think; without it a user never pauses
	// RampUp begins when all users are connected. HammerDB's begins with the first one, so a ramp-up
	// there must be longer by the time that the users take to begin.
	RampUp  time.Duration
	Measure time.Duration // a second or more
	// SpawnEvery is how far apart users begin; 0: half a second; less: as fast as they connect.
	SpawnEvery time.Duration
	// Seed makes users draw the same again. What procedures draw on the server in the compatible mode
	// is not of it.
	Seed uint64
	// Targets are where the users connect to, in turn: several routers, or a pooler. nil: config.
	Targets []*pgx.ConnConfig
	// OnStage, if it is set, is told when a stage of the run begins.
	OnStage func(Stage, time.Time)
}

// Stage is a part of a run.
type Stage string

const (
	Spawning  Stage = "spawn"   // users begin, one after the other
	RampingUp Stage = "ramp_up" // all work, and nothing is measured
	Measuring Stage = "measure"
	Ending    Stage = "end" // users finish what they do
)

func (o RunOptions) checked(config *pgx.ConnConfig) (RunOptions, error) {
	schema, err := checkSchema(o.Schema)
	if err != nil {
		return o, err
	}
	o.Schema = schema
	if err := o.Mode.Check(); err != nil {
		return o, err
	}
	if err := o.Call.Check(); err != nil {
		return o, err
	}
	if err := o.Reach.Check(); err != nil {
		return o, err
	}
	if o.Reach != "" && o.Reach != form.Usual && o.Mode == form.Compatible && o.Call == form.Procedures {
		return o, fmt.Errorf("%w reach: the procedures of the compatible mode draw the warehouses of lines on the server", ErrOption)
	}
	if o.Users < 1 || o.Users > MostUsers {
		return o, fmt.Errorf("%w users: %d is not from 1 to %d", ErrOption, o.Users, MostUsers)
	}
	if o.RampUp < 0 {
		return o, fmt.Errorf("%w ramp-up: %s is less than nothing", ErrOption, o.RampUp)
	}
	if o.Measure < time.Second {
		return o, fmt.Errorf("%w measured time: %s is less than a second", ErrOption, o.Measure)
	}
	if o.SpawnEvery == 0 {
		o.SpawnEvery = spawnEvery
	}
	if len(o.Targets) == 0 {
		o.Targets = []*pgx.ConnConfig{config}
	}
	return o, nil
}
