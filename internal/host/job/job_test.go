package job

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"howdah/internal/model/member"
	"howdah/internal/testkit/hometest"
)

// How jobs end.
func TestEndings(t *testing.T) {
	w := newWorld(t, hometest.New(t))
	w.start(nil)
	var names []string
	for _, c := range []struct {
		kind   string
		state  member.JobState
		final  bool
		detail string
	}{
		{"deed", member.JobDone, false, ""},
		{"silent", member.JobDone, false, ""},
		{"fails", member.JobFailed, false, "there is no room"},
		{"hopeless", member.JobFailed, true, "there is no room"},
		{"panics", member.JobFailed, false, "the job panicked: oh"},
		{"long", member.JobFailed, true, "8194 bytes"},
		{"unheard-of", member.JobFailed, false, `does not know the kind of job: "unheard-of"`},
		{"root", member.JobFailed, true, "as root"},
	} {
		if c.kind == "root" && ordinary() == nil {
			continue
		}
		name := w.ask(c.kind, c.kind, 1)
		names = append(names, name)
		got := w.report(name, ends)
		if got.State != c.state || got.Final != c.final || !strings.Contains(got.Detail, c.detail) || got.Name != name {
			t.Errorf("%s: %+v", c.kind, got)
		}
	}
	for _, name := range names {
		w.cancel(name)
	}
	w.forgotten()
}

// What a control plane asks for that was overtaken is not begun, also by a later agent and after
// the newer job is forgotten.
func TestOldTurns(t *testing.T) {
	w := newWorld(t, hometest.New(t))
	first := w.start(nil)
	turn := func(turn int64, want member.JobState, runs int) {
		t.Helper()
		name := w.ask("deed", "a", turn)
		got := w.report(name, ends)
		if n := strings.Count(w.journal("a"), "run"); got.State != want || n != runs {
			t.Errorf("turn %d: %d runs, %+v", turn, n, got)
		}
		w.cancel(name)
		w.forgotten()
	}
	turn(7, member.JobDone, 1)
	turn(6, member.JobFailed, 1)
	first.kill()
	w.start(nil)
	turn(6, member.JobFailed, 1)
	turn(7, member.JobDone, 2)
	turn(8, member.JobDone, 3)
}

// A host does two jobs at a time. Others wait in the order in which they were asked for, and say so.
func TestOthersWait(t *testing.T) {
	w := newWorld(t, hometest.New(t))
	w.start(nil)
	var names []string
	for n := range 4 {
		names = append(names, w.ask("waits", fmt.Sprint("job-", n), 1))
	}
	w.did("job-0", "run")
	w.did("job-1", "run")
	for _, name := range names[2:] {
		w.report(name, func(r member.JobReport) error {
			if r.State != member.JobRuns || !strings.Contains(r.Detail, "waits") {
				return fmt.Errorf("report %+v", r)
			}
			return nil
		})
	}
	if light := w.ask("deed", "light", 1); w.report(light, ends).State != member.JobDone {
		t.Error("a light one waited")
	}
	w.allow("job-1")
	w.did("job-2", "run")
	if w.journal("job-3") != "" {
		t.Error("three run at once")
	}
	w.cancel(names[0])
	w.did("job-3", "run")
	w.report(names[3], func(r member.JobReport) error {
		if r.Detail != "" {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
	if did := w.journal("job-0"); did != "run, resume false; told to end" {
		t.Errorf("it did: %s", did)
	}
}

// A host that hears no control plane goes on with its jobs, also with a new agent.
func TestWithoutControlPlanes(t *testing.T) {
	h := hometest.New(t)
	w := newWorld(t, h)
	first := w.start(nil)
	w.ask("waits", "a", 1)
	w.did("a", "run, resume false")
	h.StopEtcd()
	first.kill()
	w.start(nil)
	w.did("a", "resume true")
	w.allow("a")
	w.did("a", "went")
}

// A program goes on when the agent is killed, if its kind adopts it, and is killed before the job
// goes on, if not.
func TestProgramsOfAKilledAgent(t *testing.T) {
	h := hometest.New(t)
	for kind, times := range map[string]int{"adopts": 1, "program": 2} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, h)
			first := w.start(nil)
			name := w.ask(kind, "a", 1)
			w.did("a", "one")
			first.kill()
			w.start(nil)
			w.did("a", "resume true; one")
			w.allow("a")
			got := w.report(name, ends)
			var out said
			if err := json.Unmarshal(got.Result, &out); err != nil {
				t.Fatalf("%v: %+v", err, got)
			}
			pids := map[string]bool{}
			for _, word := range strings.Fields(w.journal("a")) {
				if strings.Trim(word, "0123456789;") == "" {
					pids[strings.Trim(word, ";")] = true
				}
			}
			if out.Found != (kind == "adopts") || len(pids) != times || len(out.Lines) != 3 || out.Lines[2] != "three" {
				t.Errorf("it did: %s; %+v", w.journal("a"), out)
			}
			w.cancel(name)
			w.forgotten()
		})
	}
}

// Of a job that is cancelled no process is left, also if that happened while no agent ran.
func TestCancelledPrograms(t *testing.T) {
	h := hometest.New(t)
	for _, kind := range []string{"adopts", "program"} {
		for _, dead := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, dead %t", kind, dead), func(t *testing.T) {
				w := newWorld(t, h)
				first := w.start(nil)
				name := w.ask(kind, "a", 1)
				w.did("a", "one")
				if dead {
					first.kill()
				}
				w.cancel(name)
				if dead {
					w.start(nil)
				}
				w.forgotten()
			})
		}
	}
}
