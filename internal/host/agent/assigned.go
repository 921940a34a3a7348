package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"howdah/internal/model/member"
	"howdah/internal/system/plainfile"
)

const (
	// assignedDir is the agent's own: what members were told last decides what root does
	// for them, also without a control plane.
	assignedDir = "assigned"
	// formerFile is where a release before kept it: in the member's directory, which is not ours.
	formerFile = "assignment.json"
)

// OwnPath is a path that only the agent gets to, on the disk that members have their directories
// on.
func (a *Agent) OwnPath(name string) string { return a.Path(assignedDir, name) }

func (a *Agent) assignedPath(id string) string { return a.OwnPath(id + ".json") }

// Order is an assignment with the text that it was told in. The text has the home's seal, and
// fields that this release may not know: a home that was restored is told it as it was.
type Order struct {
	member.Assignment
	text json.RawMessage
}

// readOrder reads the text of an order that a member was told.
func readOrder(text []byte, id string) (Order, error) {
	o := Order{text: text}
	if err := json.Unmarshal(text, &o.Assignment); err != nil {
		return o, err
	}
	return o, checkAssignment(o.Assignment, id)
}

// Told is the text of an order that has a seal: one without has nothing to show.
func (o Order) Told() json.RawMessage {
	if o.Seal == "" {
		return nil
	}
	return o.text
}

// remember keeps the assignment on disk, for a start without a control plane.
func (m *Member) remember() error {
	if m.Want.Want == member.Absent {
		return nil
	}
	if err := m.agent.MakeMemberDir(m.ID); err != nil {
		return err
	}
	text := []byte(m.order)
	if len(text) == 0 {
		var err error
		if text, err = json.Marshal(m.Want); err != nil {
			return err
		}
	}
	if err := plainfile.Replace(m.agent.assignedPath(m.ID), text, 0o600); err != nil {
		return err
	}
	_ = os.Remove(filepath.Join(m.Dir(), formerFile)) // it counts no more
	return nil
}

// forget removes what was remembered of a member that is gone.
func (m *Member) forget() error {
	if err := os.Remove(m.agent.assignedPath(m.ID)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("forget %s: %w", m.ID, err)
	}
	return nil
}

// Remembered is what a member was told last; os.ErrNotExist: nothing.
func (a *Agent) Remembered(id string) (Order, error) {
	text, err := os.ReadFile(a.assignedPath(id))
	if errors.Is(err, os.ErrNotExist) {
		text, err = readOwn(filepath.Join(a.MemberDir(id), formerFile))
	}
	if err != nil {
		return Order{}, err
	}
	return readOrder(text, id)
}

var errForeign = errors.New("somebody else wrote it")

// readOwn reads a file that lies where somebody else may write, if we have written it.
func readOwn(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(owner.Uid) != os.Geteuid() || owner.Nlink != 1 || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: %w", path, errForeign)
	}
	return io.ReadAll(io.LimitReader(file, plainfile.Most))
}

// sameContent: two assignments say the same, whatever their seals are. They are compared as they
// are kept, where an empty list and none are one.
func sameContent(a, b member.Assignment) bool {
	one, errOne := json.Marshal(a.Unsealed())
	other, errOther := json.Marshal(b.Unsealed())
	return errOne == nil && errOther == nil && bytes.Equal(one, other)
}
