package config

import (
	"path/filepath"
	"strings"
	"testing"

	"howdah/internal/engine/postgres"
	"howdah/internal/testkit"
	"howdah/internal/testkit/pgversion"
)

// reloads is a program with the modules of the real Patroni. It is told of new settings while
// PostgreSQL dies, and prints those with which it would be started.
const reloads = `
import copy
import os
from patroni.exceptions import PostgresConnectionException
from patroni.postgresql import Postgresql
from patroni.postgresql.misc import PostgresqlState
from patroni.postgresql.mpp import get_mpp

data = os.path.join(os.environ['DIR'], 'data')
os.makedirs(data, 0o700)
for name, text in ('PG_VERSION', '15\n'), ('postgresql.conf', ''), ('pg_hba.conf', ''):
    with open(os.path.join(data, name), 'w') as f:
        f.write(text)
settings = {
    'name': 'm1', 'scope': 'db-1', 'data_dir': data, 'bin_dir': os.environ['BIN'], 'listen': '127.0.0.1:1', 'connect_address': '127.0.0.1:1',
    'pgpass': os.path.join(os.environ['DIR'], 'pgpass'), 'retry_timeout': 1, 'pg_hba': ['local all all peer'],
    'authentication': {'superuser': {}, 'replication': {}}, 'parameters': {'work_mem': '4MB', 'max_connections': 100},
}
server = Postgresql(settings, get_mpp({}))
server._major_version = 150000
server.set_state(PostgresqlState.RUNNING)

from patroni.ha import Ha
import sitecustomize
running = [True]
server.is_running = lambda: running[0]
turns = []
sitecustomize.run_cycle = lambda self: turns.append(self)
loop = Ha.__new__(Ha)
loop.state_handler = server

asked = []
def dies(*args, **kwargs):
    asked.append(args)
    raise PostgresConnectionException('it is gone')
server.query, server.reload = dies, lambda *args: None

new = copy.deepcopy(settings)
new['parameters'].update({'work_mem': '8MB', 'ccm.enabled': 'on'})
new['pg_hba'] = ['local all all reject']
try:
    server.config.reload_config(new, sighup=True)
except PostgresConnectionException:
    print('stands still, and has:', server.config._server_parameters['work_mem'])
loop.run_cycle()
print('turns:', len(turns), server.config._server_parameters['work_mem'])
running[0] = False
loop.run_cycle()
print('turns:', len(turns), server._told)
print('asked:', len(asked) > 0)
print('started with:', server.config._server_parameters['work_mem'], server.config._server_parameters['ccm.enabled'])
print('written:', *[l.strip() for l in open(os.path.join(data, 'postgresql.conf')) if l.startswith(('work_mem', 'ccm'))])
print('let in:', *[l.strip() for l in open(os.path.join(data, 'pg_hba.conf')) if l.startswith('local')])
print('it is taken for:', server.state, server.config._postgresql is server)
`

// Settings are taken over also if PostgreSQL dies at that moment, and told again if it stands still.
func TestSettingsReachAServerThatDied(t *testing.T) {
	install, err := postgres.Find(pgversion.Major())
	if err != nil {
		testkit.Missing(t, err.Error())
	}
	t.Setenv("DIR", t.TempDir())
	t.Setenv("BIN", filepath.Dir(install.Program("postgres")))
	out, err := inPatroni(t, reloads)
	var kept []string
	for line := range strings.Lines(out) {
		if !strings.Contains(line, "pg_control") && !strings.Contains(line, "PostgresConnectionException(") { // Patroni's log
			kept = append(kept, line)
		}
	}
	said := strings.Join(kept, "")
	want := strings.TrimPrefix(`
stands still, and has: 4MB
turns: 1 4MB
turns: 2 None
asked: True
started with: 8MB on
written: ccm.enabled = 'on' work_mem = '8MB'
let in: local all all reject
it is taken for: running True
`, "\n")
	if err != nil || said != want {
		t.Errorf("%v; got\n%s\nwant\n%s", err, out, want)
	}
}
