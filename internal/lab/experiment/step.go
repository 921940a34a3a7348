package experiment

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
)

// Init makes pgbench's tables anew.
type Init struct {
	Scale      int    `json:"scale"`
	Fillfactor int    `json:"fillfactor,omitempty"` // 0: pgbench's own
	Unlogged   bool   `json:"unlogged,omitempty"`
	Tables     string `json:"tables,omitempty"` // "unlogged" is Unlogged, for a factor; "logged" is not
}

// PGBench is a run of pgbench.
type PGBench struct {
	// Scripts are pgbench's own, by name, or SQL of one's own, each with a weight.
	Scripts []Script `json:"scripts"`
	Clients int      `json:"clients"`
	Threads int      `json:"threads,omitempty"` // 0: one for each client, up to the processors
	// Warmup is how many seconds run before what counts.
	Warmup       int     `json:"warmup,omitempty"`
	Seconds      int     `json:"seconds,omitempty"`
	Transactions int     `json:"transactions,omitempty"` // of each client, in place of Seconds
	Protocol     string  `json:"protocol,omitempty"`     // simple, extended, prepared
	Rate         float64 `json:"rate,omitempty"`
	LimitMS      int     `json:"limit_ms,omitempty"`
	Vacuum       bool    `json:"vacuum,omitempty"`
	// Prefix is before the names of its figures, where an experiment has several such steps.
	Prefix string `json:"prefix,omitempty"`
	// Through is how its clients reach the servers: one of Ways; "" is direct.
	Through string `json:"through,omitempty"`
	// Stale is how many pairs of sessions write a row and read it back at once beside the load, on the
	// same way, to count reads that do not see what was written.
	Stale int `json:"stale,omitempty"`
}

// Script is one of the scripts of a run.
type Script struct {
	Builtin string `json:"builtin,omitempty"`
	SQL     string `json:"sql,omitempty"`
	Weight  int    `json:"weight,omitempty"` // 0 is 1
}

// SQL is a statement that is timed.
type SQL struct {
	Text string `json:"text"`
	// Figure is the name of the figure with its seconds; "" keeps none.
	Figure string `json:"figure,omitempty"`
	// Value is the name of a figure with the number that it returns.
	Value string `json:"value,omitempty"`
	Each  int    `json:"each,omitempty"` // how often; 0 is once
}

// CatchUp waits until all standbys have replayed what the primary has written by now.
type CatchUp struct {
	Figure string `json:"figure"` // seconds of the last one
	Within int    `json:"within"` // seconds
}

// Arguments are those of one step, filled in. Exactly one of its fields is set.
type Arguments struct {
	Init    *Init
	PGBench *PGBench
	SQL     *SQL
	CatchUp *CatchUp
	ServerSteps
	TPCC *TPCC
}

// Arguments returns the arguments of a step for a setting.
func (e *Experiment) Arguments(step Step, s Setting) (a Arguments, err error) {
	filled, err := e.Fill(step[step.Kind()], s)
	if err != nil {
		return a, fmt.Errorf("%s: %w", step.Kind(), err)
	}
	switch step.Kind() {
	case "init":
		a.Init = &Init{}
		err = errors.Join(decode(filled, a.Init), a.Init.check())
	case "pgbench":
		a.PGBench = &PGBench{}
		err = errors.Join(decode(filled, a.PGBench), a.PGBench.check())
	case "sql":
		a.SQL = &SQL{}
		err = errors.Join(decode(filled, a.SQL), a.SQL.check())
	case "catch_up":
		a.CatchUp = &CatchUp{}
		err = errors.Join(decode(filled, a.CatchUp), a.CatchUp.check())
	case "tpcc":
		a.TPCC = &TPCC{}
		err = errors.Join(decode(filled, a.TPCC), a.TPCC.check())
	default:
		err = a.read(step.Kind(), filled)
	}
	if err != nil {
		return a, fmt.Errorf("%w: %s: %w", ErrForm, step.Kind(), err)
	}
	return a, nil
}

var (
	// ErrKind says that there is no such step.
	ErrKind = errors.New("there is no such step: there are init, pgbench, sql, catch_up, tpcc, restore, reboot, failover, crash, fault, " +
		"bulk_load, vacuum and buffers")
	// ErrArgument says that a step cannot be done so.
	ErrArgument = errors.New("it cannot be done so")
)

func wrong(form string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrArgument, fmt.Sprintf(form, args...))
}

// mostScale bounds the tables of pgbench.
const mostScale = 1_000_000

func (i *Init) check() error {
	switch {
	case i.Scale < 1 || i.Scale > mostScale:
		return wrong("scale is %d, and not from 1 to %d", i.Scale, mostScale)
	case i.Fillfactor != 0 && (i.Fillfactor < 10 || i.Fillfactor > 100):
		return wrong("fillfactor is %d, and not from 10 to 100", i.Fillfactor)
	case !slices.Contains([]string{"", "logged", "unlogged"}, i.Tables):
		return wrong("tables are %q, and neither logged nor unlogged", i.Tables)
	}
	i.Unlogged = i.Unlogged || i.Tables == "unlogged"
	return nil
}

// figureForm is the name of a figure, and prefixForm what may be before such names. Plots are files of these
// names.
var (
	figureForm = regexp.MustCompile(`^[a-z][a-zA-Z0-9_.-]{0,80}$`)
	prefixForm = regexp.MustCompile(`^([a-z][a-z0-9_]{0,30}_)?$`)
)

// named refuses names of figures that no plot could have; "" is no figure.
func named(figures ...string) error {
	for _, name := range figures {
		if name != "" && !figureForm.MatchString(name) {
			return wrong("%q is no name of a figure: it takes letters, digits and _", name)
		}
	}
	return nil
}

func prefixed(prefix string) error {
	if !prefixForm.MatchString(prefix) {
		return wrong("the prefix %q is not of small letters and digits, with _ at its end", prefix)
	}
	return nil
}

func (p *PGBench) check() error {
	if p.Protocol == "" {
		p.Protocol = "simple"
	}
	if err := prefixed(p.Prefix); err != nil {
		return err
	}
	switch {
	case len(p.Scripts) == 0:
		return wrong("it has no script")
	case p.Clients < 1 || p.Clients > 10_000:
		return wrong("clients are %d, and not from 1 to 10000", p.Clients)
	case p.Threads < 0 || p.Threads > p.Clients:
		return wrong("threads are %d, and not from 1 to the %d clients", p.Threads, p.Clients)
	case (p.Seconds > 0) == (p.Transactions > 0) || p.Seconds < 0 || p.Transactions < 0 || p.Warmup < 0:
		return wrong("it needs either seconds or transactions, above 0")
	case !slices.Contains([]string{"simple", "extended", "prepared"}, p.Protocol):
		return wrong("protocol is %q, and not simple, extended or prepared", p.Protocol)
	case p.Rate < 0 || p.LimitMS < 0:
		return wrong("rate and limit_ms are not below 0")
	}
	if err := p.checkWay(); err != nil {
		return err
	}
	for n := range p.Scripts {
		s := &p.Scripts[n]
		if (s.Builtin == "") == (s.SQL == "") || s.Weight < 0 {
			return wrong("a script is either builtin or sql, with a weight above 0")
		}
		if s.Builtin != "" && !slices.Contains([]string{"tpcb-like", "simple-update", "select-only"}, s.Builtin) {
			return wrong("pgbench has no script %s", s.Builtin)
		}
		if found := runsPrograms.FindString(s.SQL); found != "" {
			return wrong("a script runs programs by %q: an experiment may come from anybody, and acts on a server alone", found)
		}
		s.Weight = max(s.Weight, 1)
	}
	return nil
}

// runsPrograms finds pgbench's commands that run programs of the machine that it is on. It takes them in
// any case, and lets blanks and ends of lines stand in between.
var runsPrograms = regexp.MustCompile(`(?i)\\[\s\\]*(set)?shell`)

func (q *SQL) check() error {
	if q.Each = max(q.Each, 1); q.Text == "" || q.Each > 1_000_000 {
		return wrong("it has no text, or runs more than a million times")
	}
	return named(q.Figure, q.Value)
}

func (c *CatchUp) check() error {
	if c.Figure == "" || c.Within < 1 {
		return wrong("it needs a figure, and within how many seconds")
	}
	return named(c.Figure)
}

// checkSteps tries each step with each setting, also as a quick run has them.
func (e *Experiment) checkSteps() error {
	for _, all := range []*Experiment{e, e.Quickly()} {
		for n, s := range all.Settings() {
			steps := all.Each
			if n == 0 {
				steps = slices.Concat(all.Prepare, all.Each)
			}
			for _, step := range steps {
				if len(step) != 1 {
					return fmt.Errorf("a step has one kind, and this has %d: %v", len(step), step) //nolint:err113
				}
				if _, err := all.Arguments(step, s); err != nil {
					return fmt.Errorf("with %s: %w", all.Key(s), err)
				}
			}
		}
	}
	return nil
}

// Clients returns how many clients a step has at most.
func (e *Experiment) Clients() (most int, err error) {
	for _, s := range e.Settings() {
		for _, step := range slices.Concat(e.Prepare, e.Each) {
			a, err := e.Arguments(step, s)
			if err != nil {
				return 0, err
			}
			if a.PGBench != nil {
				most = max(most, a.PGBench.Sessions())
			}
			most = max(most, a.clients())
			if a.TPCC != nil {
				most = max(most, a.TPCC.sessions())
			}
		}
	}
	return most, nil
}
