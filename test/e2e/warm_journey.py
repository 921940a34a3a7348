#!/usr/bin/env python3
"""The journey of somebody who tries cluster cache management as Amazon's article on it does: its steps, its SQL and its pgbench line.

Run it against the environment that `howdah env` prints.

    eval "$(bin/howdah env --home DIR)" && python3 test/e2e/warm_journey.py
"""
import os
import subprocess

from api_steps import MAJOR, PASSWORD, PATIENCE, Refused, available, cluster_available, eventually, rds, sql, step, told

CLASS = "db.m5.large"
HOTTEST = """SELECT c.relname, count(*) AS buffers
 FROM pg_buffercache b INNER JOIN pg_class c
 ON b.relfilenode = pg_relation_filenode(c.oid) AND
 b.reldatabase IN (0, (SELECT oid FROM pg_database
 WHERE datname = current_database()))
 GROUP BY c.relname
 ORDER BY 2 DESC
 LIMIT 10"""


def pgbench(host, *words):
    done = subprocess.run(["pgbench", *words, f"--host={host}", "--port=5432", "--username=boss", "ccmdb"],
                          env=dict(os.environ, PGPASSWORD=PASSWORD, PGSSLMODE="verify-full"), capture_output=True, text=True, timeout=120 * PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def load(host):
    out = pgbench(host, "--progress-timestamp", "-M", "prepared", "-n", "-T", "8", "-P", "1", "-c", "8", "-j", "2", "-b", "tpcb-like@1", "-b", "select-only@20")
    assert "tps = " in out, out


def ask(host, statement):
    return sql(host, statement, database="ccmdb")


def buffers(host):
    return {name: int(n) for name, n in (line.split("|") for line in ask(host, HOTTEST).splitlines())}


def ccm_status(host):
    """The row of aurora_ccm_status(), by its columns' names."""
    names = ["buffers_sent_last_minute", "buffers_found_last_minute", "buffers_sent_last_scan", "buffers_found_last_scan",
             "buffers_sent_current_scan", "buffers_found_current_scan", "current_scan_progress"]
    values = ask(host, f"SELECT {', '.join(names)} FROM aurora_ccm_status()").split("|")
    return {name: int(value or 0) for name, value in zip(names, values)}


def disabled(host):
    try:
        ask(host, "select * from aurora_ccm_status()")
    except Refused as e:
        return "ERROR:  Cluster Cache Manager is disabled" in str(e)
    return False


def warm(writer, reader):
    """What is hottest on the writer is on the reader, within 1 %."""
    here, there = buffers(writer), buffers(reader)
    name = max(here, key=here.get)
    if name != "pgbench_accounts" or there.get(name, 0) < 0.99 * here[name]:
        raise Refused(f"{name}: {here} on the writer, {there} on the reader")
    return True


def main():
    step("a cluster with the parameter apg_ccm_enabled at 0")
    rds.create_db_cluster_parameter_group(DBClusterParameterGroupName="apg-ccm", DBParameterGroupFamily=f"aurora-postgresql{MAJOR}", Description="of a journey")
    rds.create_db_cluster(DBClusterIdentifier="ccmcluster", Engine="aurora-postgresql", MasterUsername="boss", MasterUserPassword=PASSWORD,
                          DatabaseName="ccmdb", DBClusterParameterGroupName="apg-ccm")
    for name in ("ccminstance", "ccminstance-ro"):
        rds.create_db_instance(DBInstanceIdentifier=name, DBClusterIdentifier="ccmcluster", Engine="aurora-postgresql", DBInstanceClass=CLASS)
    for name in ("ccminstance", "ccminstance-ro"):
        available(name)
    shown = cluster_available("ccmcluster")
    writer, reader = shown["Endpoint"], shown["ReaderEndpoint"]
    eventually(30, lambda: disabled(writer), "the function says that it is disabled")

    step("the parameter is set to 1, and both instances get promotion tier 0")
    rds.modify_db_cluster_parameter_group(DBClusterParameterGroupName="apg-ccm", Parameters=[
        {"ParameterName": "apg_ccm_enabled", "ParameterValue": "1", "ApplyMethod": "immediate"}])
    for name in ("ccminstance", "ccminstance-ro"):
        rds.modify_db_instance(DBInstanceIdentifier=name, PromotionTier=0, ApplyImmediately=True)
    for name in ("ccminstance", "ccminstance-ro"):
        assert available(name)["PromotionTier"] == 0
    told("db-cluster", "ccmcluster", "Cluster cache management is on")

    step("pgbench's tables are made, and its load runs")
    pgbench(writer, "-i", "--fillfactor=100", "--scale=5")
    assert ask(writer, "SELECT pg_size_pretty( pg_database_size('ccmdb') )").endswith("MB")
    load(writer)
    eventually(60, lambda: ccm_status(writer)["buffers_found_last_scan"] > 0, "the function says what it found")

    step("what is cached on the writer is cached on the reader")
    ask(writer, "CREATE EXTENSION pg_buffercache")
    assert ask(writer, "show transaction_read_only") == "off"
    eventually(30, lambda: ask(reader, "show transaction_read_only") == "on" and buffers(reader), "the reader has the extension, too")
    eventually(60, lambda: warm(writer, reader), "the caches are alike")
    status = ccm_status(writer)
    step(f"{status}")
    assert status["buffers_sent_last_scan"] <= status["buffers_found_last_scan"], status

    step("the writer fails over, and the same load runs on the new one")
    rds.failover_db_cluster(DBClusterIdentifier="ccmcluster", TargetDBInstanceIdentifier="ccminstance-ro")
    members = lambda: {m["DBInstanceIdentifier"]: m["IsClusterWriter"] for m in cluster_available("ccmcluster")["DBClusterMembers"]}
    eventually(60, lambda: members()["ccminstance-ro"], "the reader is the writer now")
    eventually(60, lambda: ask(writer, "show transaction_read_only") == "off", "the cluster's endpoint leads to it")
    load(writer)
    eventually(60, lambda: ccm_status(writer)["buffers_found_last_scan"] > 0, "the former writer asks now")
    eventually(60, lambda: warm(writer, reader), "the caches are alike again")

    step("the parameter is set to 0")
    rds.modify_db_cluster_parameter_group(DBClusterParameterGroupName="apg-ccm", Parameters=[
        {"ParameterName": "apg_ccm_enabled", "ParameterValue": "0", "ApplyMethod": "immediate"}])
    eventually(30, lambda: disabled(writer), "the function says that it is disabled")


main()
