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
"""
import os
import re
import threading
import time

os.environ.pop('PYTHONPATH', None)  # it is meant for Patroni alone

from patroni.postgresql import config  # before ha: they import each other
from patroni import api, global_config, ha
from patroni.dcs import Leader, RemoteMember
from patroni.postgresql import rewind

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
