#!/usr/bin/env python3
"""A journey with IAM database authentication: tokens that boto3 makes let users of rds_iam in, and nothing else does.

Run it against the environment that `howdah env` prints; HOWDAH_TEST_BINARY is the program.

    eval "$(bin/howdah env --home DIR)" && HOWDAH_TEST_BINARY=bin/howdah python3 test/e2e/tokens_journey.py
"""
import json
import os
import subprocess
import tempfile

import boto3

from api_steps import PATIENCE, address, available, create, delete, eventually, instance, rds, refused, sql, step


def token(at, user, port=5432, by=rds):
    return by.generate_db_auth_token(at, port, user)


def enters(at, user, by=rds, **options):
    return sql(at, "SELECT current_user", user=user, password=token(at, user, by=by), **options) == user


def limited(resource):
    """A client with a key that may only log in, as some users."""
    policy = {"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "rds-db:connect", "Resource": resource}}
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(policy, file)
        file.flush()
        made = subprocess.run([os.environ["HOWDAH_TEST_BINARY"], "key", "create", "--name", "app", "--policy", file.name, "-o", "json"],
                              capture_output=True, text=True, timeout=60 * PATIENCE, check=True).stdout
    key = json.loads(made)
    return boto3.client("rds", aws_access_key_id=key["access_key"], aws_secret_access_key=key["secret"])


def journey_tokens():
    step("an instance with a standby, and with IAM database authentication")
    create("tokened", EnableIAMDatabaseAuthentication=True, MultiAZ=True)
    shown = available("tokened")
    assert shown["IAMDatabaseAuthenticationEnabled"], shown
    at = address("tokened")
    sql(at, "CREATE ROLE jane LOGIN PASSWORD 'janes-Secret'; GRANT rds_iam TO jane; CREATE ROLE joe LOGIN PASSWORD 'joes-Secret'")
    long = "j" * 60
    sql(at, f'CREATE ROLE {long} LOGIN; GRANT rds_iam TO {long}; CREATE ROLE "O\'Brien, é" LOGIN; GRANT rds_iam TO "O\'Brien, é"')

    step("a token lets a user of rds_iam in, and a password does not")
    print(f"         a token has {len(token(at, 'jane'))} characters, one for a long name {len(token(at, long))}")
    assert enters(at, "jane") and enters(at, long)
    made = token(at, "O'Brien, é")
    os.environ["PGUSER"] = "O'Brien, é"
    try:
        assert subprocess.run(["psql", "-XAtqc", "SELECT current_user", "-h", at, "-d", "postgres"], capture_output=True, text=True, timeout=30 * PATIENCE,
                              env=dict(os.environ, PGPASSWORD=made, PGSSLMODE="verify-full"), check=True).stdout.strip() == "O'Brien, é"
    finally:
        del os.environ["PGUSER"]
    assert refused(at, user="jane", password="janes-Secret")

    step("others log in as before, and cannot use tokens")
    assert sql(at, "SELECT current_user", user="joe", password="joes-Secret") == "joe"
    assert refused(at, user="joe", password=token(at, "joe"))
    # The user who made users of rds_iam administers them, and is no such user.
    assert sql(at, "SELECT current_user") == "boss"
    assert refused(at, user="boss", password="wrong") and refused(at, user="boss", password=token(at, "boss"))

    step("a token is for one user, one endpoint and one region, and travels over TLS only")
    assert refused(at, user=long, password=token(at, "jane"))
    assert refused(at, user="jane", password=token(at, "jane", port=5433))
    assert refused(at, user="jane", password=token("127.0.0.1", "jane"))
    elsewhere = boto3.client("rds", region_name="nowhere-1")
    assert refused(at, user="jane", password=token(at, "jane", by=elsewhere))
    good = token(at, "jane")
    assert refused(at, user="jane", password=good[:-1] + ("0" if good[-1] != "0" else "1"))
    assert refused(at, user="jane", password=good, sslmode="disable")
    assert sql(at, "SELECT 1", user="jane", password=good) == "1"

    step("a key's policy says which users it may be")
    arn = f"arn:aws:rds-db:*:*:dbuser:{shown['DbiResourceId']}/jane"
    app = limited(arn)
    assert enters(at, "jane", by=app)
    assert refused(at, user=long, password=token(at, long, by=app))

    step("after a failover tokens are good as before")
    before = instance("tokened")["AvailabilityZone"]
    eventually(30, lambda: rds.reboot_db_instance(DBInstanceIdentifier="tokened", ForceFailover=True), "a standby in sync")
    available("tokened")
    eventually(30, lambda: instance("tokened")["AvailabilityZone"] != before, "the other zone")
    eventually(15, lambda: enters(at, "jane"), "jane logged in")

    step("without IAM database authentication passwords count again, and back")
    rds.modify_db_instance(DBInstanceIdentifier="tokened", EnableIAMDatabaseAuthentication=False, ApplyImmediately=True)
    eventually(20, lambda: sql(at, "SELECT 1", user="jane", password="janes-Secret") == "1", "the password taken")
    assert refused(at, user="jane", password=token(at, "jane"))
    rds.modify_db_instance(DBInstanceIdentifier="tokened", EnableIAMDatabaseAuthentication=True, ApplyImmediately=True)
    eventually(20, lambda: enters(at, "jane"), "the token taken")
    delete("tokened")


if __name__ == "__main__":
    journey_tokens()
