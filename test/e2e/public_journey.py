#!/usr/bin/env python3
"""Public or not: PubliclyAccessible moves an endpoint from one pool of addresses to the other, with its clients, rules and replicas.

Run it against the environment that `howdah env` prints, of a home with a public pool; HOWDAH_TEST_HOME is the home's directory.

    bin/howdah up --home DIR --detach --public-pool 127.X.16.0/24     # in the home's own part of the loopback network
    eval "$(bin/howdah env --home DIR)" && HOWDAH_TEST_HOME=DIR python3 test/e2e/public_journey.py
"""
import ipaddress
import json
import os
import subprocess

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from api_steps import PASSWORD, PATIENCE, Refused, address, available, create, delete, eventually, fails, instance, rds, refused, sql, status_was, step, wait

ec2 = boto3.client("ec2", config=Config(retries={"total_max_attempts": 1}))
with open(os.path.join(os.environ["HOWDAH_TEST_HOME"], "howdah.json"), encoding="utf-8") as file:
    HOME = json.load(file)
PUBLIC = ipaddress.ip_network(HOME["public_pool"])
PRIVATE = ipaddress.ip_network(HOME["network"] + ".8.0/21")
# Every client of this machine comes from this address.
HERE = "127.0.0.1/32"
MOVED = 30


def permission(cidr):
    return [{"IpProtocol": "tcp", "FromPort": 5432, "ToPort": 5432, "IpRanges": [{"CidrIp": cidr}]}]


def is_in(pool, name):
    at = address(name)
    assert ipaddress.ip_address(at) in pool, f"{name} is at {at}, not in {pool}"
    assert sql(at, "SELECT 1") == "1"  # the certificate names that address
    return at


def started(at):
    return sql(at, "SELECT pg_postmaster_start_time()")


def session(at):
    """A client that stays."""
    environment = dict(os.environ, PGPASSWORD=PASSWORD, PGAPPNAME="stays")
    command = ["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", f"host={at} port=5432 user=boss dbname=postgres sslmode=verify-full"]
    client = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    client.stdin.write("SELECT 'here';\n")
    client.stdin.flush()
    assert client.stdout.readline().strip() == "here"
    return client


def cut(client):
    """The next thing that the client says must fail."""
    out, errors = client.communicate("SELECT 'still here';\n", timeout=10 * PATIENCE)
    assert "still here" not in out and client.returncode != 0, (out, errors)


def move(name, public):
    """Moves an endpoint under a client, and returns the new address."""
    before = address(name)
    client = session(before)
    try:
        answer = rds.modify_db_instance(DBInstanceIdentifier=name, PubliclyAccessible=public)["DBInstance"]
        assert answer["PubliclyAccessible"] == public and answer["DBInstanceStatus"] == "modifying", answer
        assert answer["Endpoint"]["Address"] == before, "the new address is shown before it is served"
        eventually(MOVED, lambda: instance(name)["DBInstanceStatus"] == "available", f"{name} has moved")
        after = is_in(PUBLIC if public else PRIVATE, name)
        assert after != before
        cut(client)
        assert refused(before), f"{before} is still served"
    finally:
        client.kill()
        client.wait()
    return after


def journey():
    step("a public instance in a group, and one that does not say: it is private")
    group = ec2.create_security_group(GroupName="public", Description="clients from here")["GroupId"]
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=permission(HERE))
    assert create("shop", PubliclyAccessible=True, VpcSecurityGroupIds=[group])["PubliclyAccessible"]
    assert not create("inner")["PubliclyAccessible"]
    available("shop")
    at = is_in(PUBLIC, "shop")
    since = started(at)
    sql(at, "CREATE TABLE orders (id int)")

    step("a replica of it is private")
    rds.create_db_instance_read_replica(DBInstanceIdentifier="copy", SourceDBInstanceIdentifier="shop")
    available("inner")
    is_in(PRIVATE, "inner")
    assert not available("copy")["PubliclyAccessible"]
    copy = is_in(PRIVATE, "copy")

    step("it becomes private: clients are cut, the old address refuses, PostgreSQL goes on")
    private = move("shop", False)
    assert started(private) == since, "the server was restarted"
    assert not instance("shop")["PubliclyAccessible"]

    step("the replica has followed")
    sql(private, "INSERT INTO orders VALUES (1)")
    eventually(MOVED, lambda: sql(copy, "SELECT count(*) FROM orders") == "1", "the replica has the row")
    status_was("available", "copy")

    step("the rules are those of the group, at the new address too")
    ec2.revoke_security_group_ingress(GroupId=group, IpPermissions=permission(HERE))
    # Without root, HAProxy leads, and lets the replica's host pass, which is here.
    if os.geteuid() == 0:
        eventually(2, lambda: refused(private), "we are kept out")
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=permission(HERE))
    eventually(2, lambda: not refused(private), "we are let in")

    step("and back; saying it again changes nothing")
    public = move("shop", True)
    assert started(public) == since, "the server was restarted"
    assert rds.modify_db_instance(DBInstanceIdentifier="shop", PubliclyAccessible=True)["DBInstance"]["DBInstanceStatus"] == "available"
    assert is_in(PUBLIC, "shop") == public
    fails("InvalidParameterCombination", rds.modify_db_instance, DBInstanceIdentifier="shop")

    step("all addresses are given back")
    for name in ("copy", "shop", "inner"):
        delete(name)
    for name in ("copy", "shop", "inner"):
        wait("db_instance_deleted", DBInstanceIdentifier=name)
    # Another database may be there by now. It has no such table.
    for old in (public, private, copy):
        assert refused(old, "SELECT id FROM orders")
    ec2.delete_security_group(GroupId=group)


def clean():
    """Deletes what a journey that failed has left."""
    for i in rds.describe_db_instances()["DBInstances"]:
        try:
            rds.delete_db_instance(DBInstanceIdentifier=i["DBInstanceIdentifier"], SkipFinalSnapshot=True)
        except (ClientError, Refused) as e:
            print("         left behind:", e)


if __name__ == "__main__":
    try:
        journey()
    except BaseException:
        clean()
        raise
