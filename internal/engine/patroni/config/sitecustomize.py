"""Python loads this before Patroni: the agent has put it on the path.

Patroni empties postgresql.conf and pg_hba.conf before it writes them. When it is told to
reload it does so beside the thread that starts PostgreSQL. A server that reads one of them
at that moment starts with the defaults: its socket is elsewhere, its modules are not
loaded. So a file is written beside the one before, and takes its place when it is whole.

A primary that etcd does not answer has its standbys promise to leave it alone (failsafe
mode). Patroni lets that word count for the time of a lease, 20 s, also when etcd answers
again a moment later: a primary that died then was not replaced before it was over. Here it
counts until the key was taken away with a proof, which is seen by /sync being written again
without a leader, and else for as long as such a primary may take to repeat it.

A read replica may have received what the next primary has not. Patroni rewinds it, but from
a primary only: not one that follows another replica, and not one beside a standby leader.
They would wait for ever for WAL that nobody has. Here the history of what is followed counts
for all of them, and they are rewound from the primary that it comes from.

A gate before a promotion asks Patroni of other members how far they are. Here it also says what
the newest timeline is of which there is WAL on its disk: also where PostgreSQL does not run.

Members ask each other before one of them is promoted. Where PostgreSQL is just starting, Patroni
asks it a second time after one to two seconds, and all who asked wait. Here it asks again at once.

Whoever starts PostgreSQL asks once a second whether its port is open, and then whether it accepts
clients. Most servers do so within a tenth of a second. Here they are asked more often for the first
seconds, so that a start, a restore and a clone take up to two seconds less.

Patroni asks PostgreSQL which settings it has when it is told of new ones. If PostgreSQL dies at that
moment it gives up, and tells with its tags that it runs with them all the same: PostgreSQL is then
started with the old ones. Here it takes the new ones over as for a server that does not run. One
that stands still is told again in the next turn.

Patroni starts PostgreSQL through a second Python, as a child of its own would stay its child. That
one imports all of Patroni first: 0.23 s of a processor. If it is killed at that, Patroni waits for
its word for ever. Here a shell does it.

Who shows a certificate may ask Patroni for anything, also to restart or to end its
PostgreSQL. So members of other databases are refused: their keys are other tenants'.

A member tells which of its own settings it runs with, but not which of those that all members
share: it reads these from etcd in its own time. So their revision is told too: who restarts
it to bring new ones into force can wait for them.

A primary whose leader key ended while it stood still, or was deleted, takes it again. That
is no promotion, so no gate is asked. Patroni looks at the timeline that was written last; a
member that its gate let through, and that stands still before it is promoted, has written
none yet. So the key is taken in one transaction with what gates write: not at all where
another member was let through since.

Whoever has the leader key writes whom it would ask without etcd (/failsafe), and Patroni keeps
all others out of the next race. A member whose gate refuses has the key too for a moment. It
may name itself alone while the one member with every commit is down: then that one could not
race, nobody else may be promoted, and the database has no primary for good. Here a member that
/sync names always races. Its gate counts anew, whatever /failsafe says.

Before a gate Patroni also writes its own member alone into /sync. A gate that refuses puts back
what was there, but one that is killed with its host cannot, and nobody else races then. So the
member that served last races here too if no other one was let through since.
"""
import json
import os
import re
import subprocess
import threading
import time

os.environ.pop('PYTHONPATH', None)  # it is meant for Patroni alone

from patroni.postgresql import config  # before ha: they import each other
from patroni import api, global_config, ha, postgresql
from patroni.dcs import Cluster, Leader, RemoteMember, SyncState, etcd3
from patroni.exceptions import PostgresConnectionException
from patroni.postgresql import postmaster, rewind
from patroni.postgresql.misc import PostgresqlState
from patroni.utils import Retry

writing = threading.RLock()
enter, leave = config.ConfigWriter.__enter__, config.ConfigWriter.__exit__


def enter_beside(self):
    writing.acquire()
    try:
        self._whole, self._filename = self._filename, self._filename + '.new'
        return enter(self)
    except BaseException:
        writing.release()
        raise


def leave_whole(self, kind, error, trace):
    try:
        leave(self, kind, error, trace)
        if kind is None:
            os.replace(self._filename, self._whole)
    finally:
        writing.release()


config.ConfigWriter.__enter__, config.ConfigWriter.__exit__ = enter_beside, leave_whole

# A primary without etcd repeats its word every three to five seconds.
WORD = 8

load, update = ha.Ha.load_cluster_from_dcs, ha.Failsafe.update_cluster


def load_cluster(self):
    load(self)
    leader = self.cluster.leader
    if leader and leader.version:  # etcd has its key; one by its word has none
        self._failsafe._led = self.cluster.sync.version


def update_cluster(self, cluster):
    if cluster.is_unlocked():
        led = getattr(self, '_led', None)
        revoked = led is not None and cluster.sync.version != led
        if revoked or self._last_update + WORD <= time.time():
            return cluster
    return update(self, cluster)


ha.Ha.load_cluster_from_dcs, ha.Failsafe.update_cluster = load_cluster, update_cluster

healthiest = ha.Ha.is_healthiest_node


def is_healthiest(self):
    own, known, cluster = self.state_handler.name, self.dcs.failsafe, self.cluster
    sync = cluster.sync
    if sync.leader and not sync.voters and not sync.matches(own, True) and served_last(self):
        # for this race only, as is what follows
        self.cluster = Cluster(**{**cluster._asdict(), 'sync': SyncState(sync.version, own, None, 0)})
    try:
        if isinstance(known, dict) and own not in known and self.cluster.sync.matches(own, True):
            self.dcs._last_failsafe = {**known, own: self.patroni.api.connection_string}
        return healthiest(self)
    finally:
        self.cluster, self.dcs._last_failsafe = cluster, known


def served_last(self):
    """Whether the own member served last, and no gate let another one through since."""
    own, database = self.state_handler.name.rpartition('.')[2], os.path.basename(self.dcs._base_path)
    try:
        served, _ = read(self.dcs._client, LEAD + database, None)
        passed, _ = read(self.dcs._client, PASSED + database, None)
        return bool(served) and served['member'] == own and (not passed or passed['member'] == own)
    except Exception as e:
        etcd3.logger.warning('who served last is not known: %r', e)
        return False


ha.Ha.is_healthiest_node = is_healthiest

conn_kwargs, compare, execute = (
    rewind.Rewind._conn_kwargs, rewind.Rewind._check_timeline_and_lsn, rewind.Rewind.execute)


def standby_cluster():
    return global_config.get_standby_cluster_config() if global_config.is_standby_cluster else None


def followed(leader):
    """What the whole database follows, for a member beside its standby leader."""
    cluster = standby_cluster()
    if not cluster or not isinstance(leader, Leader):
        return leader
    return RemoteMember(leader.name, {'conn_kwargs': {k: cluster[k] for k in ('host', 'port')}})


def conn_kwargs_of_origin(self, member, auth):
    kwargs = conn_kwargs(self, member, auth)
    cluster = standby_cluster()
    if cluster and isinstance(member, RemoteMember):
        kwargs.update(cluster.get('origin') or {})
    return kwargs


rewind.Rewind._conn_kwargs = conn_kwargs_of_origin
rewind.Rewind._check_timeline_and_lsn = lambda self, leader: compare(self, followed(leader))
rewind.Rewind.execute = lambda self, leader: execute(self, followed(leader))

status = api.RestApiHandler.get_postgresql_status
SEGMENT = re.compile('^[0-9A-F]{24}$')


def status_with_disk(self, retry=False):
    result = status(self, retry)
    try:
        names = os.listdir(self.server.patroni.postgresql.wal_dir)
    except OSError:
        return result
    timelines = [int(name[:8], 16) for name in names if SEGMENT.match(name.removesuffix('.partial'))]
    if timelines:
        result['data_timeline'] = max(timelines)
    return result


api.RestApiHandler.get_postgresql_status = status_with_disk

# A bit less than the two seconds after which those who asked give up.
ANSWER = 1.8

ask = api.RestApiHandler.query


def ask_soon_again(self, sql, *params, retry=False):
    if not retry:
        return ask(self, sql, *params)
    again = Retry(max_tries=-1, delay=0.1, backoff=1, max_jitter=0, deadline=ANSWER,
                  retry_exceptions=PostgresConnectionException)
    return again(self.server.query, sql, *params)


api.RestApiHandler.query = ask_soon_again

# For so many seconds a server that starts is asked every tenth of a second.
QUICK = 3

port_open, startup = postgresql.Postgresql.wait_for_port_open, postgresql.Postgresql.wait_for_startup


def ask_often(self, answer, going_on, timeout):
    """Returns once a server gives another answer, ends, or has taken longer than most do."""
    end = time.time() + min(timeout or QUICK, QUICK)
    while time.time() < end and going_on() and not self.cancellable.is_cancelled and self.pg_isready() == answer:
        time.sleep(0.1)


def wait_for_port_open(self, postmaster, timeout):
    ask_often(self, postgresql.PgIsReadyStatus.NO_RESPONSE, postmaster.is_running, timeout)
    return port_open(self, postmaster, timeout)


def wait_for_startup(self, timeout=0):
    ask_often(self, postgresql.PgIsReadyStatus.REJECT, self.is_running, timeout)
    return startup(self, timeout)


postgresql.Postgresql.wait_for_port_open = wait_for_port_open
postgresql.Postgresql.wait_for_startup = wait_for_startup


class Ended:
    """Stands for a PostgreSQL that does not run."""
    state = PostgresqlState.STOPPED

    def __init__(self, of):
        self._of = of

    def __getattr__(self, name):
        return getattr(self._of, name)


reload_config = config.ConfigHandler.reload_config


def reload_all(self, settings, sighup=False):
    server = self._postgresql
    server._told = None
    try:
        return reload_config(self, settings, sighup)
    except PostgresConnectionException as e:
        if server.is_running():
            server._told = (settings, sighup)  # it stands still, and has to say what a restart changes
            raise
        postgresql.logger.warning('PostgreSQL ended before it said which settings it has: %r', e)
        self._postgresql = Ended(server)
        return reload_config(self, settings, True)
    finally:
        self._postgresql = server


run_cycle = ha.Ha.run_cycle


def run_cycle_told(self):
    """Tells PostgreSQL again what it was told while it did not answer."""
    told = getattr(self.state_handler, '_told', None)
    if told:
        try:
            self.state_handler.config.reload_config(*told)
        except Exception as e:
            postgresql.logger.warning('PostgreSQL does not take its settings over yet: %r', e)
    return run_cycle(self)


config.ConfigHandler.reload_config, ha.Ha.run_cycle = reload_all, run_cycle_told


class Shell:
    """Stands for the module, the context, the pipe and the process of multiprocessing."""

    def get_context(self, _):
        return Shell()

    def Pipe(self, _):
        return self, None

    def Process(self, target, args):
        _, self.line, self.env = args
        return self

    def start(self):
        """Starts PostgreSQL. The shell writes its pid where other programs read, and ends. Nothing
        else has that end of the pipe. PostgreSQL sets what the shell has it ignore (SIGINT, SIGQUIT)."""
        own, shells = os.pipe()
        try:
            self.shell = subprocess.Popen(['/bin/sh', '-c', '"$@" </dev/null & echo $! >&0', 'sh', *self.line],
                                          stdin=shells, env=self.env, start_new_session=True)
        finally:
            os.close(shells)
            self.end = os.fdopen(own)

    def recv(self):
        with self.end:
            pid = self.end.read().strip()
        return int(pid) if pid else None

    def join(self):
        self.shell.wait()


postmaster.multiprocessing = Shell()

parse = api.RestApiHandler.parse_request


def parse_of_own(self):
    if not parse(self):
        return False
    peer = self.connection.getpeercert() or {}
    names = [value for part in peer.get('subject', ()) for key, value in part if key == 'commonName']
    own = 'member:{0}.'.format(self.server.patroni.config['scope'])
    if any(name.startswith('member:') and not name.startswith(own) for name in names):
        self.send_error(403, 'Forbidden')
        return False
    return True


api.RestApiHandler.parse_request = parse_of_own

tags = ha.Ha.get_effective_tags


def tags_with_shared(self):
    """The revision of the shared settings is -1 before they are read, and text afterwards."""
    revision = int(self.patroni.config._modify_version or 0)
    return {**tags(self), 'shared': revision} if revision > 0 else tags(self)


ha.Ha.get_effective_tags = tags_with_shared

# Where Howdah keeps, for each database, whom a gate let through last, and who served last.
PASSED, LEAD = '/howdah/passed/', '/howdah/lead/'

acquire_lock, update_lock = ha.Ha.acquire_lock, ha.Ha.update_lock
put, txn = etcd3.PatroniEtcd3Client.put, etcd3.PatroniEtcd3Client.txn


def leading(take):
    """Tells the client of etcd whether the own PostgreSQL takes writes."""
    def wrapped(self, *args, **kwargs):
        self.dcs._client.serves = self.state_handler.is_primary()
        return take(self, *args, **kwargs)
    return wrapped


def read(client, key, retry):
    kvs = client.range(key, serializable=False, retry=retry).get('kvs', [])
    return (json.loads(etcd3.base64_decode(kvs[0]['value'])), kvs[0]['mod_revision']) if kvs else (None, '0')


def may_lead_on(client, retry):
    """What has to be true when a primary takes its key again. Nothing is enough once another
    member was let through: it may be a primary at any moment, or have been one."""
    dcs = client._etcd3
    own, database = dcs._name.rpartition('.')[2], os.path.basename(dcs._base_path)
    passed, passed_at = read(client, PASSED + database, retry)
    sync, sync_at = read(client, dcs.sync_path, retry)
    served, _ = read(client, LEAD + database, retry)  # last: what was let through is forgotten after it
    leader = ((sync or {}).get('leader') or '').rpartition('.')[2]
    other = None
    if passed and passed['member'] != own:
        # Only a primary that leads writes its own name there, and so after it was let through.
        if leader and not (leader == own and int(sync_at) > int(passed_at)):
            other = passed['member']
    elif not passed and served and served['member'] != own and leader not in ('', own):
        other = served['member']  # also if /sync is of a third one, whose gate was killed
    if other:
        etcd3.logger.warning('%s was let through since, and may be the primary: the leader key is left to it', other)
    compare = [{'key': etcd3.base64_encode(key), 'target': 'MOD', 'mod_revision': at}
               for key, at in ((PASSED + database, passed_at), (dcs.sync_path, sync_at))]
    never = {'key': etcd3.base64_encode(dcs.leader_path), 'target': 'CREATE', 'result': 'LESS', 'create_revision': '0'}
    return compare + [never] * bool(other)


def takes_key(client, key):
    return getattr(client, 'serves', False) and key == client._etcd3.leader_path


def put_key(self, key, value, lease=None, create_revision=None, mod_revision=None, *, retry=None):
    """Creates the leader key, in an attempt to acquire it, and writes all other keys."""
    if create_revision != '0' or not takes_key(self, key):
        return put(self, key, value, lease, create_revision, mod_revision, retry=retry)
    fields = {'key': etcd3.base64_encode(key), 'value': etcd3.base64_encode(value), 'lease': lease}
    absent = {'key': fields['key'], 'target': 'CREATE', 'create_revision': '0'}
    answer = self.call_rpc('/kv/txn', {
        'compare': [absent] + may_lead_on(self, retry), 'success': [{'request_put': fields}]}, retry)
    if answer.get('succeeded'):
        return answer
    self._restart_watcher()  # as after each transaction that fails: what is known may be old
    return {}


def renew_key(self, compare, success, failure=None, *, retry=None):
    """Creates the leader key where one that is renewed is gone; all else as it was."""
    again = (failure or {}).get('request_txn')
    if again and takes_key(self, etcd3.base64_decode(compare['key'])):
        failure = {'request_txn': {**again, 'compare': again['compare'] + may_lead_on(self, retry)}}
    return txn(self, compare, success, failure, retry=retry)


ha.Ha.acquire_lock, ha.Ha.update_lock = leading(acquire_lock), leading(update_lock)
etcd3.PatroniEtcd3Client.put, etcd3.PatroniEtcd3Client.txn = put_key, renew_key
