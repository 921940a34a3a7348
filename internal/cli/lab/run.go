package lab

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"howdah/internal/cli"
	"howdah/internal/cli/screen"
	"howdah/internal/engine/postgres"
	"howdah/internal/lab/address"
	"howdah/internal/lab/book"
	"howdah/internal/lab/report"
	"howdah/internal/lab/result"
	"howdah/internal/lab/run"
	"howdah/internal/lab/target"
)

// runFlags are those of a run.
type runFlags struct {
	target, targetFile, out, language string
	quick, writes, dryRun, keep       bool
	clock, detach, blind, faults      bool
	dir                               string // for what connections need: certificates, passwords
}

// targetVariable has the address of the target, where it is in no argument.
const targetVariable = "HOWDAH_LAB_TARGET"

func newRun(o *cli.Options) *cobra.Command {
	cmd, f := newRunWith()
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return f.run(cmd, o, args) }
	return cmd
}

// newRunWith returns the command, and what its flags are set to once it is run.
func newRunWith() (*cobra.Command, *runFlags) {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use: "run NAME|FILE…", Short: "Make experiments, and write their reports", ValidArgsFunction: complete,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("lab run takes the name of an experiment: %w", cli.ErrUsage)
			}
			return nil
		},
		Long: "Makes experiments, one after the other, and writes each one's report into a directory of its name below --out. Without --target " +
			"the Howdah that is found here makes a database for each, whose name begins with lab-, and removes it afterwards. A run that was " +
			"broken off goes on where it was: see `howdah lab resume`, or give the same command again with the same --out. The lab writes to " +
			"its own schema, " + target.Schema + ", and to no database that has somebody's tables, unless --allow-writes is given. A password " +
			"comes from ~/.pgpass, PGPASSWORD, --target-file or " + targetVariable + ", and not from an argument, which others see.",
		Example: "  howdah lab run e3 --quick\n" +
			"  howdah lab run e3 --quick --target postgresql://app@127.0.0.1/empty\n" +
			"  howdah lab run mine.yaml --target-file target.txt --out results --lang ja --detach",
	}
	flags := cmd.Flags()
	flags.StringVar(&f.target, "target", "", "address of the server, as postgresql://USER@HOST:PORT/DATABASE")
	flags.StringVar(&f.targetFile, "target-file", "", "file with the address of the server, also with its password")
	flags.StringVar(&f.out, "out", "", "directory for the results (default one in the home: see howdah lab list --runs)")
	flags.StringVar(&f.language, "lang", "both", "language of the reports: en, ja or both")
	flags.BoolVar(&f.quick, "quick", false, "two minutes or so for each: it shows how the experiment goes, and carries no figures")
	flags.BoolVar(&f.writes, "allow-writes", false, "write beside tables that are not the lab's, in its own schema")
	flags.BoolVar(&f.keep, "keep", false, "leave the database that a Howdah made for the experiment")
	flags.BoolVar(&f.clock, "allow-clock", false, "let the fault clock set this machine's clock, which all that runs here sees")
	flags.BoolVar(&f.faults, "allow-faults", false, "let an experiment of a file make faults: read the file first, as it kills and freezes what runs here")
	flags.BoolVar(&f.detach, "detach", false, "go on in the background: see howdah lab watch")
	flags.BoolVar(&f.blind, "blind", false, "do not observe the server meanwhile: reports then do not say what limited it")
	flags.BoolVar(&f.dryRun, "dry-run", false, "only say what would be done, and how long it would take")
	cli.CompleteFiles(cmd, "target-file", "out")
	return cmd, f
}

func (f *runFlags) run(cmd *cobra.Command, o *cli.Options, names []string) error {
	if f.dryRun {
		all, err := f.work(o, names)
		if err != nil {
			return err
		}
		return plans(o, all, f.out)
	}
	if err := healAll(cmd.Context(), book.Of(o.Home)); err != nil {
		return err
	}
	m, all, err := f.begin(cmd, o, names)
	if err != nil {
		return err
	}
	defer m.flags.remove()
	if m.entry, err = enter(book.Of(o.Home), m.entry); err != nil {
		return err
	}
	if f.detach {
		return goOn(cmd, o, m.entry)
	}
	s, err := book.Of(o.Home).Find(m.entry.ID)
	if err != nil {
		return err
	}
	m.progress = s.Progress
	return m.make(cmd.Context(), all)
}

// begin reads all experiments, and checks that their target can be used, before the first one runs.
func (f *runFlags) begin(cmd *cobra.Command, o *cli.Options, names []string) (*making, []run.Options, error) {
	languages, err := languagesOf(f.language)
	if err != nil {
		return nil, nil, err
	}
	if f.target != "" && f.targetFile != "" {
		return nil, nil, fmt.Errorf("--target and --target-file exclude each other: %w", cli.ErrUsage)
	}
	all, err := f.work(o, names)
	if err != nil {
		return nil, nil, err
	}
	if f.dir, err = os.MkdirTemp("", "howdah-lab-"); err != nil {
		return nil, nil, err
	}
	at, targets, err := f.targets(cmd, o)
	if err != nil {
		f.remove()
		return nil, nil, err
	}
	for n := range all {
		all[n].Target = targets(all[n])
		if err := errors.Join(target.Check(all[n].Target, all[n].Experiment), run.CheckPrograms(all[n].Experiment), f.mayBreak(names[n], all[n])); err != nil {
			f.remove()
			return nil, nil, err
		}
	}
	m := &making{o: o, flags: *f, languages: languages}
	if m.entry, err = f.entryOf(o, cmd, names, at); err != nil {
		f.remove()
		return nil, nil, err
	}
	return m, all, nil
}

var errFaults = errors.New("it is no experiment that is built in, and makes faults on this machine: read it, and then give --allow-faults")

// mayBreak refuses faults of a file, which somebody may have sent, unless the user lets them. Other targets
// than a Howdah have none.
func (f *runFlags) mayBreak(name string, o run.Options) error {
	if _, here := o.Target.(*target.Howdah); here && !f.faults && isFile(name) && o.Experiment.Breaks() {
		return fmt.Errorf("%s: %w", name, errFaults)
	}
	return nil
}

// remove removes what begin made.
func (f *runFlags) remove() { os.RemoveAll(f.dir) }

var (
	errPassword = errors.New("others see a password in an argument: use ~/.pgpass, PGPASSWORD, --target-file or " + targetVariable)
)

// targets returns what the experiments are made against: the server that was named, or else a database of
// a Howdah, which each experiment has for itself. at names it.
func (f *runFlags) targets(cmd *cobra.Command, o *cli.Options) (at string, _ func(run.Options) target.Target, err error) {
	if f.target != "" || f.targetFile != "" || o.Getenv(targetVariable) != "" {
		server, err := f.server(o, f.dir)
		if err != nil {
			return "", nil, err
		}
		return server.Name(), func(run.Options) target.Target { return &target.Address{Server: server, Writes: f.writes} }, nil
	}
	api, h, err := o.Connect(cmd)
	if err != nil {
		return "", nil, err
	}
	authority := o.Getenv("AWS_CA_BUNDLE")
	if h != nil {
		authority = h.CAFile()
	}
	return "Howdah of " + api.Source, func(one run.Options) target.Target {
		return &target.Howdah{API: api, Home: h, CA: authority, Experiment: one.Experiment.Name, Keep: f.keep, Clock: f.clock}
	}, nil
}

// server is the target that was named.
func (f *runFlags) server(o *cli.Options, dir string) (address.Server, error) {
	text := f.target
	switch {
	case f.targetFile != "":
		file, err := os.ReadFile(f.targetFile)
		if err != nil {
			return address.Server{}, fmt.Errorf("read --target-file: %w", err)
		}
		text = strings.TrimSpace(string(file))
	case text == "":
		text = o.Getenv(targetVariable)
	default:
		if u, err := url.Parse(text); err == nil {
			if _, has := u.User.Password(); has || u.Query().Has("password") {
				return address.Server{}, errPassword
			}
		}
	}
	return address.Parse(text, dir)
}

var errPGBench = errors.New("pgbench is not installed: install PostgreSQL's server package (postgresql-contrib before version 10)")

// pgbench finds the program: that of the newest release that is installed.
func pgbench() (string, error) {
	all, err := postgres.Installed()
	if err == nil && len(all) > 0 {
		newest := all[0]
		for _, i := range all {
			if i.Major > newest.Major {
				newest = i
			}
		}
		return newest.Program("pgbench"), nil
	}
	path, err := exec.LookPath("pgbench")
	if err != nil {
		return "", errPGBench
	}
	return path, nil
}

// runOne makes one experiment, and shows how far it is.
func runOne(ctx context.Context, o *cli.Options, one run.Options, languages []string, told func(string, run.Progress)) (*result.Result, error) {
	progress := o.Screen.Begin(o.Now)
	one.Told = func(p run.Progress) {
		told(one.Experiment.Name, p)
		left := ""
		if p.Left > 0 {
			left = ", " + screen.Span(p.Left) + " left"
		}
		setting := ""
		if p.Setting != "" {
			setting = " (" + p.Setting + ")"
		}
		progress.Step(one.Experiment.Name, o.Now())
		progress.Far(fmt.Sprintf("point %d of %d%s: %s%s", p.Point, p.Points, setting, p.Step, left))
	}
	if h, ok := one.Target.(*target.Howdah); ok {
		h.Told = func(step string) {
			told(one.Experiment.Name, run.Progress{Step: step})
			progress.Step(one.Experiment.Name, o.Now())
			progress.Far(step)
		}
	}
	r, err := run.Run(ctx, one)
	if h, ok := one.Target.(*target.Howdah); ok && h.Keep && err == nil {
		progress.Note(h.Name() + " is kept; its password is in " + filepath.Join(one.Dir, "pgpass"))
	}
	progress.End()
	if err != nil {
		return r, err
	}
	if err := report.Write(one.Dir, languages...); err != nil {
		return r, err
	}
	if o.JSON() {
		return r, nil
	}
	return r, tellReports(o, one.Dir, languages)
}

// plan is what a run would do.
type plan struct {
	Experiment string   `json:"experiment"`
	Points     int      `json:"points"`
	Settings   []string `json:"settings"`
	// Seconds is how long the loads alone would run.
	Seconds int   `json:"seconds"`
	Bytes   int64 `json:"bytes"` // about what the data take
	// Built is about how many bytes are made, in all. Restores is how often a snapshot is restored.
	Built    int64  `json:"built"`
	Restores int    `json:"restores"`
	Clients  int    `json:"clients"`
	Dir      string `json:"dir"`
}

// buildRate is about how many bytes of data are made in a second: two processors made 28 to 63 million, with ten
// warehouses. A plan names it, because machines differ.
const buildRate = 25_000_000

func plans(o *cli.Options, all []run.Options, out string) error {
	var list []plan
	for _, one := range all {
		if one.Dir = filepath.Join(out, one.Experiment.Name); out == "" {
			one.Dir = filepath.Join(book.Of(o.Home).Dir("…"), one.Experiment.Name)
		}
		p, err := planOf(one)
		if err != nil {
			return err
		}
		list = append(list, p)
	}
	return o.Print(list, func() error {
		for _, p := range list {
			o.Say("%s: %d points, the loads run for %s in all, up to %d clients, about %s of data, into %s", p.Experiment, p.Points,
				span(time.Duration(p.Seconds)*time.Second), p.Clients, screen.Bytes(p.Bytes), p.Dir)
			if p.Built > 0 {
				o.Say("  besides, about %s of data are made: %s, at %s a second", screen.Bytes(p.Built),
					span(time.Duration(p.Built/buildRate)*time.Second), screen.Bytes(buildRate))
			}
			if p.Restores > 0 {
				o.Say("  besides, a snapshot is restored %d times", p.Restores)
			}
			for _, s := range p.Settings {
				o.Say("  %s", s)
			}
		}
		return nil
	})
}

func planOf(one run.Options) (plan, error) {
	e := one.Experiment
	p := plan{Experiment: e.Name, Points: len(e.Points()), Dir: one.Dir}
	var err error
	if p.Clients, err = e.Clients(); err != nil {
		return p, err
	}
	if p.Bytes, err = e.Bytes(); err != nil {
		return p, err
	}
	work, err := e.Work()
	if err != nil {
		return p, err
	}
	p.Built, p.Restores = work.Built, work.Restores
	for _, s := range e.Settings() {
		p.Settings = append(p.Settings, e.Key(s))
		seconds, err := e.Seconds(s)
		if err != nil {
			return p, err
		}
		p.Seconds += seconds * e.Runs
	}
	return p, nil
}
