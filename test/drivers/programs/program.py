"""An application written as the wrapper's documentation says. What it does is chosen by its argument: see drivers_test.go."""

import os
import sys
import threading
import time

import psycopg

HOST, PORT, DATABASE = os.environ["DB_HOST"], int(os.environ["DB_PORT"]), os.environ["DB_NAME"]
PLUGINS = os.environ["DB_PLUGINS"]


def connect():
    where = {"host": HOST, "port": PORT, "dbname": DATABASE, "user": os.environ["DB_USER"]}
    if os.environ["DB_PASSWORD"]:
        where["password"] = os.environ["DB_PASSWORD"]
    if "DB_CA" in os.environ:
        where |= {"sslmode": "verify-full", "sslrootcert": os.environ["DB_CA"]}
    if not PLUGINS:
        return psycopg.connect(**where, autocommit=True)
    from aws_advanced_python_wrapper import AwsWrapperConnection

    if "DB_ZONE" in os.environ:
        from aws_advanced_python_wrapper.utils.rds_utils import RdsUtils

        # The wrapper finds the instance in names of this form alone. It connects to no name that is made here.
        RdsUtils.set_prepare_host_func(lambda host: host.replace(os.environ["DB_ZONE"], "rds.amazonaws.com"))
    more = {}
    if "DB_IAM_HOST" in os.environ:
        more = {"iam_host": os.environ["DB_IAM_HOST"], "iam_region": os.environ["AWS_REGION"]}
        where.setdefault("sslmode", "require")
    if os.environ["DB_DIALECT"]:
        more["wrapper_dialect"] = os.environ["DB_DIALECT"]
    for setting in filter(None, os.environ.get("DB_MORE", "").split(";")):
        name, value = setting.split("=")
        more[name] = int(value)
    return AwsWrapperConnection.connect(
        psycopg.Connection.connect,
        **where,
        **more,
        plugins=PLUGINS,
        cluster_instance_host_pattern=os.environ["DB_PATTERN"],
        connect_timeout=10,
        autocommit=True,
    )


def say(what, more):
    print(what, int(time.time() * 1000), more, flush=True)


def write():
    """Writes one row after the other, until the standard input ends."""
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    connection, number = None, 0
    while not over.is_set():
        try:
            connection = connection or connect()
            with connection.cursor() as cursor:
                cursor.execute("INSERT INTO ledger VALUES (%s) ON CONFLICT DO NOTHING", (number,))
            say("done", number)
            number += 1
        except Exception as e:
            say("failed", f"{type(e).__name__} {(str(e).splitlines() or [''])[0]}")
            # After FailoverSuccessError the connection leads to the new writer.
            if type(e).__name__ not in ("FailoverSuccessError", "TransactionResolutionUnknownError"):
                close(connection)
                connection = None
        time.sleep(0.01)
    close(connection)


def close(connection):
    try:
        if connection is not None:
            connection.close()
    except Exception:
        pass


def tell(connection):
    with connection.cursor() as cursor:
        cursor.execute(os.environ["DB_ASK"])
        say("is", cursor.fetchone()[0])


def split():
    connection = connect()
    for reads in (False, True, False):
        connection.read_only = reads
        tell(connection)
    close(connection)


def who():
    connection = connect()
    tell(connection)
    close(connection)


{"write": write, "split": split}.get(sys.argv[1], who)()
sys.stdout.flush()
if PLUGINS:
    try:
        from aws_advanced_python_wrapper import release_resources

        release_resources()
    except ImportError:
        pass
os._exit(0)  # threads of the wrapper may still run
