package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"howdah/internal/host/job"
	"howdah/internal/host/proc"
	"howdah/internal/model/member"
	"howdah/internal/state"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
)

// whoami has a program say whom it runs as, in the directory of that user.
func (k *sleepers) whoami(ctx context.Context, call job.Call) (any, error) {
	dir := k.agent.Path("members", "scratch")
	if err := k.agent.Give(dir); err != nil {
		return nil, err
	}
	user := k.agent.OwnerOf(dir)
	if _, err := call.Place(user); err != nil {
		return nil, err
	}
	command := proc.Command{Path: "/usr/bin/id", Args: []string{"-u"}, Env: []string{"PATH=/usr/bin:/bin"}}
	if user != nil {
		command.User = &proc.User{UID: uint32(user.UID), GID: uint32(user.GID)}
	}
	var said string
	exit, err := call.Process(ctx, job.Program{Name: "id", Command: command, Line: func(line string) { said += line }})
	if err == nil && exit.Code != 0 {
		err = fmt.Errorf("id %s", exit)
	}
	return said, errors.Join(err, os.Remove(dir))
}

// An agent does the jobs of its kind, and nothing of one is left when it is forgotten.
func TestJobs(t *testing.T) {
	d := newDorm(t)
	d.run()
	const name = "copy-1/fill"
	d.Put(state.Job(hosttest.Name, name), member.Job{Name: name, Host: hosttest.Name, Kind: "whoami", Turn: 1, At: time.Now()})
	testkit.Eventually(t, hosttest.Soon, func() error {
		r, err := state.Get[member.JobReport](t.Context(), d.Store, state.JobReport(hosttest.Name, name))
		if err != nil || r.Value.State != member.JobDone {
			return fmt.Errorf("%+v, %w", r.Value, err)
		}
		var uid string
		if err := json.Unmarshal(r.Value.Result, &uid); err != nil || uid == "0" || uid == "" {
			t.Errorf("it ran as %q: %v", uid, err)
		}
		return nil
	})
	_, err := d.Store.Commit(t.Context(), state.Delete(state.Job(hosttest.Name, name)))
	d.Must(err)
	testkit.Eventually(t, hosttest.Soon, func() error {
		left, err := filepath.Glob(filepath.Join(d.Dir, jobsDir, "*", "*"))
		trash, bad := os.ReadDir(d.TrashDir())
		if err = errors.Join(err, bad); err != nil || len(left)+len(trash) > 0 {
			return fmt.Errorf("%v and %v are left, %w", left, trash, err)
		}
		return nil
	})
}
