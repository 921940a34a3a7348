package config

import (
	"strings"
	"testing"
)

// starts is a program with the modules of the real Patroni. It starts programs as Patroni starts
// PostgreSQL, and prints what each one says of itself.
const starts = `
import os
import time
from patroni.postgresql.postmaster import PostmasterProcess

os.environ['LANG'], os.environ['PATRONI_SECRET'] = 'C.UTF-8', 'hidden'
program = os.path.join(os.environ['DIR'], 'postgres')
said = os.path.join(os.environ['DIR'], 'said')
with open(program, 'w') as f:
    f.write('''#!/bin/sh
{
echo "arguments: $*"
echo "environment: $LANG $PATRONI_SECRET"
echo "input: $(readlink /proc/$$/fd/0)"
} >"$0.new"
mv "$0.new" "${0%/*}/said"
exec sleep 60
''')
os.chmod(program, 0o700)

pm = PostmasterProcess.start(program, '/data dir', '/conf', ['--port=5432', "--name=it's $HOME"])
while not os.path.exists(said):
    time.sleep(0.01)
print(open(said).read(), end='')
def files():
    return sorted(os.listdir('/proc/%d/fd' % pm.pid))
end = time.time() + 10
while (open('/proc/%d/comm' % pm.pid).read() != 'sleep\n' or files() != ['0', '1', '2']) and time.time() < end:
    time.sleep(0.01)  # it opens its libraries
print('open files:', *files())
print('its parent is Patroni:', pm.ppid() == os.getpid())
print('of a session of its own:', os.getsid(pm.pid) not in (pm.pid, os.getsid(0)))
print('runs:', pm.is_running())
pm.kill()
try:
    os.waitpid(-1, os.WNOHANG)
    print('a child is left')
except ChildProcessError:
    print('no child is left')

gone = PostmasterProcess.start(os.path.join(os.environ['DIR'], 'nothing'), '/data', '/conf', [])
while gone and gone.is_running():
    time.sleep(0.01)
`

// Patroni starts PostgreSQL by a shell, with all that it would have had through a second Python.
func TestAShellStartsPostgreSQL(t *testing.T) {
	t.Setenv("DIR", t.TempDir())
	out, err := inPatroni(t, starts)
	// The shell says what it did not find.
	out, _, _ = strings.Cut(out, "sh: ")
	want := strings.TrimPrefix(`
arguments: -D /data dir --config-file=/conf --port=5432 --name=it's $HOME
environment: C.UTF-8 
input: /dev/null
open files: 0 1 2
its parent is Patroni: False
of a session of its own: True
runs: True
no child is left
`, "\n")
	if err != nil || out != want {
		t.Errorf("%v; got\n%s\nwant\n%s", err, out, want)
	}
}
