package agent

import (
	"errors"
	"fmt"
	"strconv"
	"syscall"
	"testing"
	"time"

	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/testkit"
)

// Two servers were started without the module that their configuration names by now: both
// say so, though the settings are there, and serve on. One that is started again has it.
func TestAServerWithoutTheModule(t *testing.T) {
	p := newPair(t)
	reports := func(of member.Assignment, problem member.Problem) {
		t.Helper()
		p.awaits(of.ID, time.Minute, func(r member.Report) error {
			if !r.Ready || r.Problem != problem {
				return fmt.Errorf("report %+v", r)
			}
			return nil
		})
	}
	const startedSQL = "SELECT pg_postmaster_start_time()::text"
	before, err := p.ask(p.primary, startedSQL)
	p.must(err)
	reports(p.primary, member.None) // it is not wanted
	p.primary.Cluster.Parameters = map[string]string{"shared_preload_libraries": "pg_stat_statements,howdah"}
	p.standby.Cluster = p.primary.Cluster
	document, err := p.primary.Cluster.Document()
	p.must(err)
	_, err = p.store.Client.Put(t.Context(), patroni.ConfigKey("db-1"), string(document))
	p.must(err)
	p.primary.Generation, p.standby.Generation = 2, 2
	p.assign(p.primary)
	p.assign(p.standby)
	reports(p.primary, member.NoModule)
	reports(p.standby, member.NoModule)
	testkit.Eventually(t, time.Minute, func() error {
		waits, err := p.ask(p.standby, "SELECT pending_restart::text FROM pg_settings WHERE name = 'shared_preload_libraries'")
		if err == nil && waits != "true" {
			err = errors.New("Patroni has not written the setting yet")
		}
		return err
	})
	pid, err := strconv.Atoi(p.lines(p.standby.ID, "data/postmaster.pid")[0])
	p.must(err)
	p.must(syscall.Kill(pid, syscall.SIGINT)) // Patroni starts it again
	reports(p.standby, member.None)
	p.inSync("m1", "m2")
	reports(p.primary, member.NoModule)
	if now, err := p.ask(p.primary, startedSQL); err != nil || now != before {
		t.Errorf("the primary was started again: %s, %s, %v", before, now, err)
	}
}
