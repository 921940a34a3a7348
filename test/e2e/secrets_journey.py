#!/usr/bin/env python3
"""A journey with a managed master password: RDS makes it, Secrets Manager shows it, and it is changed.

Run it against the environment that `howdah env` prints:

    eval "$(bin/howdah env --home DIR)" && python3 test/e2e/secrets_journey.py
"""
import json
import threading

import boto3
from botocore.exceptions import ClientError

from api_steps import address, available, cluster_available, delete, eventually, fails, instance, rds, refused, sql, step, wait

secrets = boto3.client("secretsmanager")


def password(arn, stage="AWSCURRENT"):
    value = json.loads(secrets.get_secret_value(SecretId=arn, VersionStage=stage)["SecretString"])
    assert value["username"] == "boss", value
    return value["password"]


def active(name):
    return instance(name)["MasterUserSecret"]["SecretStatus"] == "active"


def known(arn):
    """Whether there is such a secret. It exists until the database has said that it took another password."""
    try:
        return secrets.describe_secret(SecretId=arn)
    except ClientError as e:
        assert e.response["Error"]["Code"] == "ResourceNotFoundException", e
        return None


def create_managed(name, **more):
    parameters = dict(DBInstanceIdentifier=name, DBInstanceClass="db.t3.micro", Engine="postgres", AllocatedStorage=20, MasterUsername="boss",
                      ManageMasterUserPassword=True, BackupRetentionPeriod=0, **more)
    return rds.create_db_instance(**parameters)["DBInstance"]


def journey_secrets():
    step("an instance with a standby, whose password nobody chose")
    made = create_managed("managed", MultiAZ=True)
    assert made["MasterUserSecret"]["SecretStatus"] == "creating", made
    assert available("managed")["MasterUserSecret"]["SecretStatus"] == "active"
    arn, at = made["MasterUserSecret"]["SecretArn"], address("managed")
    shown = secrets.describe_secret(SecretId=arn)
    assert shown["OwningService"] == "rds" and shown["RotationRules"]["AutomaticallyAfterDays"] == 7, shown
    assert [s["ARN"] for page in secrets.get_paginator("list_secrets").paginate(Filters=[{"Key": "owning-service", "Values": ["rds"]}])
            for s in page["SecretList"]] == [arn]
    first = password(arn)
    assert sql(at, "SELECT current_user", password=first) == "boss"

    step("it is changed: the next one works as soon as it is current, and the one before does not")
    secrets.rotate_secret(SecretId=arn)
    eventually(20, lambda: password(arn) != first, "another password current")
    second = password(arn)
    assert sql(at, "SELECT current_user", password=second) == "boss" and refused(at, password=first)
    assert password(arn, "AWSPREVIOUS") == first
    eventually(20, lambda: active("managed"), "the secret active")

    step("through changes and a failover, whoever asks again when a login fails gets in")
    failures, stop = [], threading.Event()

    def worker():
        while not stop.is_set():
            try:
                eventually(20, lambda: sql(at, "SELECT 1", password=password(arn)) == "1", "a login")
            except AssertionError as e:
                failures.append(e)
    thread = threading.Thread(target=worker)
    thread.start()
    for _ in range(3):
        eventually(30, lambda: rds.modify_db_instance(DBInstanceIdentifier="managed", RotateMasterUserPassword=True, ApplyImmediately=True), "a rotation")
        eventually(30, lambda: active("managed") and instance("managed")["DBInstanceStatus"] == "available", "the secret active")
    eventually(30, lambda: rds.reboot_db_instance(DBInstanceIdentifier="managed", ForceFailover=True), "a failover")
    available("managed")
    stop.set()
    thread.join()
    assert not failures, failures
    assert sql(at, "SELECT 1", password=password(arn)) == "1"

    step("only RDS changes the secret, and only as it should be")
    fails("InvalidRequestException", secrets.put_secret_value, SecretId=arn, SecretString="mine")
    fails("InvalidRequestException", secrets.delete_secret, SecretId=arn)
    fails("ResourceNotFoundException", secrets.get_secret_value, SecretId="rds!db-nothing")
    fails("InvalidParameterCombination", rds.modify_db_instance, DBInstanceIdentifier="managed", MasterUserPassword="another-Secret-1")
    secrets.rotate_secret(SecretId=arn, RotateImmediately=False, RotationRules={"AutomaticallyAfterDays": 30})
    assert secrets.describe_secret(SecretId=arn)["RotationRules"]["AutomaticallyAfterDays"] == 30

    step("its owner takes the password back, and gives it away again")
    rds.modify_db_instance(DBInstanceIdentifier="managed", ManageMasterUserPassword=False, MasterUserPassword="another-Secret-1", ApplyImmediately=True)
    assert "MasterUserSecret" not in instance("managed")
    eventually(20, lambda: sql(at, "SELECT 1", password="another-Secret-1") == "1", "the own password taken")
    eventually(20, lambda: not known(arn), "the secret gone")
    available("managed")
    rds.modify_db_instance(DBInstanceIdentifier="managed", ManageMasterUserPassword=True, ApplyImmediately=True)
    eventually(20, lambda: active("managed"), "the secret active")
    assert instance("managed")["MasterUserSecret"]["SecretArn"] != arn
    assert refused(at, password="another-Secret-1")

    step("a stopped instance has its password still")
    available("managed")
    rds.stop_db_instance(DBInstanceIdentifier="managed")
    eventually(60, lambda: instance("managed")["DBInstanceStatus"] == "stopped", "the instance stopped")
    assert active("managed"), instance("managed")["MasterUserSecret"]
    arn = instance("managed")["MasterUserSecret"]["SecretArn"]
    rds.start_db_instance(DBInstanceIdentifier="managed")
    available("managed")
    assert sql(at, "SELECT 1", password=password(arn)) == "1"

    step("with the instance its secret goes")
    arn = instance("managed")["MasterUserSecret"]["SecretArn"]
    available("managed")
    delete("managed")
    eventually(60, lambda: not secrets.list_secrets()["SecretList"], "no secret left")
    fails("ResourceNotFoundException", secrets.get_secret_value, SecretId=arn)


def journey_cluster():
    step("a Multi-AZ DB cluster has one password, which is changed on all its instances")
    made = rds.create_db_cluster(DBClusterIdentifier="managed-trio", Engine="postgres", DBClusterInstanceClass="db.m5.large", AllocatedStorage=100, Iops=1000,
                                 MasterUsername="boss", ManageMasterUserPassword=True)["DBCluster"]
    arn = made["MasterUserSecret"]["SecretArn"]
    assert ":secret:rds!cluster-" in arn, arn
    shown = cluster_available("managed-trio")
    assert shown["MasterUserSecret"] == {"SecretArn": arn, "SecretStatus": "active"}, shown["MasterUserSecret"]
    assert {"Key": "aws:rds:primaryDBClusterArn", "Value": shown["DBClusterArn"]} in secrets.describe_secret(SecretId=arn)["Tags"]
    first = password(arn)
    assert sql(shown["Endpoint"], "SELECT current_user", password=first) == "boss"
    eventually(30, lambda: sql(shown["ReaderEndpoint"], "SELECT 1", password=first) == "1", "a login at a reader")
    # RDS's own way and Secrets Manager's.
    for rotate in (lambda: rds.modify_db_cluster(DBClusterIdentifier="managed-trio", RotateMasterUserPassword=True, ApplyImmediately=True),
                   lambda: secrets.rotate_secret(SecretId=arn)):
        before = password(arn)
        eventually(60, rotate, "a rotation")
        eventually(30, lambda before=before: password(arn) != before, "another password current")
        now = password(arn)
        assert sql(shown["Endpoint"], "SELECT 1", password=now) == "1" and refused(shown["Endpoint"], password=before)
        eventually(10, lambda now=now: sql(shown["ReaderEndpoint"], "SELECT 1", password=now) == "1", "the password at a reader")
        assert refused(shown["ReaderEndpoint"], password=before)
        cluster_available("managed-trio")
    rds.delete_db_cluster(DBClusterIdentifier="managed-trio", SkipFinalSnapshot=True)
    wait("db_cluster_deleted", DBClusterIdentifier="managed-trio")
    fails("ResourceNotFoundException", secrets.describe_secret, SecretId=arn)


if __name__ == "__main__":
    journey_secrets()
    journey_cluster()
