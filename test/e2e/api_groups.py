"""Journeys through parameter groups: what is set at the API is what PostgreSQL runs with, and says."""
from api_steps import (MAJOR, address, available, cluster, cluster_available, create, eventually, fails, instance, rds, refused, sql, step, told, wait, writer, PASSWORD)


def values(*settings):
    """Each setting is "name=value", with " later" after it for the next reboot."""
    parameters = []
    for setting in settings:
        later = setting.endswith(" later")
        name, _, value = setting.removesuffix(" later").partition("=")
        parameters.append({"ParameterName": name, "ParameterValue": value, "ApplyMethod": "pending-reboot" if later else "immediate"})
    return parameters


def change(group, *settings):
    rds.modify_db_parameter_group(DBParameterGroupName=group, Parameters=values(*settings))


def status(name):
    return instance(name)["DBParameterGroups"][0]["ParameterApplyStatus"]


def reboot(name):
    rds.reboot_db_instance(DBInstanceIdentifier=name)
    available(name)


def shows(at, name, value, within=15):
    eventually(within, lambda: sql(at, f"SHOW {name}") == value, f"{name} to be {value}")


def connects(at, mode):
    """Logs in with a mode of TLS. The certificate does not matter for it."""
    return not refused(at, f"SELECT '{mode}'", sslmode=mode)


def known():
    """The parameters are read from PostgreSQL when a home starts."""
    eventually(60, lambda: rds.describe_db_parameters(DBParameterGroupName=f"default.postgres{MAJOR}")["Parameters"], "the parameters read")


def journey_parameter_groups():
    step("a family's defaults hold every parameter of PostgreSQL, in pages")
    known()
    pages = rds.get_paginator("describe_engine_default_parameters").paginate(DBParameterGroupFamily=f"postgres{MAJOR}")
    defaults = {p["ParameterName"]: p for page in pages for p in page["EngineDefaults"]["Parameters"]}
    assert len(defaults) > 370 and defaults["shared_buffers"]["ParameterValue"] == "{DBInstanceClassMemory/32768}", len(defaults)
    assert defaults["max_connections"]["ApplyType"] == "static" and not defaults["ssl"]["IsModifiable"]

    step("a group, and an instance with a standby that uses it")
    rds.create_db_parameter_group(DBParameterGroupName="mine", DBParameterGroupFamily=f"postgres{MAJOR}", Description="a journey")
    change("mine", "work_mem=8192", "log_min_duration_statement=250ms", "shared_preload_libraries=auto_explain later")
    create("tuned", DBParameterGroupName="mine", MultiAZ=True)
    available("tuned")
    at = address("tuned")
    assert sql(at, "SHOW work_mem") == "8MB" and sql(at, "SHOW log_min_duration_statement") == "250ms"
    assert sql(at, "SHOW shared_preload_libraries") == "pg_stat_statements,howdah,auto_explain,ccm"
    eventually(15, lambda: status("tuned") == "in-sync", "in sync")

    step("what PostgreSQL would refuse is refused, and why")
    for setting in ("work_mem=1", "work_mem=64mb", "DateStyle=upside", "TimeZone=Nowhere", "nothing=1", "synchronous_standby_names=*", "max_connections={Bad} later"):
        refusal(setting)
    message = fails("InvalidParameterValue", rds.modify_db_parameter_group, DBParameterGroupName="mine", Parameters=values("shared_buffers=4GB later"))
    assert "shared_buffers" in message and "tuned" in message, message

    step("a dynamic parameter acts at once, on sessions that are open too")
    change("mine", "work_mem={DBInstanceClassMemory/65536}")
    shows(at, "work_mem", "16MB")
    eventually(15, lambda: status("tuned") == "in-sync", "in sync")
    told("db-parameter-group", "mine", "Updated parameter work_mem to {DBInstanceClassMemory/65536} with apply method immediate.")

    step("a static one waits until the reboot, as PostgreSQL says itself, and so does a dynamic one that was told to")
    before = sql(at, "SHOW max_connections")
    change("mine", "max_connections=150 later", "jit=0 later")
    eventually(20, lambda: status("tuned") == "pending-reboot", "pending-reboot")
    assert sql(at, "SHOW max_connections") == before != "150" and sql(at, "SHOW jit") == "on"
    reboot("tuned")
    assert sql(at, "SHOW max_connections") == "150"
    shows(at, "jit", "off")
    eventually(30, lambda: status("tuned") == "in-sync", "in sync after the reboot")

    step("a reboot with failover takes over what waits as well: the standby has it, and takes writes")
    change("mine", "max_connections=160 later")
    eventually(20, lambda: status("tuned") == "pending-reboot", "pending-reboot")
    eventually(60, lambda: rds.reboot_db_instance(DBInstanceIdentifier="tuned", ForceFailover=True), "a standby in sync")
    available("tuned")
    assert sql(at, "SHOW max_connections") == "160"
    eventually(30, lambda: status("tuned") == "in-sync", "in sync after the failover")
    eventually(10, lambda: sql(at, "CREATE TABLE IF NOT EXISTS kept (n int)") == "", "a write")

    step("TLS is forced unless the group says otherwise")
    assert not connects(at, "disable")
    change("mine", "rds.force_ssl=0")
    eventually(15, lambda: connects(at, "disable"), "a login without TLS")
    change("mine", "rds.force_ssl=1")
    eventually(15, lambda: not connects(at, "disable"), "TLS forced again")

    step("users create the extensions that the group lists, and no others")
    change("mine", "rds.extensions=citext")
    eventually(15, lambda: sql(at, "SHOW rds.extensions") == "citext", "the list")
    assert refused(at, "CREATE EXTENSION hstore")
    sql(at, "CREATE EXTENSION citext")

    step("logical replication: its level takes a reboot")
    change("mine", "rds.logical_replication=1 later")
    eventually(20, lambda: status("tuned") == "pending-reboot", "pending-reboot")
    assert sql(at, "SHOW wal_level") == "replica"
    reboot("tuned")
    assert sql(at, "SHOW wal_level") == "logical"

    step("values that are reset are the defaults again")
    rds.reset_db_parameter_group(DBParameterGroupName="mine", Parameters=[{"ParameterName": "work_mem", "ApplyMethod": "immediate"}])
    shows(at, "work_mem", "4MB")

    step("a group in use cannot be deleted; another one takes a reboot")
    fails("InvalidDBParameterGroupState", rds.delete_db_parameter_group, DBParameterGroupName="mine")
    rds.modify_db_instance(DBInstanceIdentifier="tuned", DBParameterGroupName=f"default.postgres{MAJOR}", ApplyImmediately=True)
    assert status("tuned") == "pending-reboot"
    reboot("tuned")
    shows(at, "log_min_duration_statement", "-1")
    assert sql(at, "SHOW wal_level") == "replica"
    eventually(30, lambda: status("tuned") == "in-sync", "in sync")
    rds.delete_db_parameter_group(DBParameterGroupName="mine")
    fails("DBParameterGroupNotFound", rds.describe_db_parameters, DBParameterGroupName="mine")
    rds.delete_db_instance(DBInstanceIdentifier="tuned", SkipFinalSnapshot=True)
    wait("db_instance_deleted", DBInstanceIdentifier="tuned")


def refusal(setting):
    fails("InvalidParameterValue", rds.modify_db_parameter_group, DBParameterGroupName="mine", Parameters=values(setting))


def journey_cluster_parameter_groups():
    known()
    step("a cluster's group, and a group of one instance over it")
    rds.create_db_cluster_parameter_group(DBClusterParameterGroupName="ours", DBParameterGroupFamily=f"aurora-postgresql{MAJOR}", Description="a journey")
    rds.modify_db_cluster_parameter_group(DBClusterParameterGroupName="ours", Parameters=values("work_mem=8MB", "max_connections=120 later", "apg_ccm_enabled=1 later"))
    rds.create_db_parameter_group(DBParameterGroupName="own", DBParameterGroupFamily=f"aurora-postgresql{MAJOR}", Description="a journey")
    change("own", "work_mem=9MB")
    fails("InvalidParameterValue", rds.modify_db_parameter_group, DBParameterGroupName="own", Parameters=values("max_connections=10 later"))
    rds.create_db_cluster(DBClusterIdentifier="layers", Engine="aurora-postgresql", MasterUsername="boss", MasterUserPassword=PASSWORD, DBClusterParameterGroupName="ours")
    for name, more in (("layers-1", {}), ("layers-2", {"DBParameterGroupName": "own"})):
        rds.create_db_instance(DBInstanceIdentifier=name, DBInstanceClass="db.t3.micro", Engine="aurora-postgresql", DBClusterIdentifier="layers", **more)
    available("layers-1")
    available("layers-2")
    cluster_available("layers")
    assert writer("layers") == "layers-1", "made at once, the older one is the writer"
    for name in ("layers-1", "layers-2"):
        eventually(10, lambda: "Endpoint" in instance(name), f"the endpoint of {name}")
    assert sql(address("layers-1"), "SHOW work_mem") == "8MB"
    assert sql(address("layers-2"), "SHOW work_mem") == "9MB"
    assert sql(address("layers-2"), "SHOW max_connections") == "120"

    step("more connections: the reader that waits is restarted before the writer, and goes on to replay")
    rds.modify_db_cluster_parameter_group(DBClusterParameterGroupName="ours", Parameters=values("max_connections=140 later"))

    def applied(word):
        return all(m["DBClusterParameterGroupStatus"] == word for m in cluster("layers")["DBClusterMembers"])
    eventually(20, lambda: applied("pending-reboot"), "pending-reboot")
    lead, reader = sorted(("layers-1", "layers-2"), key=lambda name: name != writer("layers"))
    reboot(lead)
    assert writer("layers") == lead, f"{lead} was rebooted, and {writer('layers')} is the writer"
    assert sql(address(lead), "SHOW max_connections") == "140"
    sql(cluster("layers")["Endpoint"], "CREATE TABLE t (n int); INSERT INTO t VALUES (7)")
    eventually(15, lambda: sql(address(reader), "SELECT n FROM t") == "7", "the row on the reader")
    assert sql(address(reader), "SHOW max_connections") == "140"
    eventually(30, lambda: applied("in-sync"), "in sync")

    step("deleted with its instances, the cluster lets its groups go")
    fails("InvalidDBParameterGroupState", rds.delete_db_cluster_parameter_group, DBClusterParameterGroupName="ours")
    for name in ("layers-2", "layers-1"):
        rds.delete_db_instance(DBInstanceIdentifier=name, SkipFinalSnapshot=True)
        wait("db_instance_deleted", DBInstanceIdentifier=name)
    rds.delete_db_cluster(DBClusterIdentifier="layers", SkipFinalSnapshot=True)
    wait("db_cluster_deleted", DBClusterIdentifier="layers")
    rds.delete_db_cluster_parameter_group(DBClusterParameterGroupName="ours")
    rds.delete_db_parameter_group(DBParameterGroupName="own")
