package lab

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"howdah/internal/cli"
	"howdah/internal/lab/run"
	"howdah/internal/lab/target"
)

// A dry run says what e5 would take, and no server is asked.
func TestPlanOfE5(t *testing.T) {
	t.Parallel()
	_, e, err := find("e5")
	if err != nil {
		t.Fatal(err)
	}
	long, err := planOf(run.Options{Experiment: e, Dir: "lab/e5"})
	if err != nil || long.Points != 21 || long.Seconds != 21*420 || long.Clients != 65 || long.Bytes < 5e9 || long.Bytes > 6e9 {
		t.Errorf("%+v, %v", long, err)
	}
	quick, err := planOf(run.Options{Experiment: e.Quickly()})
	if err != nil || quick.Points != 9 || len(quick.Settings) != 3 || quick.Seconds > 120 || quick.Clients != 17 || quick.Bytes > 5e8 {
		t.Errorf("%+v, %v", quick, err)
	}
}

// Faults of a file need a flag, which a run that goes on has, too. Those that are built in need none.
func TestFaultsOfAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "sent.yaml")
	const text = "name: sent\ntitle: {en: Sent}\nquestion: {en: Safe}\nneeds: [howdah, writes, faults]\nruns: 1\neach: [{fault: {kind: kill}}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		arguments []string
		target    target.Target
		want      error
	}{
		{[]string{file}, &target.Howdah{}, errFaults},
		{[]string{"--allow-faults", file}, &target.Howdah{}, nil},
		{[]string{"drill"}, &target.Howdah{}, nil},
		{[]string{file}, &target.Address{}, nil},
	} {
		cmd, f := newRunWith()
		if err := cmd.ParseFlags(c.arguments); err != nil {
			t.Fatal(err)
		}
		names := cmd.Flags().Args()
		all, err := f.work(&cli.Options{}, names)
		if err != nil {
			t.Fatal(err)
		}
		all[0].Target = c.target
		if err := f.mayBreak(names[0], all[0]); !errors.Is(err, c.want) {
			t.Errorf("%q: %v", c.arguments, err)
		}
		if f.faults && !slices.Contains(given(cmd), "--allow-faults=true") {
			t.Errorf("a run that goes on would have %q", given(cmd))
		}
	}
}

// It says how often a snapshot is restored, and how much is made, which takes time besides the loads.
func TestPlanOfE1(t *testing.T) {
	t.Parallel()
	_, e, err := find("e1")
	if err != nil {
		t.Fatal(err)
	}
	p, err := planOf(run.Options{Experiment: e.Quickly()})
	if err != nil || p.Restores != p.Points || p.Built < p.Bytes || p.Bytes == 0 {
		t.Errorf("%+v, %v", p, err)
	}
}
