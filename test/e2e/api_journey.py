#!/usr/bin/env python3
"""Journeys through the RDS API of a running Howdah, as a user with boto3 and psql takes them.

Run it against the environment that `howdah env` prints, with no other databases in it that matter:

    eval "$(bin/howdah env --home DIR)" && python3 test/e2e/api_journey.py [JOURNEY ...]

Every step is a sentence that is printed when it begins; the first one that fails ends the run. What was
created is deleted, also after a failure.
"""
import os
import subprocess
import sys
import time

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError, WaiterError

from api_groups import journey_cluster_parameter_groups, journey_parameter_groups
from api_steps import (BEGAN, PASSWORD, address, available, cluster, cluster_available, create, delete, eventually, fails, instance,
                       members, rds, refused, sql, status_was, step, told, wait, writer)

# --- the journeys ---------------------------------------------------------


def journey_instance():
    step("a key belongs to an account")
    identity = boto3.client("sts").get_caller_identity()
    assert identity["Arn"] == f"arn:aws:iam::{identity['Account']}:root", identity

    step("a Multi-AZ instance is creating, and cannot be modified, rebooted or stopped meanwhile")
    made = create("life", MultiAZ=True, DBName="shop", Tags=[{"Key": "team", "Value": "blue"}])
    assert made["DBInstanceStatus"] == "creating" and "Endpoint" not in made, made
    fails("InvalidDBInstanceState", rds.modify_db_instance, DBInstanceIdentifier="life", AllocatedStorage=40)
    fails("InvalidDBInstanceState", rds.reboot_db_instance, DBInstanceIdentifier="life")
    fails("InvalidDBInstanceState", rds.stop_db_instance, DBInstanceIdentifier="life")
    fails("DBInstanceAlreadyExists", create, name="life")

    step("it becomes available, with a standby in another zone, and lets its user in")
    shown = available("life")
    assert shown["SecondaryAvailabilityZone"] != shown["AvailabilityZone"], shown
    at = shown["Endpoint"]["Address"]
    sql(at, "CREATE TABLE kept (n int); INSERT INTO kept VALUES (1)", database="shop")
    assert refused(at, password="wrong-Secret-1")

    step("a new password replaces the old one, in a status of its own")
    changed = rds.modify_db_instance(DBInstanceIdentifier="life", MasterUserPassword="second-Secret-2")["DBInstance"]
    assert changed["DBInstanceStatus"] == "resetting-master-credentials", changed["DBInstanceStatus"]
    assert changed["PendingModifiedValues"] == {"MasterUserPassword": "****"}, changed["PendingModifiedValues"]
    assert available("life")["PendingModifiedValues"] == {}
    assert sql(at, "SELECT n FROM kept", database="shop", password="second-Secret-2") == "1"
    assert refused(at)
    rds.modify_db_instance(DBInstanceIdentifier="life", MasterUserPassword=PASSWORD)
    available("life")
    told("db-instance", "life", "DB instance created", "Reset master credentials")

    step("a new port answers, and the old one is refused")
    rds.modify_db_instance(DBInstanceIdentifier="life", DBPortNumber=6543)
    assert available("life")["Endpoint"] == {"Address": at, "Port": 6543, "HostedZoneId": "HOWDAH"}
    eventually(5, lambda: sql(at, "SELECT 1", port=6543) == "1", "a login at the new port")
    eventually(5, lambda: refused(at), "the old port refused")
    rds.modify_db_instance(DBInstanceIdentifier="life", DBPortNumber=5432)
    available("life")
    eventually(5, lambda: sql(at, "SELECT 1") == "1", "a login at the first port")

    step("a larger class waits for the window, shows as pending, and can be taken back")
    waiting = rds.modify_db_instance(DBInstanceIdentifier="life", DBInstanceClass="db.t3.small")["DBInstance"]
    assert waiting["PendingModifiedValues"] == {"DBInstanceClass": "db.t3.small"} and waiting["DBInstanceStatus"] == "available", waiting
    taken = rds.modify_db_instance(DBInstanceIdentifier="life", DBInstanceClass="db.t3.micro")["DBInstance"]
    assert taken["PendingModifiedValues"] == {}, taken["PendingModifiedValues"]

    step("applied at once, it changes PostgreSQL's memory")
    before = sql(at, "SHOW shared_buffers")
    changed = rds.modify_db_instance(DBInstanceIdentifier="life", DBInstanceClass="db.t3.small", ApplyImmediately=True)["DBInstance"]
    assert (changed["DBInstanceStatus"], changed["DBInstanceClass"]) == ("modifying", "db.t3.micro"), changed
    fails("InvalidDBInstanceState", rds.modify_db_instance, DBInstanceIdentifier="life", AllocatedStorage=40)
    assert available("life")["DBInstanceClass"] == "db.t3.small"
    assert sql(at, "SHOW shared_buffers") != before
    told("db-instance", "life", "Applying modification to database instance class", "Finished applying modification to DB instance class")

    step("a class that waits is applied when its window opens")
    rds.modify_db_instance(DBInstanceIdentifier="life", DBInstanceClass="db.t3.micro")
    now = time.gmtime()
    later = time.gmtime(time.time() + 3600)
    window = time.strftime("%a:%H:%M", now) + "-" + time.strftime("%a:%H:%M", later)
    away = time.strftime("%H:%M", time.gmtime(time.time() + 7200)) + "-" + time.strftime("%H:%M", time.gmtime(time.time() + 9000))
    rds.modify_db_instance(DBInstanceIdentifier="life", PreferredMaintenanceWindow=window.lower(), PreferredBackupWindow=away)
    eventually(15, lambda: instance("life")["DBInstanceStatus"] == "modifying" or instance("life")["DBInstanceClass"] == "db.t3.micro", "the change begun")
    assert available("life")["DBInstanceClass"] == "db.t3.micro"

    step("storage grows and never shrinks")
    fails("InvalidParameterCombination", rds.modify_db_instance, DBInstanceIdentifier="life", AllocatedStorage=10, ApplyImmediately=True)
    rds.modify_db_instance(DBInstanceIdentifier="life", AllocatedStorage=30, ApplyImmediately=True)
    assert available("life")["AllocatedStorage"] == 30

    step("the standby goes when Multi-AZ is switched off, and returns when it is on again")
    rds.modify_db_instance(DBInstanceIdentifier="life", MultiAZ=False, ApplyImmediately=True)
    shown = available("life")
    assert not shown["MultiAZ"]
    eventually(30, lambda: "SecondaryAvailabilityZone" not in instance("life"), "no standby")
    fails("InvalidParameterCombination", rds.reboot_db_instance, DBInstanceIdentifier="life", ForceFailover=True)
    rds.modify_db_instance(DBInstanceIdentifier="life", MultiAZ=True, ApplyImmediately=True)
    shown = available("life")
    assert shown["MultiAZ"] and shown["SecondaryAvailabilityZone"], shown
    told("db-instance", "life", "convert to a Multi-AZ DB Instance", "convert to a standard (Single-AZ) DB Instance")

    step("a reboot keeps the primary where it is; one with failover swaps the zones")
    zone = instance("life")["AvailabilityZone"]
    started = sql(at, "SELECT pg_postmaster_start_time()")
    assert rds.reboot_db_instance(DBInstanceIdentifier="life")["DBInstance"]["DBInstanceStatus"] == "rebooting"
    available("life")
    assert instance("life")["AvailabilityZone"] == zone and sql(at, "SELECT pg_postmaster_start_time()") != started
    eventually(30, lambda: rds.reboot_db_instance(DBInstanceIdentifier="life", ForceFailover=True), "a standby in sync")
    shown = available("life")
    assert shown["AvailabilityZone"] != zone, shown["AvailabilityZone"]
    assert sql(at, "SELECT n FROM kept", database="shop") == "1"
    told("db-instance", "life", "DB instance restarted", "Multi-AZ instance failover started", "Multi-AZ instance failover completed")

    step("a stopped instance refuses clients and cannot be stopped again; started, it has its data")
    eventually(30, lambda: rds.stop_db_instance(DBInstanceIdentifier="life"), "available to be stopped")
    eventually(30, lambda: instance("life")["DBInstanceStatus"] == "stopped", "stopped")
    assert refused(at)
    fails("InvalidDBInstanceState", rds.stop_db_instance, DBInstanceIdentifier="life")
    fails("InvalidDBInstanceState", rds.modify_db_instance, DBInstanceIdentifier="life", AllocatedStorage=50)
    assert rds.start_db_instance(DBInstanceIdentifier="life")["DBInstance"]["DBInstanceStatus"] == "starting"
    available("life")
    fails("InvalidDBInstanceState", rds.start_db_instance, DBInstanceIdentifier="life")
    assert sql(at, "SELECT n FROM kept", database="shop") == "1"
    told("db-instance", "life", "DB instance stopped", "DB instance started")

    step("a new name finds the instance where it was; the old one is free")
    rds.modify_db_instance(DBInstanceIdentifier="life", NewDBInstanceIdentifier="afterlife", ApplyImmediately=True)
    fails("DBInstanceNotFound", rds.describe_db_instances, DBInstanceIdentifier="life")
    assert available("afterlife")["Endpoint"]["Address"] == at
    assert sql(at, "SELECT n FROM kept", database="shop") == "1"

    step("a setting in a tag makes writes wait for the standby, and is checked")
    arn = instance("afterlife")["DBInstanceArn"]
    fails("InvalidParameterValue", rds.add_tags_to_resource, ResourceName=arn, Tags=[{"Key": "howdah:wait-for-standby", "Value": "maybe"}])
    rds.add_tags_to_resource(ResourceName=arn, Tags=[{"Key": "howdah:wait-for-standby", "Value": "true"}])
    rds.remove_tags_from_resource(ResourceName=arn, TagKeys=["team"])
    assert rds.list_tags_for_resource(ResourceName=arn)["TagList"] == [{"Key": "howdah:wait-for-standby", "Value": "true"}]

    step("deletion protection protects until it is switched off")
    rds.modify_db_instance(DBInstanceIdentifier="afterlife", DeletionProtection=True)
    fails("InvalidParameterCombination", rds.delete_db_instance, DBInstanceIdentifier="afterlife", SkipFinalSnapshot=True)
    rds.modify_db_instance(DBInstanceIdentifier="afterlife", DeletionProtection=False)

    step("deleted, it is gone, and its endpoint refuses")
    delete("afterlife")
    try:  # it may be gone by now
        rds.delete_db_instance(DBInstanceIdentifier="afterlife", SkipFinalSnapshot=True)
        raise AssertionError("an instance that is being deleted can be deleted")
    except ClientError as e:
        assert e.response["Error"]["Code"] in ("InvalidDBInstanceState", "DBInstanceNotFound"), e
    wait("db_instance_deleted", DBInstanceIdentifier="afterlife")
    # Another database may have its address by now. That one has nothing of it.
    assert refused(at, "SELECT n FROM kept", database="shop")
    told("db-instance", "afterlife", "DB instance deleted")


def journey_replica():
    step("a source with data")
    create("source")
    available("source")
    sql(address("source"), "CREATE TABLE t (n int); INSERT INTO t SELECT generate_series(1, 1000)")

    step("a replica of it, and a replica of the replica")
    made = rds.create_db_instance_read_replica(DBInstanceIdentifier="copy", SourceDBInstanceIdentifier="source")["DBInstance"]
    assert made["ReadReplicaSourceDBInstanceIdentifier"] == "source" and made["DBInstanceStatus"] == "creating", made
    available("copy")
    rds.create_db_instance_read_replica(DBInstanceIdentifier="copycopy", SourceDBInstanceIdentifier="copy", DBInstanceClass="db.t3.small")
    available("copycopy")
    assert instance("source")["ReadReplicaDBInstanceIdentifiers"] == ["copy"]
    assert instance("copy")["ReadReplicaDBInstanceIdentifiers"] == ["copycopy"]

    step("what is written to the source arrives at both, which take no writes")
    for name in ("copy", "copycopy"):
        eventually(10, lambda: sql(address(name), "SELECT count(*) FROM t") == "1000", f"the rows on {name}")
        assert refused(address(name), "INSERT INTO t VALUES (0)")
    sql(address("source"), "INSERT INTO t VALUES (1001)")
    eventually(10, lambda: sql(address("copycopy"), "SELECT max(n) FROM t") == "1001", "the new row on copycopy")
    eventually(10, lambda: instance("copycopy")["StatusInfos"][0]["Status"] == "replicating", "replicating")

    step("the source cannot be stopped while it is followed")
    fails("InvalidDBInstanceState", rds.stop_db_instance, DBInstanceIdentifier="source")
    fails("InvalidDBInstanceState", rds.promote_read_replica, DBInstanceIdentifier="source")

    step("a password changed on the source logs in everywhere, also after a promotion")
    rds.modify_db_instance(DBInstanceIdentifier="source", MasterUserPassword="newer-Secret-3")
    available("source")
    for name in ("copy", "copycopy"):
        eventually(10, lambda: sql(address(name), "SELECT 1", password="newer-Secret-3") == "1", f"the new password on {name}")

    step("the source moves to another port, and is followed there")
    rds.modify_db_instance(DBInstanceIdentifier="source", DBPortNumber=7000)
    available("source")
    eventually(15, lambda: sql(address("source"), "INSERT INTO t VALUES (1002)", password="newer-Secret-3", port=7000) == "", "a write at the new port")
    eventually(30, lambda: sql(address("copycopy"), "SELECT max(n) FROM t", password="newer-Secret-3") == "1002", "the row of the new port")

    step("a class that grows on the source keeps the replicas replicating")
    rds.modify_db_instance(DBInstanceIdentifier="source", DBInstanceClass="db.m5.large", ApplyImmediately=True)
    available("source")
    sql(address("source"), "INSERT INTO t VALUES (1003)", password="newer-Secret-3", port=7000)
    eventually(60, lambda: sql(address("copycopy"), "SELECT max(n) FROM t", password="newer-Secret-3") == "1003", "a row after the change")

    step("the middle one is promoted: it takes writes, and the last one follows it")
    available("copy")
    rds.promote_read_replica(DBInstanceIdentifier="copy")
    shown = available("copy")
    assert "ReadReplicaSourceDBInstanceIdentifier" not in shown
    sql(address("copy"), "INSERT INTO t VALUES (2000)", password="newer-Secret-3")
    eventually(30, lambda: sql(address("copycopy"), "SELECT max(n) FROM t", password="newer-Secret-3") == "2000", "its row on copycopy")
    assert sql(address("source"), "SELECT max(n) FROM t", password="newer-Secret-3", port=7000) == "1003"
    fails("InvalidDBInstanceState", rds.promote_read_replica, DBInstanceIdentifier="copy")

    step("deleting the source of a replica leaves it independent")
    delete("copy")
    wait("db_instance_deleted", DBInstanceIdentifier="copy")
    available("copycopy")
    sql(address("copycopy"), "INSERT INTO t VALUES (3000)", password="newer-Secret-3")

    for name in ("source", "copycopy"):
        delete(name)
    for name in ("source", "copycopy"):
        wait("db_instance_deleted", DBInstanceIdentifier=name)


def add_member(cluster_name, name, tier=1, size="db.t3.micro", **more):
    return rds.create_db_instance(DBInstanceIdentifier=name, DBInstanceClass=size, Engine="aurora-postgresql",
                                  DBClusterIdentifier=cluster_name, PromotionTier=tier, **more)["DBInstance"]


def who(at):
    """The member that answers: its address and port, as PostgreSQL knows them."""
    return sql(at, "SELECT current_setting('cluster_name') || ' ' || inet_server_addr() || ' ' || current_setting('port')")


def in_recovery(at):
    return sql(at, "SELECT pg_is_in_recovery()") == "t"


def journey_cluster():
    step("an Aurora cluster exists before it has instances")
    made = rds.create_db_cluster(DBClusterIdentifier="aura", Engine="aurora-postgresql", MasterUsername="boss", MasterUserPassword=PASSWORD, DatabaseName="app")
    assert made["DBCluster"]["Status"] == "creating"
    cluster_available("aura")
    fails("DBClusterAlreadyExistsFault", rds.create_db_cluster, DBClusterIdentifier="aura", Engine="aurora-postgresql", MasterUsername="boss", MasterUserPassword=PASSWORD)

    step("the first instance becomes the writer, the next two readers")
    add_member("aura", "aura-1")
    available("aura-1")
    assert add_member("aura", "aura-2", tier=2)["DBInstanceStatus"] == "creating"
    assert add_member("aura", "aura-3", tier=0)["DBInstanceStatus"] == "creating"
    for name in ("aura-2", "aura-3"):
        available(name)
    shown = cluster_available("aura")
    assert members("aura") == {"aura-1": True, "aura-2": False, "aura-3": False}, members("aura")
    sql(shown["Endpoint"], "CREATE TABLE t (n int); INSERT INTO t VALUES (1)", database="app")
    told("db-cluster", "aura", "DB cluster created")
    for name in ("aura-1", "aura-2", "aura-3"):
        told("db-instance", name, "DB instance created")

    step("the reader endpoint leads to both readers, each instance endpoint to its own")
    eventually(10, lambda: len({who(shown["ReaderEndpoint"]) for _ in range(8)}) == 2, "two readers")
    assert in_recovery(shown["ReaderEndpoint"]) and not in_recovery(shown["Endpoint"])
    assert len({who(address(f"aura-{n}")) for n in (1, 2, 3)}) == 3
    eventually(10, lambda: sql(shown["ReaderEndpoint"], "SELECT n FROM t", database="app") == "1", "the row on a reader")

    step("custom endpoints lead to the instances of their lists")
    one = rds.create_db_cluster_endpoint(DBClusterIdentifier="aura", DBClusterEndpointIdentifier="reports", EndpointType="READER", StaticMembers=["aura-2"])
    rest = rds.create_db_cluster_endpoint(DBClusterIdentifier="aura", DBClusterEndpointIdentifier="others", EndpointType="ANY", ExcludedMembers=["aura-2"])
    eventually(10, lambda: who(one["Endpoint"]) == who(address("aura-2")), "reports leads to aura-2")
    eventually(10, lambda: {who(rest["Endpoint"]) for _ in range(8)} == {who(address("aura-1")), who(address("aura-3"))}, "others leads to the rest")
    rds.modify_db_cluster_endpoint(DBClusterEndpointIdentifier="reports", StaticMembers=["aura-3"])
    eventually(10, lambda: who(one["Endpoint"]) == who(address("aura-3")), "reports leads to aura-3")
    kinds = [e["EndpointType"] for e in rds.describe_db_cluster_endpoints(DBClusterIdentifier="aura")["DBClusterEndpoints"]]
    assert kinds == ["WRITER", "READER", "CUSTOM", "CUSTOM"], kinds
    rds.delete_db_cluster_endpoint(DBClusterEndpointIdentifier="others")
    eventually(10, lambda: len(rds.describe_db_cluster_endpoints(DBClusterIdentifier="aura")["DBClusterEndpoints"]) == 3, "the endpoint gone")

    step("a failover goes to the instance that was asked for, and the writer endpoint with it")
    answer = eventually(30, lambda: rds.failover_db_cluster(DBClusterIdentifier="aura", TargetDBInstanceIdentifier="aura-2"), "a reader in sync")
    assert answer["DBCluster"]["Status"] == "failing-over", answer["DBCluster"]["Status"]
    cluster_available("aura")
    assert writer("aura") == "aura-2", members("aura")
    eventually(10, lambda: who(shown["Endpoint"]) == who(address("aura-2")), "the writer endpoint at aura-2")
    sql(shown["Endpoint"], "INSERT INTO t VALUES (2)", database="app")
    told("db-cluster", "aura", "Completed failover to DB instance: aura-2")
    fails("InvalidDBInstanceState", rds.failover_db_cluster, DBClusterIdentifier="aura", TargetDBInstanceIdentifier="aura-2")

    step("without a target it goes to the lowest tier")
    # A failover takes the lowest tier of those in sync, so that instance must be back, too.
    eventually(60, lambda: sql(shown["Endpoint"], "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum'") == "2", "both readers in sync")
    eventually(30, lambda: rds.failover_db_cluster(DBClusterIdentifier="aura"), "a reader in sync")
    cluster_available("aura")
    assert writer("aura") == "aura-3", members("aura")

    step("one instance reboots alone")
    available("aura-1")
    assert rds.reboot_db_instance(DBInstanceIdentifier="aura-1")["DBInstance"]["DBInstanceStatus"] == "rebooting"
    available("aura-1")
    assert writer("aura") == "aura-3"
    told("db-instance", "aura-1", "DB instance restarted")

    step("the class of one instance changes")
    rds.modify_db_instance(DBInstanceIdentifier="aura-1", DBInstanceClass="db.t3.medium", ApplyImmediately=True)
    status_was("modifying", "aura-1")
    assert available("aura-1")["DBInstanceClass"] == "db.t3.medium"
    told("db-instance", "aura-1", "Finished applying modification to DB instance class")
    for name in ("aura-2", "aura-3"):
        available(name)

    step("password and port belong to the cluster")
    fails("InvalidParameterCombination", rds.modify_db_instance, DBInstanceIdentifier="aura-1", MasterUserPassword="other-Secret-4")
    rds.modify_db_cluster(DBClusterIdentifier="aura", MasterUserPassword="other-Secret-4", ApplyImmediately=True)
    cluster_available("aura")
    assert sql(shown["Endpoint"], "SELECT count(*) FROM t", database="app", password="other-Secret-4") == "2"
    rds.modify_db_cluster(DBClusterIdentifier="aura", MasterUserPassword=PASSWORD, Port=5555)
    cluster_available("aura")
    eventually(10, lambda: sql(shown["Endpoint"], "SELECT 1", port=5555) == "1", "the new port")
    assert refused(shown["Endpoint"])
    assert instance("aura-1")["Endpoint"]["Port"] == 5555
    rds.modify_db_cluster(DBClusterIdentifier="aura", Port=5432)
    cluster_available("aura")
    eventually(10, lambda: sql(shown["Endpoint"], "SELECT 1") == "1", "the first port")

    step("the writer is deleted, and a reader takes over")
    delete("aura-3")
    wait("db_instance_deleted", DBInstanceIdentifier="aura-3")
    cluster_available("aura")
    assert writer("aura") != "aura-3" and len(members("aura")) == 2
    eventually(10, lambda: sql(shown["Endpoint"], "INSERT INTO t VALUES (3)", database="app") == "", "a write after it")

    step("an instance that must not be promoted is passed over")
    reader = next(n for n, is_writer in members("aura").items() if not is_writer)
    rds.add_tags_to_resource(ResourceName=instance(reader)["DBInstanceArn"], Tags=[{"Key": "howdah:promotable", "Value": "false"}])
    fails("InvalidDBClusterStateFault", rds.failover_db_cluster, DBClusterIdentifier="aura")
    rds.remove_tags_from_resource(ResourceName=instance(reader)["DBInstanceArn"], TagKeys=["howdah:promotable"])

    step("a stopped cluster refuses clients; started, it has its data")
    eventually(30, lambda: rds.stop_db_cluster(DBClusterIdentifier="aura"), "all instances available")
    eventually(30, lambda: cluster("aura")["Status"] == "stopped", "stopped")
    status_was("stopped", reader)
    assert refused(shown["Endpoint"])
    fails("InvalidDBClusterStateFault", rds.stop_db_cluster, DBClusterIdentifier="aura")
    assert rds.start_db_cluster(DBClusterIdentifier="aura")["DBCluster"]["Status"] == "starting"
    cluster_available("aura")
    eventually(10, lambda: sql(shown["Endpoint"], "SELECT count(*) FROM t", database="app") == "3", "the data")

    step("a replica of the cluster follows its writer")
    rds.create_db_instance_read_replica(DBInstanceIdentifier="aside", SourceDBClusterIdentifier="aura")
    available("aside")
    assert cluster("aura")["ReadReplicaIdentifiers"] == ["aside"]
    eventually(10, lambda: sql(address("aside"), "SELECT count(*) FROM t", database="app") == "3", "the rows on the replica")
    eventually(30, lambda: rds.failover_db_cluster(DBClusterIdentifier="aura"), "a reader in sync")
    cluster_available("aura")
    eventually(10, lambda: sql(shown["Endpoint"], "INSERT INTO t VALUES (4)", database="app") == "", "a write to the new writer")
    eventually(30, lambda: sql(address("aside"), "SELECT count(*) FROM t", database="app") == "4", "its row on the replica")

    step("a new name finds the cluster")
    rds.modify_db_cluster(DBClusterIdentifier="aura", NewDBClusterIdentifier="corona", ApplyImmediately=True)
    assert cluster_available("corona")["Endpoint"] == shown["Endpoint"]
    assert instance("aura-1")["DBClusterIdentifier"] == "corona"

    step("a cluster with instances cannot be deleted; without any it keeps its data")
    fails("InvalidDBClusterStateFault", rds.delete_db_cluster, DBClusterIdentifier="corona", SkipFinalSnapshot=True)
    for name in members("corona"):
        delete(name)
    for name in ("aura-1", "aura-2"):
        wait("db_instance_deleted", DBInstanceIdentifier=name)
    assert cluster_available("corona")["DBClusterMembers"] == []
    add_member("corona", "aura-4")
    available("aura-4")
    eventually(10, lambda: sql(shown["Endpoint"], "SELECT count(*) FROM t", database="app") == "4", "the data of before")

    step("deleted, it is gone, and its replica goes on by itself")
    delete("aura-4")
    assert rds.delete_db_cluster(DBClusterIdentifier="corona", SkipFinalSnapshot=True)["DBCluster"]["Status"] == "deleting"
    wait("db_cluster_deleted", DBClusterIdentifier="corona")
    fails("DBClusterNotFoundFault", rds.describe_db_clusters, DBClusterIdentifier="corona")
    available("aside")
    sql(address("aside"), "INSERT INTO t VALUES (5)", database="app")
    delete("aside")
    wait("db_instance_deleted", DBInstanceIdentifier="aside")


def journey_multi_az_cluster():
    step("a Multi-AZ DB cluster makes three instances by itself, in three zones")
    rds.create_db_cluster(DBClusterIdentifier="trio", Engine="postgres", DBClusterInstanceClass="db.m5.large", AllocatedStorage=100, Iops=1000,
                          StorageType="io1", MasterUsername="boss", MasterUserPassword=PASSWORD)
    shown = cluster_available("trio")
    names = ["trio-instance-1", "trio-instance-2", "trio-instance-3"]
    assert list(members("trio")) == names and sum(members("trio").values()) == 1, members("trio")
    for name in names:
        available(name)
    assert len({instance(n)["AvailabilityZone"] for n in names}) == 3 and shown["MultiAZ"]
    told("db-cluster", "trio", "DB cluster created")
    sql(shown["Endpoint"], "CREATE TABLE t (n int); INSERT INTO t VALUES (1)")
    eventually(10, lambda: sql(shown["ReaderEndpoint"], "SELECT n FROM t") == "1", "the row on a reader")

    step("its instances are the cluster's to change and to delete")
    fails("InvalidDBInstanceState", rds.delete_db_instance, DBInstanceIdentifier=names[1], SkipFinalSnapshot=True)
    fails("InvalidParameterCombination", rds.modify_db_instance, DBInstanceIdentifier=names[1], DBInstanceClass="db.m5.xlarge")
    fails("InvalidParameterCombination", rds.create_db_instance, DBInstanceIdentifier="fourth", DBInstanceClass="db.m5.large", Engine="postgres", DBClusterIdentifier="trio")

    step("a failover, a reboot and a class change leave it available")
    heir = next(n for n, is_writer in members("trio").items() if not is_writer)
    eventually(30, lambda: rds.failover_db_cluster(DBClusterIdentifier="trio", TargetDBInstanceIdentifier=heir), "a reader in sync")
    cluster_available("trio")
    assert writer("trio") == heir
    for name in names:
        available(name)
    assert rds.reboot_db_cluster(DBClusterIdentifier="trio")["DBCluster"]["Status"] == "rebooting"
    cluster_available("trio")
    for name in names:
        available(name)
        told("db-instance", name, "DB instance restarted")
    rds.modify_db_cluster(DBClusterIdentifier="trio", DBClusterInstanceClass="db.m5.xlarge", ApplyImmediately=True)
    assert cluster("trio")["Status"] == "modifying"
    assert cluster_available("trio")["DBClusterInstanceClass"] == "db.m5.xlarge"
    for name in names:
        assert available(name)["DBInstanceClass"] == "db.m5.xlarge"
    eventually(10, lambda: sql(shown["Endpoint"], "SELECT n FROM t") == "1", "the data")

    step("deleting it deletes its instances")
    rds.delete_db_cluster(DBClusterIdentifier="trio", SkipFinalSnapshot=True)
    wait("db_cluster_deleted", DBClusterIdentifier="trio")
    for name in names:
        fails("DBInstanceNotFound", rds.describe_db_instances, DBInstanceIdentifier=name)


def journey_deleting():
    step("an instance is deleted while it is being created")
    create("hasty", MultiAZ=True)
    rds.delete_db_instance(DBInstanceIdentifier="hasty", SkipFinalSnapshot=True)
    wait("db_instance_deleted", DBInstanceIdentifier="hasty")

    step("its name can be taken again at once")
    create("hasty")
    available("hasty")
    delete("hasty")
    wait("db_instance_deleted", DBInstanceIdentifier="hasty")

    step("the waiter for a deletion fails at once on an instance that is being created")
    create("waited")
    try:
        wait("db_instance_deleted", DBInstanceIdentifier="waited")
        raise AssertionError("the waiter succeeded")
    except WaiterError as e:
        assert "terminal failure" in str(e), e
    delete("waited")
    wait("db_instance_deleted", DBInstanceIdentifier="waited")


def journey_refusals():
    step("errors have the exceptions that boto3 knows them by")
    for action, exception, parameters in [
            (rds.describe_db_instances, rds.exceptions.DBInstanceNotFoundFault, {"DBInstanceIdentifier": "none"}),
            (rds.describe_db_clusters, rds.exceptions.DBClusterNotFoundFault, {"DBClusterIdentifier": "none"}),
            (rds.modify_db_cluster_endpoint, rds.exceptions.DBClusterEndpointNotFoundFault, {"DBClusterEndpointIdentifier": "none"}),
            (create, rds.exceptions.DBParameterGroupNotFoundFault, {"name": "bad", "DBParameterGroupName": "mine"}),
            (create, rds.exceptions.DBSubnetGroupNotFoundFault, {"name": "bad", "DBSubnetGroupName": "mine"})]:
        try:
            action(**parameters)
            raise AssertionError(f"no {exception.__name__}")
        except exception:
            pass

    step("what is not there yet is an InvalidAction, and no reason to try again")
    fails("InvalidAction", rds.start_export_task, ExportTaskIdentifier="e", SourceArn="a", S3BucketName="bucket", IamRoleArn="r", KmsKeyId="k")

    step("bad parameters are named in the message")
    message = fails("InvalidParameterValue", create, name="bad", MasterUserPassword="has/slash-and-more")
    assert "MasterUserPassword" in message and "has/slash" not in message, message
    fails("InvalidParameterValue", create, name="bad--name")
    fails("InvalidParameterValue", rds.describe_db_instances, Filters=[{"Name": "color", "Values": ["blue"]}])
    fails("InvalidParameterValue", rds.describe_db_instances, MaxRecords=7)

    step("a wrong secret and an unknown key are told apart")
    for code, key, secret in [("SignatureDoesNotMatch", os.environ["AWS_ACCESS_KEY_ID"], "guess"), ("InvalidClientTokenId", "NOBODY", "guess")]:
        client = boto3.client("rds", aws_access_key_id=key, aws_secret_access_key=secret, config=Config(retries={"total_max_attempts": 1}))
        fails(code, client.describe_db_instances)

    step("regions do not see each other")
    create("here")
    elsewhere = boto3.client("rds", region_name="elsewhere-1")
    assert elsewhere.describe_db_instances()["DBInstances"] == []
    delete("here")
    wait("db_instance_deleted", DBInstanceIdentifier="here")


JOURNEYS = {
    "instance": journey_instance,
    "replica": journey_replica,
    "cluster": journey_cluster,
    "multi-az-cluster": journey_multi_az_cluster,
    "deleting": journey_deleting,
    "refusals": journey_refusals,
    "parameter-groups": journey_parameter_groups,
    "cluster-parameter-groups": journey_cluster_parameter_groups,
}


def clean(before_instances, before_clusters):
    """Deletes what the journeys left."""
    for i in rds.describe_db_instances()["DBInstances"]:
        if i["DBInstanceIdentifier"] not in before_instances and i["DBInstanceStatus"] != "deleting":
            try:
                rds.delete_db_instance(DBInstanceIdentifier=i["DBInstanceIdentifier"], SkipFinalSnapshot=not i.get("DBClusterIdentifier"))
            except ClientError as e:
                print("         left behind:", e)
    for c in rds.describe_db_clusters()["DBClusters"]:
        if c["DBClusterIdentifier"] not in before_clusters and c["Status"] != "deleting":
            try:
                rds.delete_db_cluster(DBClusterIdentifier=c["DBClusterIdentifier"], SkipFinalSnapshot=True)
            except ClientError as e:
                print("         left behind:", e)


def explain():
    """What the home says of itself when a journey has failed, before everything is deleted."""
    status = os.environ.get("HOWDAH_TEST_STATUS")
    if status:
        print(subprocess.run(status.split(), capture_output=True, text=True, timeout=30).stdout, flush=True)
    for e in rds.describe_events(Duration=10)["Events"][-30:]:
        print("        ", e["Date"], e["SourceIdentifier"], e["Message"], flush=True)


def main():
    chosen = sys.argv[1:] or list(JOURNEYS)
    instances = {i["DBInstanceIdentifier"] for i in rds.describe_db_instances()["DBInstances"]}
    clusters = {c["DBClusterIdentifier"] for c in rds.describe_db_clusters()["DBClusters"]}
    try:
        for name in chosen:
            print(f"--- {name}", flush=True)
            JOURNEYS[name]()
    except BaseException:
        explain()
        raise
    finally:
        if os.environ.get("HOWDAH_KEEP") is None:
            clean(instances, clusters)
    print(f"{time.time() - BEGAN:7.1f}  all journeys done", flush=True)


if __name__ == "__main__":
    main()
