#!/usr/bin/env python3
"""Who may connect: the life of security groups, with psql as the clients inside and outside.

Run it against the environment that `howdah env` prints; HOWDAH_TEST_HOME is the home's directory.

    eval "$(bin/howdah env --home DIR)" && HOWDAH_TEST_HOME=DIR python3 test/e2e/network_journey.py
"""
import glob
import json
import os
import time

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from api_steps import PASSWORD, Refused, available, create, delete, eventually, fails, instance, rds, sql, step, wait

ec2 = boto3.client("ec2", config=Config(retries={"total_max_attempts": 1}))
# Every client of this machine comes from this address.
HERE = "127.0.0.1/32"
ELSEWHERE = "10.0.0.0/8"
# A change of rules acts within this time.
SOON = 2


def permission(cidr, first=5432, last=5432):
    return {"IpProtocol": "tcp", "FromPort": first, "ToPort": last, "IpRanges": [{"CidrIp": cidr}]}


def allow(group, *permissions):
    return ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=list(permissions))["SecurityGroupRules"]


def revoke(group, *permissions):
    assert ec2.revoke_security_group_ingress(GroupId=group, IpPermissions=list(permissions))["Return"]


def members(resource_id):
    """Where the members of a database listen themselves."""
    found = []
    for path in glob.glob(os.path.join(os.environ["HOWDAH_TEST_HOME"], "hosts", "*", "members", resource_id + ".*", "patroni.json")):
        with open(path, encoding="utf-8") as file:
            found.append(json.load(file)["postgresql"]["connect_address"].split(":"))
    assert found, f"no member of {resource_id} in {os.environ['HOWDAH_TEST_HOME']}"
    return found


def ways(name):
    """All ways in: the endpoint, and each member around it."""
    shown = instance(name)
    endpoint = (shown["Endpoint"]["Address"], shown["Endpoint"]["Port"])
    return [endpoint] + [(host, int(port)) for host, port in members(shown["DbiResourceId"])]


def enters(way):
    try:
        return sql(way[0], "SELECT 1", port=way[1]) == "1"
    except Refused:
        return False


def let_in(name):
    took = soon(lambda: all(enters(w) for w in ways(name)), "everyone is let in on all ways")
    print(f"         let in after {took:.2f} s")


def kept_out(name):
    took = soon(lambda: not any(enters(w) for w in ways(name)), "nobody is let in on any way")
    print(f"         kept out after {took:.2f} s")


def soon(check, what):
    began = time.time()
    eventually(SOON, check, what)
    return time.time() - began


def started(name):
    return sql(instance(name)["Endpoint"]["Address"], "SELECT pg_postmaster_start_time()")


def journey():
    step("a network, its subnets, and a default group that lets everyone in")
    vpc = ec2.describe_vpcs(Filters=[{"Name": "is-default", "Values": ["true"]}])["Vpcs"][0]["VpcId"]
    assert ec2.describe_subnets(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["Subnets"]
    default = ec2.describe_security_groups(Filters=[{"Name": "group-name", "Values": ["default"]}])["SecurityGroups"]
    assert len(default) == 1 and default[0]["IpPermissions"][0]["IpRanges"][0]["CidrIp"] == "0.0.0.0/0", default

    step("a group, as infrastructure code makes it")
    group = ec2.create_security_group(GroupName="shop", Description="clients of the shop", VpcId=vpc, TagSpecifications=[
        {"ResourceType": "security-group", "Tags": [{"Key": "team", "Value": "blue"}]}])["GroupId"]
    rule = allow(group, permission(ELSEWHERE))
    assert rule[0]["CidrIpv4"] == ELSEWHERE and rule[0]["GroupId"] == group, rule
    fails("InvalidPermission.Duplicate", ec2.authorize_security_group_ingress, GroupId=group, IpPermissions=[permission(ELSEWHERE)])
    fails("UnsupportedOperation", ec2.authorize_security_group_ingress, GroupId=group,
          IpPermissions=[{"IpProtocol": "tcp", "FromPort": 5432, "ToPort": 5432, "Ipv6Ranges": [{"CidrIpv6": "::/0"}]}])
    fails("InvalidParameterValue", rds.create_db_instance, DBInstanceIdentifier="x", DBInstanceClass="db.t3.micro", Engine="postgres", AllocatedStorage=20,
          MasterUsername="boss", MasterUserPassword=PASSWORD, VpcSecurityGroupIds=["sg-0123"])
    shown = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"][0]
    assert shown["Tags"] == [{"Key": "team", "Value": "blue"}] and shown["IpPermissions"][0]["IpRanges"] == [{"CidrIp": ELSEWHERE}], shown

    step("a database in no group is open, and one in the group is available and shut for us")
    create("open")
    create("shop", VpcSecurityGroupIds=[group])
    made = available("shop")
    assert made["VpcSecurityGroups"] == [{"VpcSecurityGroupId": group, "Status": "active"}], made["VpcSecurityGroups"]
    kept_out("shop")
    assert available("open")["VpcSecurityGroups"][0]["VpcSecurityGroupId"] == default[0]["GroupId"]
    let_in("open")

    step("a rule for another port does not let in; one for the database's does, at once")
    allow(group, permission(HERE, 5433, 6000))
    kept_out("shop")
    allow(group, permission(HERE, 5000, 5432))
    let_in("shop")
    since = started("shop")

    step("a rule that is taken away keeps out, at once")
    revoke(group, permission(HERE, 5000, 5432))
    kept_out("shop")

    step("the whole world")
    ec2.authorize_security_group_ingress(GroupId=group, IpProtocol="tcp", FromPort=5432, ToPort=5432, CidrIp="0.0.0.0/0")
    let_in("shop")
    assert started("shop") == since, "the server was restarted"

    step("another group in its place; the one that is in use stays")
    second = ec2.create_security_group(GroupName="other", Description="others")["GroupId"]
    fails("DependencyViolation", ec2.delete_security_group, GroupId=group)
    rds.modify_db_instance(DBInstanceIdentifier="shop", VpcSecurityGroupIds=[second], ApplyImmediately=True)
    kept_out("shop")
    ec2.delete_security_group(GroupId=group)
    fails("InvalidGroup.NotFound", ec2.describe_security_groups, GroupIds=[group])
    allow(second, permission(HERE))
    let_in("shop")

    step("a replica follows a database that lets nobody in, which still lets nobody in")
    revoke(second, permission(HERE))
    kept_out("shop")
    rds.create_db_instance_read_replica(DBInstanceIdentifier="copy", SourceDBInstanceIdentifier="shop", VpcSecurityGroupIds=[default[0]["GroupId"]])
    available("copy")
    let_in("copy")
    assert sql(instance("copy")["Endpoint"]["Address"], "SELECT count(*) FROM pg_stat_wal_receiver WHERE status = 'streaming'") == "1"
    # Without root, HAProxy leads: on loopback it cannot tell us from the replica's host, and its address is all that the members see.
    assert not any(enters(w) for w in ways("shop")[0 if os.geteuid() == 0 else 1:])

    step("without the databases, the group goes")
    for name in ("copy", "shop", "open"):
        delete(name)
    for name in ("copy", "shop", "open"):
        wait("db_instance_deleted", DBInstanceIdentifier=name)
    ec2.delete_security_group(GroupId=second)
    fails("CannotDelete", ec2.delete_security_group, GroupName="default")


def clean():
    """Deletes what a journey that failed has left."""
    for i in rds.describe_db_instances()["DBInstances"]:
        try:
            rds.delete_db_instance(DBInstanceIdentifier=i["DBInstanceIdentifier"], SkipFinalSnapshot=True)
        except ClientError as e:
            print("         left behind:", e)


if __name__ == "__main__":
    try:
        journey()
    except BaseException:
        clean()
        raise
