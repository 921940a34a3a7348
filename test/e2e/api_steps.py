"""What the steps of journeys are made of: the client, waiting, psql, and looking at what the API shows."""
import os
import subprocess
import time

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

rds = boto3.client("rds", config=Config(retries={"total_max_attempts": 1}))
# How much longer to wait than on a machine that does nothing else.
PATIENCE = int(os.environ.get("HOWDAH_TEST_PATIENCE", "1"))
# The families of parameter groups are of the version that the tests use.
MAJOR = os.environ.get("HOWDAH_TEST_POSTGRES") or "15"
POLL = {"Delay": 1, "MaxAttempts": 120 * PATIENCE}
PASSWORD = "first-Secret-1"
BEGAN = time.time()


def step(sentence):
    print(f"{time.time() - BEGAN:7.1f}  {sentence}", flush=True)


def eventually(seconds, check, what):
    """Calls check until it is true; an exception of psql or the API counts as not yet."""
    deadline = time.time() + seconds * PATIENCE
    while True:
        # There is always a last look at the end, because the pause may have been longer than it should.
        late = time.time() >= deadline
        try:
            last = check()
            if last:
                return last
        except (ClientError, Refused) as e:
            last = e
        if late:
            raise AssertionError(f"not within {seconds} s: {what}; last: {last}")
        time.sleep(0.2)


class Refused(Exception):
    """psql could not log in, or its statement failed."""


def sql(address, statement, password=PASSWORD, user="boss", database="postgres", port=5432, sslmode="verify-full"):
    """Runs one statement over TLS with the server's certificate verified, and answers its output."""
    environment = dict(os.environ, PGPASSWORD=password, PGCONNECT_TIMEOUT=str(3 * PATIENCE))
    target = f"host={address} port={port} user={user} dbname={database} sslmode={sslmode}"
    done = subprocess.run(["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", statement, target],
                          env=environment, capture_output=True, text=True, timeout=30 * PATIENCE, check=False)
    if done.returncode != 0:
        raise Refused(done.stderr.strip())
    return done.stdout.strip()


def refused(address, statement="SELECT 1", **options):
    try:
        sql(address, statement, **options)
    except Refused:
        return True
    return False


def fails(code, action, **parameters):
    """The action must be answered with this error code."""
    try:
        action(**parameters)
    except ClientError as e:
        assert e.response["Error"]["Code"] == code, f"{e.response['Error']} instead of {code}"
        return e.response["Error"]["Message"]
    raise AssertionError(f"{action.__name__} succeeded instead of answering {code}")


def instance(name):
    return rds.describe_db_instances(DBInstanceIdentifier=name)["DBInstances"][0]


def cluster(name):
    return rds.describe_db_clusters(DBClusterIdentifier=name)["DBClusters"][0]


def address(name):
    return instance(name)["Endpoint"]["Address"]


def wait(waiter, **parameters):
    rds.get_waiter(waiter).wait(WaiterConfig=POLL, **parameters)


def available(name):
    wait("db_instance_available", DBInstanceIdentifier=name)
    return instance(name)


def cluster_available(name):
    wait("db_cluster_available", DBClusterIdentifier=name)
    return cluster(name)


def status_was(word, name):
    status = instance(name)["DBInstanceStatus"]
    assert status == word, f"{name} is {status}, not {word}"


def messages(source_type, name):
    pages = rds.get_paginator("describe_events").paginate(SourceType=source_type, SourceIdentifier=name)
    return [e["Message"] for page in pages for e in page["Events"]]


def told(source_type, name, *texts):
    def all_there():
        found = messages(source_type, name)
        missing = [t for t in texts if not any(t in m for m in found)]
        if missing:
            raise Refused(f"missing events {missing} in {found}")
        return True
    eventually(10, all_there, f"events of {name}")


def far_window():
    """A maintenance window that does not open while a journey goes on."""
    day = time.strftime("%a", time.gmtime(BEGAN + 3 * 24 * 3600)).lower()
    return f"{day}:20:00-{day}:20:30"


def create(name, **more):
    parameters = dict(DBInstanceIdentifier=name, DBInstanceClass="db.t3.micro", Engine="postgres", AllocatedStorage=20,
                      MasterUsername="boss", MasterUserPassword=PASSWORD, PreferredMaintenanceWindow=far_window(), BackupRetentionPeriod=0)
    return rds.create_db_instance(**{**parameters, **more})["DBInstance"]


def delete(name):
    answer = rds.delete_db_instance(DBInstanceIdentifier=name, SkipFinalSnapshot=True)
    assert answer["DBInstance"]["DBInstanceStatus"] == "deleting", answer["DBInstance"]["DBInstanceStatus"]


def members(name):
    return {m["DBInstanceIdentifier"]: m["IsClusterWriter"] for m in cluster(name)["DBClusterMembers"]}


def writer(name):
    return next(n for n, is_writer in members(name).items() if is_writer)
