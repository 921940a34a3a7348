package pgpool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"howdah/internal/host/pace"
	"howdah/internal/host/proc"
	"howdah/internal/host/proc/table"
	"howdah/internal/lab/own"
)

// record is what has to be taken away. It is on the disk before anything is made.
type record struct {
	// Directory is pgpool's own. All its processes work there, and no other does.
	Directory string `json:"directory"`
}

const (
	// folder is in the directory of a run. The record is there, and the password for clients.
	folder     = "pgpool"
	recordName = "pgpool.json"
	// prefix is what the name of pgpool's own directory begins with.
	prefix = "howdah-pgpool-"
	// stopWithin is how long pgpool may take to end by itself.
	stopWithin = 10 * time.Second
	lookEvery  = 20 * time.Millisecond
)

// errStays says that a process does not end.
var errStays = errors.New("pgpool does not end")

// Clear stops the pgpool that a lab left which was killed, and removes its files. dir is that of the run.
// It is idempotent.
func Clear(ctx context.Context, dir string) error {
	path := filepath.Join(dir, folder, recordName)
	text, err := own.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var r record
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return fmt.Errorf("read which pgpool was left: %w", err)
	}
	if !filepath.IsAbs(r.Directory) || !strings.HasPrefix(filepath.Base(r.Directory), prefix) {
		return fmt.Errorf("read which pgpool was left: %w: %q", own.ErrForeign, r.Directory)
	}
	if err := r.stop(ctx); err != nil {
		return err
	}
	// The record goes last.
	if err := errors.Join(os.RemoveAll(r.Directory), os.RemoveAll(filepath.Join(dir, folder, "pgpass"))); err != nil {
		return fmt.Errorf("remove pgpool's files: %w", err)
	}
	if err := os.RemoveAll(filepath.Join(dir, folder)); err != nil {
		return fmt.Errorf("forget pgpool: %w", err)
	}
	return nil
}

// processes lists those of pgpool. One that has ended, and waits for its parent, is none.
func (r record) processes() (all []table.Entry, err error) {
	entries, err := table.System.All()
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if dir, err := table.System.Dir(e.PID); err == nil && dir == r.Directory {
			all = append(all, e)
		}
	}
	return all, nil
}

// stop asks pgpool to end, which takes its shared memory away, too, and kills what stays.
func (r record) stop(ctx context.Context) error {
	// It ends what it is to end also if the run is broken off.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*stopWithin)
	defer cancel()
	began := time.Now()
	for asked := false; ; {
		all, err := r.processes()
		if err != nil || len(all) == 0 {
			return err
		}
		switch late := time.Since(began) > stopWithin; {
		case late || !headed(all):
			for _, e := range all {
				err = errors.Join(err, signal(e.ID, syscall.SIGKILL))
			}
		case !asked:
			err, asked = signal(head(all).ID, syscall.SIGINT), true
		}
		if err != nil {
			return fmt.Errorf("stop pgpool: %w", err)
		}
		if !pace.Sleep(ctx, lookEvery) {
			return fmt.Errorf("%w: %d processes are there", errStays, len(all))
		}
	}
}

// head is the process that started the others.
func head(all []table.Entry) table.Entry {
	pids := map[int]bool{}
	for _, e := range all {
		pids[e.PID] = true
	}
	for _, e := range all {
		if !pids[e.Parent] {
			return e
		}
	}
	return all[0]
}

// headed reports whether the process that starts the others is there: it alone leads their group.
func headed(all []table.Entry) bool {
	h := head(all)
	return h.PID == h.Group
}

// signal sends a signal to exactly this process, if it is still there.
func signal(p proc.Process, s syscall.Signal) error {
	if err := proc.Signal(p, s); !errors.Is(err, proc.ErrGone) {
		return err
	}
	return nil
}
