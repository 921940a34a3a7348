"""Python loads this before Patroni: the agent has put it on the path.

Patroni empties postgresql.conf and pg_hba.conf before it writes them. When it is told to
reload it does so beside the thread that starts PostgreSQL. A server that reads one of them
at that moment starts with the defaults: its socket is elsewhere, its modules are not
loaded. So a file is written beside the one before, and takes its place when it is whole.
"""
import os
import threading

os.environ.pop('PYTHONPATH', None)  # it is meant for Patroni alone

from patroni.postgresql import config

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
