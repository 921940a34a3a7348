package database

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"howdah/internal/host/database/watchdog"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
)

// keep leaves an assignment on disk as an agent does, changed by an older one, which knows
// fewer fields.
func (w *world) keep(a member.Assignment, without ...string) {
	w.Helper()
	text, err := json.Marshal(a)
	w.Must(err)
	var fields map[string]any
	w.Must(json.Unmarshal(text, &fields))
	for _, name := range without {
		if _, ok := fields[name]; !ok {
			w.Fatalf("an assignment has no field %q", name)
		}
		delete(fields, name)
	}
	text, err = json.Marshal(fields)
	w.Must(err)
	dir := filepath.Join(w.Dir, "members", a.ID)
	w.Must(os.MkdirAll(dir, 0o755))
	w.Must(os.WriteFile(filepath.Join(dir, "assignment.json"), text, 0o600))
}

// config is the member's configuration on disk.
func (w *world) config(id string) string {
	w.Helper()
	text, err := os.ReadFile(filepath.Join(w.Dir, "members", id, patroni.ConfigFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.Fatal(err)
	}
	return string(text)
}

// rendersSoon waits until the configuration has a part.
func (w *world) rendersSoon(id, part string) {
	w.Helper()
	testkit.Eventually(w.T, hosttest.Soon, func() error {
		if text := w.config(id); !strings.Contains(text, part) {
			return fmt.Errorf("no %q in %s", part, text)
		}
		return nil
	})
}

const onlyTLS = "hostnossl all       all                 all     reject"

func withoutTLS(a member.Assignment) member.Assignment {
	a.RequireTLS = false
	return a
}

// An agent of an older release kept and applied an assignment without a field that it did
// not know. The next one has that from disk first, and then the same generation, with the
// field, from etcd.
func TestFieldsThatAnOlderAgentDroppedAreApplied(t *testing.T) {
	t.Parallel()
	w := newWorld(t, waits)
	a := w.Assignment("db-1", 5)
	w.keep(a, "require_tls")
	w.Assign(withoutTLS(a))
	w.run(nil)
	w.Awaits(a.ID, hosttest.Soon, hosttest.Running(5))
	if text := w.config(a.ID); strings.Contains(text, onlyTLS) {
		t.Fatalf("the older agent's configuration has the field: %s", text)
	}
	w.Assign(a)
	w.rendersSoon(a.ID, onlyTLS)
	testkit.Eventually(t, hosttest.Soon, func() error {
		if len(w.Lines(a.ID, "hups")) == 0 {
			return errors.New("Patroni was not told")
		}
		return nil
	})
	if starts := w.Lines(a.ID, "starts"); len(starts) != 1 {
		t.Errorf("%d starts, for what needs none", len(starts))
	}
	text, err := os.ReadFile(w.AssignedPath(a.ID))
	w.Must(err)
	if !strings.Contains(string(text), `"require_tls":true`) {
		t.Errorf("it was not kept: %s", text)
	}
}

// A Patroni that runs since before is told too, without a restart: the older agent's own.
func TestARunningPatroniOfAnOlderAgentIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, waits)
	a := w.Assignment("db-1", 5)
	w.keep(a, "require_tls")
	w.Assign(withoutTLS(a))
	kill := w.runProcess()
	w.Awaits(a.ID, hosttest.Soon, hosttest.Running(5))
	kill()
	w.Assign(a)
	w.run(nil)
	w.rendersSoon(a.ID, onlyTLS)
	if starts := w.Lines(a.ID, "starts"); len(starts) != 1 {
		t.Errorf("%d starts", len(starts))
	}
}

// What is on disk is brought again when it is not what the assignment makes.
func TestAChangedConfigurationIsBroughtAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, waits)
	w.run(func(a *Host) { a.driftEvery = 100 * time.Millisecond })
	a := w.Assignment("db-1", 1)
	w.Assign(a)
	w.Awaits(a.ID, hosttest.Soon, hosttest.Running(1))
	w.rendersSoon(a.ID, onlyTLS)
	path := filepath.Join(w.Dir, "members", a.ID, patroni.ConfigFile)
	w.Must(os.WriteFile(path, []byte(strings.Replace(w.config(a.ID), onlyTLS, "", 1)), 0o600))
	w.rendersSoon(a.ID, onlyTLS)
	w.Must(os.Remove(path))
	w.rendersSoon(a.ID, onlyTLS)
}

// A Patroni that says that it runs with another configuration is told again, until it has
// taken over what it was told; then it is left alone.
func TestAPatroniThatDidNotHearIsToldAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `trap 'echo hup >> hups' HUP
echo $$ >> starts
mkdir -p data/global
printf '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\6\0\0\0' > data/global/pg_control
(trap '' HUP; exec sleep 100000) &
echo $! > data/pid && mv data/pid data/postmaster.pid
while :; do sleep 1 & wait $!; done
`)
	says := func(config string) {
		_, err := w.Store.Client.Put(t.Context(), patroni.MemberKey("db-1", "m1"),
			fmt.Sprintf(`{"state":"running","role":"replica","tags":{"generation":1,"config":%q}}`, config))
		w.Must(err)
	}
	says("00000000")
	w.run(func(a *Host) { a.driftEvery = 300 * time.Millisecond })
	a := w.Assignment("db-1", 1)
	w.Assign(a)
	w.Awaits(a.ID, hosttest.Soon, hosttest.Running(1))
	testkit.Eventually(t, hosttest.Soon, func() error {
		if hups := w.Lines(a.ID, "hups"); len(hups) < 2 {
			return fmt.Errorf("told %d times", len(hups))
		}
		return nil
	})
	var rendered struct {
		Tags struct {
			Config string `json:"config"`
		} `json:"tags"`
	}
	w.Must(json.Unmarshal([]byte(w.config(a.ID)), &rendered))
	says(rendered.Tags.Config)
	var last int
	testkit.Eventually(t, hosttest.Soon, func() error {
		before := last
		last = len(w.Lines(a.ID, "hups"))
		time.Sleep(2 * watchdog.LeaseEvery)
		if now := len(w.Lines(a.ID, "hups")); now != before {
			return fmt.Errorf("told %d times, and then again", now)
		}
		return nil
	})
	if starts := w.Lines(a.ID, "starts"); len(starts) != 1 {
		t.Errorf("%d starts", len(starts))
	}
}

// The library of cluster cache management comes to whatever else a member loads, and to its own
// settings, such as where its WAL goes.
func TestTheCacheLibraryComesToTheRest(t *testing.T) {
	shared := map[string]string{"shared_preload_libraries": "pg_stat_statements,howdah", "archive_command": "/bin/true"}
	own := map[string]string{"archive_command": "push"}
	got := withCache(own, shared)
	if got["shared_preload_libraries"] != "pg_stat_statements,howdah,ccm" || got["archive_command"] != "push" || len(own) != 1 {
		t.Errorf("%v, of %v", got, own)
	}
	if got := withCache(map[string]string{"shared_preload_libraries": "howdah,auto_explain"}, shared); got["shared_preload_libraries"] != "howdah,auto_explain,ccm" {
		t.Error(got)
	}
	if got := withCache(nil, nil); got["shared_preload_libraries"] != "ccm" {
		t.Error(got)
	}
}
