package config

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"howdah/internal/engine/patroni/program"
	"howdah/internal/model/patroni"
	"howdah/internal/testkit"
)

// hearsWords is a program with the modules of the real Patroni: a standby that etcd tells
// who leads, and the primary that it may live without etcd. It prints whom the standby
// follows.
const hearsWords = `
import time
from types import SimpleNamespace
from patroni.postgresql import config
from patroni import ha
from patroni.dcs import Cluster, Leader, Member, Status, SyncState

clock = [1000.0]
time.time = lambda: clock[0]

def standby():
    s = ha.Ha.__new__(ha.Ha)
    s.cluster = s.old_cluster = None
    s.dcs = SimpleNamespace(ttl=20)
    s._failsafe = ha.Failsafe(s.dcs)
    s.is_failsafe_mode, s.has_lock, s.set_is_leader = lambda: True, lambda info=True: False, lambda value: None
    return s

def look(s, key, sync):
    leader = Leader('7', 'lease', Member('7', 'm1', 'lease', {})) if key else None
    version = sync and str(sync)
    s.dcs.get_cluster = lambda: Cluster(None, None, leader, Status.empty(), [], None, SyncState(version, 'm1', 'm2', 0), None, None)
    s.load_cluster_from_dcs()
    return s.cluster.leader_name or 'nobody'

def word(s):
    s._failsafe.update({'name': 'm1', 'conn_url': 'postgres://m1', 'api_url': 'https://m1'})

def after(seconds):
    clock[0] += seconds

for name in ('without a word', 'the key ended by itself', 'and the word is repeated', 'its word is old', 'revoked', 'revoked before a word', 'no standby counts'):
    s = standby()
    sync = None if name == 'no standby counts' else 5
    said = [look(s, True, sync)]
    if name == 'without a word':
        said.append(look(s, False, sync))
    elif name == 'revoked before a word':
        said.append(look(s, False, 6))
    else:
        word(s)
        said.append(look(s, True, sync))
        after(3)
        said.append(look(s, False, 6 if name == 'revoked' else sync))
        after(4)
        if name == 'and the word is repeated':
            word(s)
        said.append(look(s, False, 6 if name == 'revoked' else sync))
        after(2)
        said.append(look(s, False, 6 if name == 'revoked' else sync))
    print(name + ':', *said)
`

// inPatroni runs a program with the modules of Patroni as members run it.
func inPatroni(t *testing.T, text string) (string, error) {
	t.Helper()
	installed, err := program.Find()
	if err != nil {
		testkit.Missing(t, err.Error())
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, patroni.WholeFile), Whole, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(installed), "python3"), "-c", text)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+dir)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// A standby keeps its promise to a primary without etcd, and takes over from one that was
// proved dead.
func TestTheWordOfAPrimaryWithoutEtcd(t *testing.T) {
	out, err := inPatroni(t, hearsWords)
	want := strings.TrimPrefix(`
without a word: m1 nobody
the key ended by itself: m1 m1 m1 m1 nobody
and the word is repeated: m1 m1 m1 m1 m1
its word is old: m1 m1 m1 m1 nobody
revoked: m1 m1 nobody nobody nobody
revoked before a word: m1 nobody
no standby counts: m1 m1 m1 m1 nobody
`, "\n")
	if err != nil || out != want {
		t.Errorf("%v; got\n%s\nwant\n%s", err, out, want)
	}
}

// asksAgain is a program with the modules of the real Patroni: its REST server, whose
// PostgreSQL answers the fourth question only. It prints how often it was asked, and
// after what time in all.
const asksAgain = `
from types import SimpleNamespace
from patroni import api, utils
from patroni.exceptions import PostgresConnectionException

slept = []
for c in (utils.Retry, api.Retry):
    make = c.__init__
    c.__init__ = lambda self, *args, make=make, **kwargs: (make(self, *args, **kwargs), setattr(self, 'sleep_func', slept.append))[0]

def asked(retry):
    slept.clear()
    questions = []
    def query(sql):
        questions.append(sql)
        if len(questions) < 4:
            raise PostgresConnectionException('the database system is starting up')
        return [('up',)]
    handler = api.RestApiHandler.__new__(api.RestApiHandler)
    handler.server = SimpleNamespace(query=query)
    try:
        answer = handler.query('SELECT 1', retry=retry)[0][0]
    except Exception as e:
        answer = e
    print(f'{answer}: asked {len(questions)} times, waited {sum(slept):.1f} s')

asked(True)
asked(False)
`

// Members that ask each other before one is promoted have an answer as soon as PostgreSQL
// can give one.
func TestAServerThatStartsIsAskedSoonAgain(t *testing.T) {
	out, err := inPatroni(t, asksAgain)
	want := "up: asked 4 times, waited 0.3 s\nthe database system is starting up: asked 1 times, waited 0.0 s\n"
	if err != nil || !strings.HasSuffix(out, want) {
		t.Errorf("%v; got\n%s\nwant\n%s", err, out, want)
	}
}

// startsSoon is a program with the modules of the real Patroni, and a server that opens its port and
// accepts clients after so many questions. It prints what Patroni makes of it, and how long it slept.
const startsSoon = `
import time
from types import SimpleNamespace
from patroni import postgresql
from patroni.postgresql import PgIsReadyStatus as Ready, PostgresqlState

slept, clock = [], [1000.0]
def sleep(seconds):
    slept.append(seconds)
    clock[0] += seconds
time.sleep, time.time = sleep, lambda: clock[0]

def start(name, *answers, cancelled=False, timeout=60):
    slept.clear()
    answers = list(answers)
    p = postgresql.Postgresql.__new__(postgresql.Postgresql)
    alive = lambda: 'lives' if answers else None
    p.pg_isready = lambda: answers.pop(0)
    p.is_running, p.cancellable = alive, SimpleNamespace(is_cancelled=cancelled)
    state = [PostgresqlState.STARTING]
    p.set_state = lambda s: state.__setitem__(0, s)
    p.time_in_state = lambda: clock[0] - 1000.0
    def changed():
        if not answers or p.pg_isready() == Ready.RUNNING:
            state[0] = PostgresqlState.RUNNING if answers else PostgresqlState.START_FAILED
            return True
        return False
    p.check_startup_state_changed, p.is_starting = changed, lambda: True
    type(p).state = property(lambda self: state[0])
    done = p.wait_for_port_open(SimpleNamespace(is_running=alive), timeout)
    done = done and p.wait_for_startup(timeout)
    print(f'{name}: {done}, slept {sum(slept):.1f} s in {len(slept)}')

no, wait, up = Ready.NO_RESPONSE, Ready.REJECT, Ready.RUNNING
start('at once', *[up] * 9)
start('soon', *[no] * 3, *[wait] * 5, *[up] * 9)
start('late', *[no] * 35, *[up] * 9)
start('never', *[no] * 3)
start('cancelled', *[no] * 9, cancelled=True)
`

// A server that starts is asked often while it may be there at any moment, and once a second after.
func TestAServerIsSeenAsSoonAsItHasStarted(t *testing.T) {
	out, err := inPatroni(t, startsSoon)
	want := strings.TrimPrefix(`
at once: True, slept 0.0 s in 0
soon: True, slept 0.6 s in 6
late: True, slept 8.0 s in 35
postmaster is not running
never: False, slept 0.3 s in 3
cancelled: False, slept 0.0 s in 0
`, "\n")
	if err != nil || out != want {
		t.Errorf("%v; got\n%s\nwant\n%s", err, out, want)
	}
}

// tellsShared is a program with the modules of the real Patroni, and its own tags.
const tellsShared = `
from types import SimpleNamespace
from patroni import ha

for version in (-1, '17'):
    s = ha.Ha.__new__(ha.Ha)
    s._disable_sync = 0
    s.patroni = SimpleNamespace(tags={'generation': 3}, config=SimpleNamespace(_modify_version=version))
    print(s.get_effective_tags())
`

// A member tells which revision of the shared settings it runs with, once it has read them.
func TestAMemberTellsWhatItHasReadOfSharedSettings(t *testing.T) {
	out, err := inPatroni(t, tellsShared)
	if want := "{'generation': 3}\n{'generation': 3, 'shared': 17}\n"; err != nil || out != want {
		t.Errorf("%v; got\n%s\nwant\n%s", err, out, want)
	}
	state, err := patroni.ParseMember([]byte(`{"tags":{"generation":3,"shared":17}}`))
	if err != nil || state.Shared() != 17 {
		t.Errorf("%d, %v", state.Shared(), err)
	}
}
