package database

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/engine/patroni/config"
	"howdah/internal/engine/patroni/program"
	"howdah/internal/failover/fence"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
	"howdah/internal/testkit"
)

// takesKeys is a program with the modules of the real Patroni and its client of etcd: m1,
// whose leader key is gone, takes it again in each of the databases that are named, in
// an attempt to acquire it or as a key that is renewed. It prints where it has it then.
const takesKeys = `
import json, sys
from types import SimpleNamespace
import sitecustomize
from patroni import ha
from patroni.dcs import Leader, Member, get_dcs

hosts, dir, how = sys.argv[1:4]
real = sitecustomize.may_lead_on
for case in sys.argv[4:]:
    database, serves, between = case.split(':')
    dcs = get_dcs({
        'etcd3': {'hosts': hosts.split(','), 'protocol': 'https', 'cacert': dir + '/ca.crt', 'cert': dir + '/tls.crt', 'key': dir + '/tls.key'},
        'scope': database, 'name': database + '.m1', 'ttl': 20, 'loop_wait': 1, 'retry_timeout': 3})

    def may_lead_on(client, retry):
        found = real(client, retry)
        if between:
            client.put('/howdah/passed/' + database, json.dumps({'member': 'm2', 'old': 'm1'}))
        return found
    sitecustomize.may_lead_on = may_lead_on
    s = ha.Ha.__new__(ha.Ha)
    s.dcs, s.watchdog, s.set_is_leader = dcs, SimpleNamespace(keepalive=lambda: None), lambda value: None
    s.state_handler = SimpleNamespace(is_primary=lambda: serves == 'serves')
    s._failsafe_config = lambda: None
    s.cluster = SimpleNamespace(leader=Leader('7', 'a lease that ended', Member('7', database + '.m1', 'a lease that ended', {})))
    taken = s.acquire_lock() if how == 'acquire' else s.update_lock()
    print(database, 'taken' if taken else 'left', flush=True)
    if taken:
        dcs._client.deleterange(dcs.leader_path)
`

// A primary whose leader key is gone takes it again, unless a gate let another member
// through meanwhile, which may be the primary at any moment.
func TestAPrimaryTakesItsKeyAgain(t *testing.T) {
	t.Parallel()
	program, err := program.Find()
	if err != nil {
		testkit.Missing(t, err.Error())
	}
	w := newWorld(t, waits)
	const third = `{"leader":"m3","sync_standby":null}`
	const own, anyOfTwo, others = `{"leader":"m1","sync_standby":"m2"}`, `{"leader":"m1","sync_standby":"m2,m3","quorum":1}`, `{"leader":"m2","sync_standby":null}`
	m2, m1 := `{"member":"m2","old":"m1"}`, `{"member":"m1","old":"m2"}`
	cases := []struct {
		name    string
		writes  []string // whose synchronous state, who was let through, who served; in this order
		standby bool     // PostgreSQL takes no writes
		between bool     // m2 is let through between the look and the deed
		want    string
	}{
		{name: "nobody was let through", writes: []string{"sync", own}, want: "taken"},
		{name: "there never was a synchronous state", want: "taken"},
		{name: "it was let through itself", writes: []string{"sync", own, "passed", m1}, want: "taken"},
		{name: "another one was let through", writes: []string{"sync", anyOfTwo, "passed", m2}, want: "left"},
		{name: "another one was let through, in priority mode", writes: []string{"sync", others, "passed", m2}, want: "left"},
		{name: "… and it has led on all the same", writes: []string{"passed", m2, "sync", own}, want: "taken"},
		{name: "another one was let through, when there was a synchronous state", writes: []string{"passed", m2}, want: "taken"},
		{name: "another one serves, which nobody has to remember", writes: []string{"lead", `{"member":"m2"}`, "sync", others}, want: "left"},
		{name: "another one's gate was killed", writes: []string{"lead", `{"member":"m1"}`, "sync", others}, want: "taken"},
		{name: "another one serves, and the gate of a third one was killed", writes: []string{"lead", `{"member":"m2"}`, "sync", third}, want: "left"},
		{name: "another one is let through at this moment", writes: []string{"sync", anyOfTwo}, between: true, want: "left"},
		{name: "a standby, which has a gate", writes: []string{"sync", anyOfTwo, "passed", m2}, standby: true, want: "taken"},
	}
	dir := t.TempDir()
	w.Must(os.WriteFile(filepath.Join(dir, patroni.WholeFile), config.Whole, 0o600))
	for _, how := range []string{"acquire", "renew"} {
		args := []string{"-c", takesKeys, strings.Join(config.EtcdHosts(w.Etcd), ","), w.CertDir, how}
		var want strings.Builder
		for i, c := range cases {
			database := "db-" + how + string(rune('a'+i))
			keys := map[string]string{"sync": patroni.SyncKey(database), "passed": state.Passed(database), "lead": state.Lead(database)}
			for n := 0; n < len(c.writes); n += 2 {
				text := c.writes[n+1]
				if c.writes[n] == "sync" {
					text = strings.NewReplacer("m1", database+".m1", "m2", database+".m2", "m3", database+".m3").Replace(text)
				}
				_, err := w.Store.Client.Put(t.Context(), keys[c.writes[n]], text)
				w.Must(err)
			}
			serves, between := "serves", ""
			if c.standby {
				serves = ""
			}
			if c.between {
				between = "now"
			}
			args = append(args, strings.Join([]string{database, serves, between}, ":"))
			want.WriteString(database + " " + c.want + "\n")
		}
		cmd := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(program), "python3"), args...)
		cmd.Env = append(os.Environ(), "PYTHONPATH="+dir)
		var complaints strings.Builder
		cmd.Stderr = &complaints
		out, err := cmd.Output()
		if err == nil && string(out) == want.String() {
			continue
		}
		t.Errorf("%s: %v %s", how, err, complaints.String())
		got := strings.Split(string(out), "\n")
		for i, line := range strings.Split(strings.TrimSpace(want.String()), "\n") {
			if i >= len(got) || got[i] != line {
				t.Errorf("%s, %s: want %s, got %q", how, cases[i].name, line, got[min(i, len(got)-1)])
			}
		}
	}
}

// The real Patroni of a primary whose leader key was deleted does not take it again when
// its standby was let through meanwhile: it steps down. (Which of the two leads then is up
// to their gates, which these members have not.)
func TestAnOvertakenPrimaryLeavesItsKey(t *testing.T) {
	p := newPair(t)
	passed, err := json.Marshal(fence.Passed{Database: "db-1", Member: "m2", Old: "m1"})
	p.Must(err)
	var before string
	// As a gate does it: with /sync unchanged, and written again, so that nothing which the
	// primary has begun can change it any more.
	testkit.Eventually(t, time.Minute, func() error {
		l := p.inSync("m1", "m2")
		if before, err = p.ask(p.primary, "SELECT pg_postmaster_start_time()::text"); err != nil {
			return err
		}
		key := patroni.SyncKey("db-1")
		sync, _ := p.Get(key)
		answer, err := p.Store.Client.Txn(t.Context()).
			If(clientv3.Compare(clientv3.ModRevision(key), "=", l.SyncRevision)).
			Then(clientv3.OpPut(state.Passed("db-1"), string(passed)), clientv3.OpPut(key, sync), clientv3.OpDelete(patroni.LeaderKey("db-1"))).
			Commit()
		if err == nil && !answer.Succeeded {
			err = errors.New("/sync has changed")
		}
		return err
	})
	testkit.Eventually(t, time.Minute, func() error {
		now, err := p.ask(p.primary, "SELECT pg_postmaster_start_time()::text")
		if err == nil && now == before {
			err = errors.New("it serves on")
		}
		return err
	})
}

// Where nobody was let through, the same primary has its key again at once, and serves on.
func TestAPrimaryWhoseKeyWasDeletedServesOn(t *testing.T) {
	p := newPair(t)
	l := p.inSync("m1", "m2")
	before, err := p.ask(p.primary, "SELECT pg_postmaster_start_time()::text")
	p.Must(err)
	_, err = p.Store.Client.Delete(t.Context(), patroni.LeaderKey("db-1"))
	p.Must(err)
	testkit.Eventually(t, time.Minute, func() error {
		now, err := fence.Read(t.Context(), p.Store.Client, "db-1")
		if err == nil && (now.Leader != "m1" || now.LeaderRevision <= l.LeaderRevision) {
			err = errors.New("it has not taken its key again")
		}
		return err
	})
	if now, err := p.ask(p.primary, "SELECT pg_postmaster_start_time()::text"); err != nil || now != before {
		t.Errorf("it was started anew: %s, %s, %v", before, now, err)
	}
	p.inSync("m1", "m2")
}
