package database

import (
	"errors"
	"fmt"
	"io"
	"os"

	"howdah/internal/failover/gate"
)

// gateFile is our own program as members find it: the database's user may not get to
// where it is installed.
const gateFile = "gate"

// program is our own program as members find it, or "" if the agent was given none.
func (a *Host) program() string {
	if a.Program == "" {
		return ""
	}
	return a.Path(gateFile)
}

// gateCommand is what Patroni asks before it promotes a member, or nil if the agent
// was given no program.
func (a *Host) gateCommand() []string {
	if a.Program == "" {
		return nil
	}
	return []string{a.program(), gate.Command}
}

// placeGate puts the program where members find it, in one step: a gate may be started
// at any moment. One of an older release is replaced.
func (a *Host) placeGate() error {
	if a.Program == "" {
		return nil
	}
	next := a.Path("." + gateFile)
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("place the gate: %w", err)
	}
	info, err := os.Stat(a.Program)
	if err != nil {
		return fmt.Errorf("place the gate: %w", err)
	}
	// A link costs nothing, where everybody may run the program and it is on this disk.
	if info.Mode().Perm()&0o005 != 0o005 || os.Link(a.Program, next) != nil {
		err = copyProgram(a.Program, next)
	}
	if err == nil {
		err = os.Rename(next, a.Path(gateFile))
	}
	// Of two names of one file a rename removes neither.
	_ = os.Remove(next)
	if err != nil {
		return fmt.Errorf("place the gate: %w", err)
	}
	return nil
}

func copyProgram(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Chmod(0o755), target.Sync(), target.Close())
}
