#!/usr/bin/env python3
"""The journey of a database administrator with backups, all by the AWS CLI: load, snapshot, lose, restore both ways, compare.

Run it against the environment that `howdah env` prints; HOWDAH_TEST_AWS is the AWS CLI.

    eval "$(bin/howdah env --home DIR)" && HOWDAH_TEST_AWS=aws python3 test/e2e/backup_journey.py
"""
import datetime
import json
import os
import subprocess
import time

from api_steps import PATIENCE, PASSWORD, eventually, far_window, sql, step

AWS = os.environ.get("HOWDAH_TEST_AWS", "aws")


class Refused(Exception):
    """The AWS CLI ended with an error."""


def aws(*words, code=None):
    """Runs a command of the AWS CLI, and answers its JSON. With code it has to fail by that error code."""
    done = subprocess.run([AWS, "rds", *words, "--output", "json"], capture_output=True, text=True, timeout=60 * PATIENCE, check=False)
    if code is not None:
        assert done.returncode != 0 and f"({code})" in done.stderr, f"{words}: {done.stdout} {done.stderr}, not {code}"
        return done.stderr
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return json.loads(done.stdout) if done.stdout.strip() else None


def database(name):
    return aws("describe-db-instances", "--db-instance-identifier", name)["DBInstances"][0]


def available(name, within=180):
    def there():
        status = database(name)["DBInstanceStatus"]
        assert status not in ("failed", "incompatible-restore", "restore-error"), status
        return status == "available"
    eventually(within, there, f"{name} available")
    return database(name)


def gone(name):
    def not_there():
        done = subprocess.run([AWS, "rds", "describe-db-instances", "--db-instance-identifier", name], capture_output=True, text=True, timeout=60 * PATIENCE, check=False)
        return "(DBInstanceNotFound)" in done.stderr
    eventually(180, not_there, f"{name} gone")


def snapshot(name):
    return aws("describe-db-snapshots", "--db-snapshot-identifier", name)["DBSnapshots"][0]


def snapshot_available(name):
    eventually(180, lambda: snapshot(name)["Status"] == "available", f"snapshot {name} available")
    shown = snapshot(name)
    assert shown["PercentProgress"] == 100 and shown["SnapshotType"] == "manual", shown
    return shown


def content(name, **more):
    """What the database has: the number of rows, and a sum over all of them."""
    at = database(name)["Endpoint"]
    return sql(at["Address"], "SELECT count(*), sum(hashtext(t::text)::bigint) FROM orders t", port=at["Port"], **more)


def run(name, statement):
    at = database(name)["Endpoint"]
    return sql(at["Address"], statement, port=at["Port"])


def moment(name):
    """The time of the database, after what was committed and before what follows."""
    time.sleep(0.01)
    at = datetime.datetime.fromisoformat(run(name, "SELECT clock_timestamp() AT TIME ZONE 'UTC'"))
    time.sleep(0.01)
    return at


def stamp(text):
    return datetime.datetime.fromisoformat(text).astimezone(datetime.timezone.utc).replace(tzinfo=None)


def restorable(name, at):
    def promised():
        latest = database(name).get("LatestRestorableTime")  # it is not there before the first moment is
        return latest is not None and stamp(latest) >= at
    eventually(150, promised, f"{name} restorable until {at}")


def journey_snapshots():
    step("a database, with some rows")
    aws("create-db-instance", "--db-instance-identifier", "shop", "--db-instance-class", "db.t3.micro", "--engine", "postgres", "--allocated-storage", "20",
        "--master-username", "boss", "--master-user-password", PASSWORD, "--backup-retention-period", "7", "--preferred-maintenance-window", far_window(),
        "--copy-tags-to-snapshot", "--tags", "Key=team,Value=sales")
    available("shop")
    run("shop", "CREATE TABLE orders (id int PRIMARY KEY, what text); INSERT INTO orders SELECT n, md5(n::text) FROM generate_series(1, 20000) n")
    first = content("shop")

    step("a snapshot of it is available, and has its tags")
    made = aws("create-db-snapshot", "--db-instance-identifier", "shop", "--db-snapshot-identifier", "Before-Sale")["DBSnapshot"]
    assert made["Status"] == "creating" and made["DBSnapshotIdentifier"] == "before-sale" and made["DBInstanceIdentifier"] == "shop", made
    aws("create-db-snapshot", "--db-instance-identifier", "shop", "--db-snapshot-identifier", "before-sale", code="DBSnapshotAlreadyExists")
    shown = snapshot_available("before-sale")
    assert shown["TagList"] == [{"Key": "team", "Value": "sales"}] and shown["AllocatedStorage"] == 20 and shown["MasterUsername"] == "boss", shown

    step("more is written after it; everything is lost by one statement; the moment before it is known")
    run("shop", "INSERT INTO orders SELECT n, md5(n::text) FROM generate_series(20001, 30000) n")
    second = content("shop")
    before = moment("shop")
    run("shop", "DELETE FROM orders")
    assert content("shop") == "0|"

    step("the snapshot restores into a new instance of another class, with the rows of then, and takes writes")
    aws("restore-db-instance-from-db-snapshot", "--db-instance-identifier", "shop-then", "--db-snapshot-identifier", "before-sale", "--db-instance-class", "db.t3.small",
        "--port", "5433")
    shown = available("shop-then")
    assert shown["DBInstanceClass"] == "db.t3.small" and shown["Endpoint"]["Port"] == 5433, shown
    assert content("shop-then") == first
    run("shop-then", "INSERT INTO orders VALUES (0, 'new')")

    step("a moment restores: everything that was committed by then, and nothing later")
    restorable("shop", before)
    aws("restore-db-instance-to-point-in-time", "--source-db-instance-identifier", "shop", "--target-db-instance-identifier", "shop-back",
        "--restore-time", before.isoformat() + "Z")
    available("shop-back")
    assert content("shop-back") == second

    step("what cannot be restored is refused")
    future = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)).isoformat()
    aws("restore-db-instance-to-point-in-time", "--source-db-instance-identifier", "shop", "--target-db-instance-identifier", "never", "--restore-time", future,
        code="InvalidParameterValue")
    aws("restore-db-instance-to-point-in-time", "--source-db-instance-identifier", "shop", "--target-db-instance-identifier", "shop-back",
        "--use-latest-restorable-time", code="DBInstanceAlreadyExists")
    aws("restore-db-instance-from-db-snapshot", "--db-instance-identifier", "never", "--db-snapshot-identifier", "no-such", code="DBSnapshotNotFound")

    step("a deleted database leaves its final snapshot, and its automated backups if they are to stay")
    eventually(180, lambda: database("shop-back").get("LatestRestorableTime"), "shop-back has an automated backup")
    aws("delete-db-instance", "--db-instance-identifier", "shop-back", "--final-db-snapshot-identifier", "last-of-back", "--no-delete-automated-backups")
    gone("shop-back")
    snapshot_available("last-of-back")
    kept = aws("describe-db-instance-automated-backups", "--filters", "Name=status,Values=retained")["DBInstanceAutomatedBackups"]
    assert [k["DBInstanceIdentifier"] for k in kept] == ["shop-back"], kept
    aws("restore-db-instance-from-db-snapshot", "--db-instance-identifier", "shop-again", "--db-snapshot-identifier", "last-of-back", "--multi-az")
    available("shop-again")
    assert content("shop-again") == second
    aws("restore-db-instance-to-point-in-time", "--source-dbi-resource-id", kept[0]["DbiResourceId"], "--target-db-instance-identifier", "shop-kept", "--use-latest-restorable-time")
    available("shop-kept")
    assert content("shop-kept") == second

    step("copied, deleted and purged: nothing is left but what was asked to stay")
    for name in ("shop", "shop-then", "shop-again", "shop-kept"):
        aws("delete-db-instance", "--db-instance-identifier", name, "--skip-final-snapshot", "--delete-automated-backups")
    for name in ("shop", "shop-then", "shop-again", "shop-kept"):
        gone(name)
    aws("delete-db-instance-automated-backup", "--dbi-resource-id", kept[0]["DbiResourceId"])
    for name in ("before-sale", "last-of-back"):
        aws("delete-db-snapshot", "--db-snapshot-identifier", name)
        aws("describe-db-snapshots", "--db-snapshot-identifier", name, code="DBSnapshotNotFound")
    assert aws("describe-db-snapshots", "--snapshot-type", "manual")["DBSnapshots"] == []


def clone(source, name, *more, **expect):
    """Asks for a clone of a cluster."""
    return aws("restore-db-cluster-to-point-in-time", "--source-db-cluster-identifier", source, "--db-cluster-identifier", name, "--restore-type", "copy-on-write", *more, **expect)


def member(cluster, name):
    aws("create-db-instance", "--db-cluster-identifier", cluster, "--db-instance-identifier", name, "--db-instance-class", "db.t3.micro", "--engine", "aurora-postgresql")
    available(name)


def journey_clones():
    step("a cluster is cloned as it runs, and its clone too")
    aws("create-db-cluster", "--db-cluster-identifier", "mall", "--engine", "aurora-postgresql", "--master-username", "boss", "--master-user-password", PASSWORD,
        "--preferred-maintenance-window", far_window())
    member("mall", "mall-1")
    run("mall-1", "CREATE TABLE orders (id int PRIMARY KEY, what text); INSERT INTO orders SELECT n, md5(n::text) FROM generate_series(1, 20000) n")
    latest = "--use-latest-restorable-time"
    made = clone("mall", "mall-test", latest)["DBCluster"]
    assert made["Status"] == "creating" and made["MasterUsername"] == "boss" and made["CloneGroupId"], made
    member("mall-test", "mall-test-1")
    first = content("mall-1")
    assert content("mall-test-1") == first
    run("mall-test-1", "DELETE FROM orders WHERE id > 10")
    assert content("mall-1") == first
    clone("mall-test", "mall-twice", latest)
    member("mall-twice", "mall-twice-1")
    assert content("mall-twice-1") == content("mall-test-1")
    groups = {c["CloneGroupId"] for c in aws("describe-db-clusters")["DBClusters"]}
    assert groups == {made["CloneGroupId"]}, groups

    step("a clone has the newest data, and no moment's")
    now = datetime.datetime.now(datetime.timezone.utc).isoformat()
    clone("mall", "never", "--restore-to-time", now, code="InvalidParameterCombination")
    clone("mall", "never", code="InvalidParameterCombination")
    clone("nobody", "never", latest, code="DBClusterNotFoundFault")

    step("a clone outlives its source")
    aws("delete-db-instance", "--db-instance-identifier", "mall-1")
    gone("mall-1")
    aws("delete-db-cluster", "--db-cluster-identifier", "mall", "--skip-final-snapshot")
    run("mall-twice-1", "INSERT INTO orders VALUES (0, 'alone')")
    for name in ("mall-test", "mall-twice"):
        aws("delete-db-instance", "--db-instance-identifier", name + "-1")
        gone(name + "-1")
        aws("delete-db-cluster", "--db-cluster-identifier", name, "--skip-final-snapshot")


if __name__ == "__main__":
    journey_snapshots()
    journey_clones()
