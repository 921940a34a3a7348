package database

import (
	"os"
	"path/filepath"
	"testing"

	"howdah/internal/host/agent"
)

// The gate is there for everybody, follows the program when that is replaced, and is a copy
// where not everybody may run the program.
func TestPlacingTheGate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := &Host{Agent: &agent.Agent{Config: agent.Config{Dir: dir}}}
	if a.gateCommand() != nil || a.placeGate() != nil {
		t.Error("an agent without a program has a gate")
	}
	a.Program = filepath.Join(dir, "howdah")
	for _, c := range []struct {
		text string
		mode os.FileMode
	}{{"one", 0o755}, {"one", 0o755}, {"two", 0o700}, {"three", 0o755}} {
		next := a.Program + ".next"
		if err := os.WriteFile(next, []byte(c.text), c.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, a.Program); err != nil {
			t.Fatal(err)
		}
		for range 2 { // an agent that starts again
			if err := a.placeGate(); err != nil {
				t.Fatal(err)
			}
		}
		text, err := os.ReadFile(a.gateCommand()[0])
		info, statErr := os.Stat(a.gateCommand()[0])
		if err != nil || statErr != nil || string(text) != c.text || info.Mode().Perm() != 0o755 {
			t.Errorf("%q %v, %v, %v; want %q", text, info, err, statErr, c.text)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
	a.Program = filepath.Join(dir, "none")
	if a.placeGate() == nil {
		t.Error("a program that is not there is placed")
	}
}
