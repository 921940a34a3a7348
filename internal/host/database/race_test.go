package database

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"howdah/internal/engine/patroni/config"
	"howdah/internal/engine/patroni/program"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
	"howdah/internal/testkit"
)

// races is a program with the modules of the real Patroni: it prints of m1, a standby in each of
// the databases that are named, whether it races for the leader key. Of the checks of the real
// Patroni all count but those of positions.
const races = `
import sys
from types import SimpleNamespace
import sitecustomize
from patroni import ha
from patroni.dcs import get_dcs

hosts, dir = sys.argv[1:3]
for database in sys.argv[3:]:
    dcs = get_dcs({
        'etcd3': {'hosts': hosts.split(','), 'protocol': 'https', 'cacert': dir + '/ca.crt', 'cert': dir + '/tls.crt', 'key': dir + '/tls.key'},
        'scope': database, 'name': database + '.m1', 'ttl': 20, 'loop_wait': 1, 'retry_timeout': 3})
    s = ha.Ha.__new__(ha.Ha)
    s.dcs, s.cluster, s.old_cluster = dcs, dcs.get_cluster(), dcs.get_cluster()
    before, failsafe = s.cluster, dcs.failsafe
    s.state_handler = SimpleNamespace(name=database + '.m1', is_starting=lambda: False, is_primary=lambda: False)
    s.patroni = SimpleNamespace(nofailover=False, api=SimpleNamespace(connection_string='https://m1/patroni'))
    s.watchdog = SimpleNamespace(is_healthy=True)
    s._released_leader_key_timestamp = 0
    s.is_paused = s.is_quorum_commit_mode = lambda: False
    s.is_failsafe_mode = s.is_synchronous_mode = lambda: True
    s.sync_mode_is_active = lambda: not s.cluster.sync.is_empty
    s._is_healthiest_node = lambda *args, **kwargs: True
    print(database, 'races' if s.is_healthiest_node() else 'waits', flush=True)
    assert s.cluster is before and dcs.failsafe is failsafe
`

// A standby races if /sync names it, whatever /failsafe says. It also does if it served last and
// what /sync names is a member that was not let through: the gate decides.
func TestWhoRaces(t *testing.T) {
	t.Parallel()
	program, err := program.Find()
	if err != nil {
		testkit.Missing(t, err.Error())
	}
	w := newWorld(t, waits)
	const (
		own, standby, others = `{"leader":"m1","sync_standby":null}`, `{"leader":"m2","sync_standby":"m1"}`, `{"leader":"m2","sync_standby":null}`
		second               = `{"leader":"m2","sync_standby":"m3"}`
		m1, m2               = `{"member":"m1"}`, `{"member":"m2"}`
		alone                = `{"m2":"https://m2/patroni"}`
	)
	cases := []struct {
		name   string
		writes []string // keys and their values
		want   string
	}{
		{name: "there never was a synchronous state", want: "races"},
		{name: "it was the primary", writes: []string{"sync", own}, want: "races"},
		{name: "a standby in sync", writes: []string{"sync", standby, "lead", m2}, want: "races"},
		{name: "… that /failsafe leaves out", writes: []string{"sync", standby, "lead", m2, "failsafe", alone}, want: "races"},
		{name: "another one leads alone", writes: []string{"sync", others, "lead", m2}, want: "waits"},
		{name: "… and nobody was seen to serve", writes: []string{"sync", others}, want: "waits"},
		{name: "another one's gate was killed", writes: []string{"sync", others, "lead", m1}, want: "races"},
		{name: "… which /failsafe names alone", writes: []string{"sync", others, "lead", m1, "failsafe", alone}, want: "races"},
		{name: "… after it was let through last itself", writes: []string{"sync", others, "lead", m1, "passed", m1}, want: "races"},
		{name: "another one was let through", writes: []string{"sync", others, "lead", m1, "passed", m2}, want: "waits"},
		{name: "another one led, with a standby", writes: []string{"sync", second, "lead", m1}, want: "waits"},
		{name: "who served last is not to be read", writes: []string{"sync", others, "lead", "{"}, want: "waits"},
	}
	dir := t.TempDir()
	w.Must(os.WriteFile(filepath.Join(dir, patroni.WholeFile), config.Whole, 0o600))
	args := []string{"-c", races, strings.Join(config.EtcdHosts(w.Etcd), ","), w.CertDir}
	for i, c := range cases {
		database := "db-race" + string(rune('a'+i))
		keys := map[string]string{
			"sync": patroni.SyncKey(database), "failsafe": patroni.FailsafeKey(database),
			"passed": state.Passed(database), "lead": state.Lead(database),
		}
		for n := 0; n < len(c.writes); n += 2 {
			text := c.writes[n+1]
			if c.writes[n] == "sync" || c.writes[n] == "failsafe" {
				text = strings.NewReplacer(`"m1`, `"`+database+".m1", `"m2`, `"`+database+".m2", `"m3`, `"`+database+".m3").Replace(text)
			}
			_, err := w.Store.Client.Put(t.Context(), keys[c.writes[n]], text)
			w.Must(err)
		}
		args = append(args, database)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(program), "python3"), args...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+dir)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v %s", err, complaints.String())
	}
	for i, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		if _, got, _ := strings.Cut(line, " "); got != cases[i].want {
			t.Errorf("%s: it %s, want that it %s", cases[i].name, got, cases[i].want)
		}
	}
}
