package soak

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"howdah/internal/testkit/rig"
	"howdah/test/soak/model"
)

// make soak sets these variables.
const (
	lengthVariable = "HOWDAH_SOAK"        // for how long, as 30m
	seedVariable   = "HOWDAH_SOAK_SEED"   // of the first sequence
	replayVariable = "HOWDAH_SOAK_REPLAY" // a file with a sequence to run instead
	knownVariable  = "HOWDAH_SOAK_KNOWN"  // also what finds bugs that are known
	dirVariable    = "HOWDAH_SOAK_DIR"    // for files of sequences that failed
	shrinkVariable = "HOWDAH_SOAK_SHRINK" // for how long to look for a shorter sequence that fails
)

const (
	// usual is the length for make test.
	usual = 120 * time.Second
	// stepsEach is a quarter of how many steps a sequence has, on average.
	stepsEach = 10
)

var binary, upgraded string

func TestMain(m *testing.M) {
	flag.Parse()
	if !rig.Isolate() {
		fmt.Fprintln(os.Stderr, "the soak needs root: it makes network namespaces")
		os.Exit(1)
	}
	dir, err := os.MkdirTemp("", "howdah-soak-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binary, upgraded = filepath.Join(dir, "howdah"), filepath.Join(dir, "howdah-next")
	for path, version := range map[string]string{binary: "soak", upgraded: "soak-next"} {
		build := exec.Command("go", "build", "-ldflags", "-X main.version="+version, "-o", path, "howdah/cmd/howdah")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
			os.Exit(1)
		}
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// TestSoak draws sequences and runs them, until its time is over.
func TestSoak(t *testing.T) {
	figures := &Figures{}
	until := time.Now().Add(length(t, lengthVariable, usual))
	if file := os.Getenv(replayVariable); file != "" {
		replay(t, file, figures)
	} else {
		drawn(t, figures, until)
	}
	for verb, why := range known {
		t.Logf("left out: %s: %s", verb, why)
	}
	t.Logf("all is well\n%s", figures)
}

func length(t *testing.T, variable string, otherwise time.Duration) time.Duration {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return d
}

func replay(t *testing.T, name string, figures *Figures) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	sequence, err := model.Parse(file)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if err := run(t, sequence, figures, time.Now().Add(24*time.Hour)); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func drawn(t *testing.T, figures *Figures, until time.Time) {
	t.Helper()
	seed := rand.Uint64N(1<<32) + 1
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil || seed == 0 {
			t.Fatalf("%s: %q is no number above zero", seedVariable, text)
		}
	}
	shrink := length(t, shrinkVariable, 0)
	for flagName, value := range map[string]string{"checks": "1", "steps": strconv.Itoa(stepsEach), "nofailfile": "true", "shrinktime": shrink.String()} {
		if err := flag.Set("rapid."+flagName, value); err != nil {
			t.Fatal(err)
		}
	}
	for ; time.Now().Before(until); seed++ {
		t.Logf("seed %d (again: make soak SEED=%d)", seed, seed)
		if err := flag.Set("rapid.seed", strconv.FormatUint(seed, 10)); err != nil {
			t.Fatal(err)
		}
		c := &check{T: t, seed: seed, figures: figures, until: until, shrink: shrink, verdicts: map[string]error{}}
		rapid.Check(t, c.property)
		if c.first != nil {
			t.Fatal(c.first)
		}
	}
}

// check runs the sequence of a seed. If that fails, and it was asked to shrink, it also runs
// shorter ones that rapid makes of it.
type check struct {
	*testing.T
	seed    uint64
	figures *Figures
	until   time.Time
	shrink  time.Duration
	// verdicts has the results of sequences that have run. rapid asks for some again and again, and
	// each costs minutes.
	verdicts map[string]error
	failed   time.Time // when the first one did
	first    error     // what did not hold then
	best     string    // the shortest that failed
}

func (c *check) property(t *rapid.T) {
	o := options
	if os.Getenv(knownVariable) == "" {
		o.Without = known
	}
	sequence := model.Draw(t, o)
	text := sequence.String()
	err, known := c.verdicts[text]
	if !known {
		err = c.verdict(sequence)
		c.verdicts[text] = err
	}
	if err != nil && c.shrink > 0 {
		// These are the same words each time: rapid would take other words for another failure.
		t.Fatal(Kind(err))
	}
}

func (c *check) verdict(sequence model.Sequence) error {
	if !c.failed.IsZero() && time.Since(c.failed) > c.shrink {
		return nil
	}
	until := c.until
	if !c.failed.IsZero() {
		until = time.Now().Add(24 * time.Hour)
	}
	err := run(c.T, sequence, c.figures, until)
	text := sequence.String()
	if err == nil || c.best != "" && len(text) >= len(c.best) {
		return err
	}
	if c.failed.IsZero() {
		c.failed, c.first = time.Now(), err
	}
	c.best = text
	c.keep(err)
	return err
}

// keep writes the sequence that failed to a file, and prints it.
func (c *check) keep(err error) {
	dir := os.Getenv(dirVariable)
	if dir == "" {
		dir = os.TempDir()
	}
	name := filepath.Join(dir, fmt.Sprintf("soak-%d.txt", c.seed))
	content := fmt.Sprintf("# seed %d\n# %v\n%s", c.seed, err, c.best)
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(name, []byte(content), 0o644)); err != nil {
		c.Log(err)
	}
	c.Logf("%v\nthis sequence failed; it can be run again with make soak REPLAY=%s, and shrunk with make soak SEED=%d SHRINK=30m:\n%s", err, name, c.seed, c.best)
}

// options say what is drawn: few databases, because two cores run all of them.
var options = model.Options{Limit: 6, AtOnce: 3, Faults: true}

// etcdQuota is in MiB. It is so small that etcd is full in seconds, and so large that a soak does
// not come near half of it by itself.
const etcdQuota = "32"

// run runs a sequence on a rig of its own.
func run(t *testing.T, sequence model.Sequence, figures *Figures, until time.Time) error {
	t.Helper()
	rounds, err := model.Rounds(sequence, model.New(0))
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "howdah-soak-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	o := rig.Options{Binary: binary, Dir: dir, Serve: []string{"--replace-after", "15s", "--etcd-quota", etcdQuota}}
	if len(rounds) > 0 {
		network := rounds[0].After.Network
		o.Netns, o.Moving = network == model.Apart || network == model.Moving, network == model.Moving
		if network == model.Apart {
			// Hosts are on one network. Otherwise answers to a replica would not come back through
			// the edge.
			o.Edge = []string{"--masquerade"}
		}
		if network == model.Disks {
			remove, err := makeDisks(dir)
			defer remove()
			if err != nil {
				return err
			}
		}
	}
	r, err := rig.Start(t.Context(), o)
	if err != nil {
		showLogs(t, dir)
		return err
	}
	if err := addRepository(t, r); err != nil {
		return errors.Join(err, r.Close())
	}
	began := time.Now()
	s := &Soak{Rig: r, Figures: figures, Upgrade: upgraded, Log: func(format string, args ...any) {
		t.Logf("%6.1f %s", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}}
	if keep := os.Getenv(dirVariable); keep != "" {
		s.Keep = filepath.Join(keep, "logs", filepath.Base(dir))
	}
	figures.Sequence()
	ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
	defer cancel()
	err = s.Run(ctx, rounds, until)
	if err != nil {
		s.Evidence(ctx)
		showLogs(t, dir)
	}
	if closed := r.Close(); err == nil {
		err = closed
	}
	return err
}

// addRepository gives a rig a repository for backups.
func addRepository(t *testing.T, r *rig.Rig) error {
	dir := filepath.Join(r.Dir, repositoryName)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	add := exec.CommandContext(t.Context(), binary, "--home", r.Home.Dir, "repository", "add", "main", "--directory", dir, "--default")
	if out, err := add.CombinedOutput(); err != nil {
		return fmt.Errorf("add a repository: %w: %s", err, out)
	}
	return nil
}

// makeDisks gives each host a disk of its own.
func makeDisks(dir string) (remove func(), err error) {
	var disks []*rig.Disk
	remove = func() {
		for _, d := range disks {
			if err := d.Remove(); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
	}
	for _, zone := range rig.Zones {
		d, err := rig.MakeDisk(filepath.Join(dir, "home", "hosts", zone))
		if err != nil {
			return remove, err
		}
		disks = append(disks, d)
	}
	return remove, nil
}

// showLogs prints the end of every log of a rig, and keeps all of them in a directory that
// was named.
func showLogs(t *testing.T, dir string) {
	t.Helper()
	if keep := os.Getenv(dirVariable); keep != "" {
		keepLogs(t, dir, filepath.Join(keep, "logs"))
	}
	for _, pattern := range []string{"*.log", "home/hosts/*/members/*/log/patroni.log", "host-*/members/*/log/patroni.log"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			continue
		}
		for _, f := range files {
			if out, err := exec.Command("tail", "-n", "12", f).Output(); err == nil {
				t.Logf("---- %s\n%s", f, out)
			}
		}
	}
}

// keepLogs keeps what a rig wrote, except for data.
func keepLogs(t *testing.T, dir, to string) {
	t.Helper()
	if err := os.MkdirAll(to, 0o755); err != nil {
		t.Log(err)
		return
	}
	// Files change while they are read.
	tar := exec.Command("tar", "-C", dir, "--ignore-failed-read", "--warning=no-file-changed", "-czf", filepath.Join(to, filepath.Base(dir)+".tar.gz"),
		"--exclude=base", "--exclude=pg_wal", "--exclude=etcd", "--exclude=*.img", "--exclude=howdah", ".")
	var exit *exec.ExitError
	if out, err := tar.CombinedOutput(); err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1) {
		t.Logf("keep the logs: %v: %s", err, out)
	}
}
