package database

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
)

// follows has a PostgreSQL that follows another one, unless there is one already.
var follows = strings.Replace(serves, "if !", "touch data/standby.signal\nif !", 1)

// configured is the name in the configuration of a member's Patroni.
func (w *world) configured(id string) string {
	text, _ := os.ReadFile(filepath.Join(w.Dir, "members", id, patroni.ConfigFile))
	var conf struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(text, &conf) // it is not there yet
	return conf.Name
}

// A member of a database that follows another one gets another name: Patroni is started
// again with its keys, and PostgreSQL goes on. Of all others Patroni keeps its name.
func TestAFollowerIsRenamedBesideItsPostgreSQL(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		script  string
		follows bool
		want    string
	}{
		{"follows", follows, true, "db-1.m1"},
		{"a primary", serves, false, "m1"},
		{"was promoted just now", serves, true, "m1"},
		{"shall not follow any more", follows, false, "m1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tt.script)
			w.run(nil)
			a := w.startPrimary()
			lease, err := w.Grant(t.Context(), "db-1", true)
			w.Must(err)
			before := w.Lines(a.ID, "data/postmaster.pid")[0]

			a.Generation, a.OwnName = 2, true
			if tt.follows {
				a.Cluster.Upstream = &patroni.Upstream{Host: "10.0.0.1", Port: 5432, Slot: "s"}
			}
			w.Assign(a)
			if tt.want == "m1" {
				w.passed("db-2")
				w.Awaits(a.ID, hosttest.Soon, func(r member.Report) error {
					if r.Rendered < 2 && r.Generation < 2 && tt.want != w.configured(a.ID) {
						return fmt.Errorf("report %+v", r)
					}
					return nil
				})
			} else {
				w.restarted(a.ID, 2)
			}
			if got := w.configured(a.ID); got != tt.want {
				t.Errorf("Patroni is called %s, want %s", got, tt.want)
			}
			leader, held := w.Get(patroni.LeaderKey("db-1"))
			if leader != tt.want || held == 0 || (held == int64(lease)) != (tt.want == "m1") {
				t.Errorf("%q leads by the lease %x, want %q; the old lease is %x", leader, held, tt.want, lease)
			}
			w.Awaits(a.ID, hosttest.Soon, func(r member.Report) error {
				if !r.Patroni || !r.Postgres {
					return fmt.Errorf("report %+v", r)
				}
				return nil
			})
			if after := w.Lines(a.ID, "data/postmaster.pid")[0]; after != before {
				t.Error("PostgreSQL was started again")
			}
			if all := w.incidents("db-1"); len(all) > 0 {
				t.Errorf("incidents %+v", all)
			}
		})
	}
}

// What the agent that renamed left half done is ended by the next one: the name on disk
// says whether the keys were moved.
func TestARenameThatWasCutShortIsEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, follows)
	_, stop := w.run(nil)
	a := w.startPrimary()
	_, err := w.Grant(t.Context(), "db-1", true)
	w.Must(err)
	stop()
	w.kill(a.ID, "starts")
	a.Generation, a.OwnName = 2, true
	a.Cluster.Upstream = &patroni.Upstream{Host: "10.0.0.1", Port: 5432, Slot: "s"}
	w.Assign(a)
	before := w.Lines(a.ID, "data/postmaster.pid")[0]
	w.run(nil)
	testkit.Eventually(t, hosttest.Soon, func() error {
		leader, _ := w.Get(patroni.LeaderKey("db-1"))
		if leader != "db-1.m1" || w.configured(a.ID) != leader {
			return fmt.Errorf("%q leads, Patroni is called %q", leader, w.configured(a.ID))
		}
		return nil
	})
	if after := w.Lines(a.ID, "data/postmaster.pid")[0]; after != before {
		t.Error("PostgreSQL was started again")
	}
}
