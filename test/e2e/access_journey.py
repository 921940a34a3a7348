#!/usr/bin/env python3
"""Journeys of those who run a Howdah for others: keys with limits, the audit log, groups, and what there is to choose from.

Run it against the environment that `howdah env` prints; HOWDAH_TEST_BINARY is the program.

    eval "$(bin/howdah env --home DIR)" && HOWDAH_TEST_BINARY=bin/howdah python3 test/e2e/access_journey.py
"""
import json
import os
import subprocess
import tempfile

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from api_steps import PASSWORD, PATIENCE, available, create, delete, fails, instance, rds, step, wait


def howdah(*words):
    """Runs a command of Howdah, and answers its JSON."""
    done = subprocess.run([os.environ["HOWDAH_TEST_BINARY"], *words, "-o", "json"], capture_output=True, text=True, timeout=60 * PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()] if words[0] == "audit" else json.loads(done.stdout)


def holder(key, service="rds"):
    return boto3.client(service, aws_access_key_id=key["access_key"], aws_secret_access_key=key["secret"],
                        config=Config(retries={"total_max_attempts": 1}))


def journey_catalogue():
    step("what is offered can be made: the default version, in a class and a storage that are orderable")
    offered = rds.describe_db_engine_versions(Engine="postgres", DefaultOnly=True)["DBEngineVersions"]
    assert len(offered) == 1 and offered[0]["DBParameterGroupFamily"].startswith("postgres"), offered
    version = offered[0]["EngineVersion"]
    pages = rds.get_paginator("describe_orderable_db_instance_options").paginate(Engine="postgres", EngineVersion=version, PaginationConfig={"PageSize": 100})
    options = [o for page in pages for o in page["OrderableDBInstanceOptions"]]
    assert any(o["DBInstanceClass"] == "db.t3.micro" and o["StorageType"] == "gp2" for o in options), options
    assert len({(o["DBInstanceClass"], o["StorageType"]) for o in options}) == len(options)
    major = rds.describe_db_major_engine_versions(Engine="postgres", MajorEngineVersion=version.split(".")[0])["DBMajorEngineVersions"]
    assert len(major) == 1, major

    step("the certificate is the one that clients verify with")
    shown = rds.describe_certificates()
    assert shown["DefaultCertificateForNewLaunches"] == shown["Certificates"][0]["CertificateIdentifier"] == "howdah-ca", shown
    fails("CertificateNotFound", rds.describe_certificates, CertificateIdentifier="rds-ca-2019")
    assert rds.describe_reserved_db_instances()["ReservedDBInstances"] == []
    fails("InvalidAction", rds.stop_activity_stream, ResourceArn="arn:aws:rds:x:1:cluster:x")
    assert all(r["Status"] == "available" for r in rds.describe_source_regions()["SourceRegions"])


def journey_groups_and_keys():
    step("a subnet group and an option group, as infrastructure code makes them")
    rds.create_db_subnet_group(DBSubnetGroupName="Nets", DBSubnetGroupDescription="text", SubnetIds=["subnet-0f3a", "subnet-0f3b"])
    major = rds.describe_db_engine_versions(Engine="postgres", DefaultOnly=True)["DBEngineVersions"][0]["MajorEngineVersion"]
    rds.create_option_group(OptionGroupName="opts", EngineName="postgres", MajorEngineVersion=major, OptionGroupDescription="text")

    step("an instance in them is available, and keeps them from being deleted")
    create("guarded", DBSubnetGroupName="nets", OptionGroupName="opts", Tags=[{"Key": "stage", "Value": "prod"}])
    made = available("guarded")
    assert made["DBSubnetGroup"]["DBSubnetGroupName"] == "nets" and made["OptionGroupMemberships"][0]["OptionGroupName"] == "opts", made
    fails("InvalidDBSubnetGroupStateFault", rds.delete_db_subnet_group, DBSubnetGroupName="nets")
    fails("InvalidOptionGroupStateFault", rds.delete_option_group, OptionGroupName="opts")
    quotas = {q["AccountQuotaName"]: q for q in rds.describe_account_attributes()["AccountQuotas"]}
    assert quotas["DBInstances"]["Used"] == 1 and quotas["DBInstances"]["Max"] > 1, quotas
    storage = rds.describe_valid_db_instance_modifications(DBInstanceIdentifier="guarded")["ValidDBInstanceModificationsMessage"]["Storage"]
    assert {s["StorageType"] for s in storage} >= {"gp2", "gp3", "io1"}, storage
    role = {"RoleArn": "arn:aws:iam::123456789012:role/loader", "FeatureName": "s3Import"}
    rds.add_role_to_db_instance(DBInstanceIdentifier="guarded", **role)
    assert instance("guarded")["AssociatedRoles"] == [{**role, "Status": "INVALID"}]
    rds.remove_role_from_db_instance(DBInstanceIdentifier="guarded", **role)

    step("a key that may only look looks, and no more")
    looker = howdah("key", "create", "--name", "looker", "--read-only")
    assert holder(looker, "sts").get_caller_identity()["Arn"].endswith(":user/looker")
    assert [i["DBInstanceIdentifier"] for i in holder(looker).describe_db_instances()["DBInstances"]] == ["guarded"]
    message = fails("AccessDenied", holder(looker).delete_db_instance, DBInstanceIdentifier="guarded", SkipFinalSnapshot=True)
    assert "user/looker is not authorized to perform: rds:DeleteDBInstance on resource: arn:aws:rds:" in message, message

    step("a policy lets a key stop and change what is not tagged prod, and create small ones with a prefix only")
    policy = {"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Action": ["rds:Describe*", "rds:ModifyDBInstance", "rds:DeleteDBInstance"], "Resource": "*"},
        {"Effect": "Allow", "Action": "rds:CreateDBInstance", "Resource": "arn:aws:rds:*:*:db:test-*", "Condition": {"StringLike": {"rds:DatabaseClass": "db.t3.*"}}},
        {"Effect": "Deny", "Action": ["rds:Delete*", "rds:Modify*"], "Resource": "*", "Condition": {"StringEquals": {"aws:ResourceTag/stage": "prod"}}}]}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(policy, file)
        file.flush()
        limited = howdah("key", "create", "--name", "ci", "--policy", file.name)
    ci = holder(limited)
    parameters = {"DBInstanceClass": "db.t3.micro", "Engine": "postgres", "AllocatedStorage": 20, "MasterUsername": "boss", "MasterUserPassword": PASSWORD,
                  "BackupRetentionPeriod": 0}
    fails("AccessDenied", ci.delete_db_instance, DBInstanceIdentifier="GUARDED", SkipFinalSnapshot=True)
    fails("AccessDenied", ci.modify_db_instance, DBInstanceIdentifier="guarded", MasterUserPassword=PASSWORD)
    fails("AccessDenied", ci.create_db_instance, DBInstanceIdentifier="other", **parameters)
    fails("AccessDenied", ci.create_db_instance, DBInstanceIdentifier="test-1", **{**parameters, "DBInstanceClass": "db.m5.large"})
    ci.create_db_instance(DBInstanceIdentifier="test-1", **parameters)
    ci.delete_db_instance(DBInstanceIdentifier="test-1", SkipFinalSnapshot=True)

    step("a deleted key opens nothing, and every key but its secret is listed")
    howdah("key", "delete", looker["access_key"])
    fails("InvalidClientTokenId", holder(looker).describe_db_instances)
    listed = howdah("key", "list")
    assert limited["access_key"] in [k["access_key"] for k in listed] and limited["secret"] not in json.dumps(listed), listed

    step("the audit log has every call, and no password")
    told = howdah("audit", "--key", limited["access_key"])
    assert [(r["action"], r.get("code", "")) for r in told] == [
        ("DeleteDBInstance", "AccessDenied"), ("ModifyDBInstance", "AccessDenied"), ("CreateDBInstance", "AccessDenied"), ("CreateDBInstance", "AccessDenied"),
        ("CreateDBInstance", ""), ("DeleteDBInstance", "")], told
    assert told[1]["parameters"]["MasterUserPassword"] == "****" and told[0]["user"].endswith(":user/ci"), told[:2]
    assert PASSWORD not in json.dumps(howdah("audit", "--since", "24h"))

    step("without the instance, the groups go")
    howdah("key", "delete", limited["access_key"])
    delete("guarded")
    wait("db_instance_deleted", DBInstanceIdentifier="guarded")
    rds.delete_db_subnet_group(DBSubnetGroupName="nets")
    rds.delete_option_group(OptionGroupName="opts")
    fails("DBSubnetGroupNotFoundFault", rds.describe_db_subnet_groups, DBSubnetGroupName="nets")
    wait("db_instance_deleted", DBInstanceIdentifier="test-1")


def clean():
    """Deletes what a journey that failed has left."""
    for i in rds.describe_db_instances()["DBInstances"]:
        try:
            rds.delete_db_instance(DBInstanceIdentifier=i["DBInstanceIdentifier"], SkipFinalSnapshot=True)
        except ClientError as e:
            print("         left behind:", e)


if __name__ == "__main__":
    try:
        journey_catalogue()
        journey_groups_and_keys()
    except BaseException:
        clean()
        raise
