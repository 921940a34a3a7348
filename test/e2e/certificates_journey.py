#!/usr/bin/env python3
"""The journey of a server's certificate: chosen, shown, and rotated to a newer authority while clients connect all along.

    eval "$(bin/howdah env --home DIR)" && HOWDAH_TEST_BINARY=bin/howdah python3 test/e2e/certificates_journey.py
"""
import json
import os
import re
import ssl
import subprocess
import tempfile
import threading
import urllib.request

from botocore.exceptions import ClientError

from api_steps import PATIENCE, Refused, address, available, create, delete, eventually, fails, instance, rds, sql, step, told, wait

LINE = "rds-ca-rsa2048"
FIRST = LINE + "-g1"
NAME = "sealed"


def bundle():
    """The certificates that clients are to trust, as they download them."""
    trust = ssl.create_default_context(cafile=os.environ["AWS_CA_BUNDLE"])
    with urllib.request.urlopen(os.environ["AWS_ENDPOINT_URL"] + "/global/global-bundle.pem", context=trust, timeout=10 * PATIENCE) as answer:
        return re.findall("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n", answer.read().decode(), re.S)


def trusting(path, certificates):
    with open(path, "w", encoding="ascii") as f:
        f.write("".join(certificates))
    return path


def login(host, roots, statement="SELECT 1"):
    """Logs in with only these certificates trusted."""
    before = os.environ["PGSSLROOTCERT"]
    return sql(f"{host} sslrootcert={roots or before}", statement)


class Clients(threading.Thread):
    """Clients who connect again and again, each with a bundle of its own, until they are told to stop."""

    def __init__(self, host, bundles):
        super().__init__(daemon=True)
        self.host, self.bundles, self.count, self.failures, self.ended = host, bundles, 0, [], threading.Event()

    def run(self):
        while not self.ended.is_set():
            for path in self.bundles:
                try:
                    login(self.host, path)
                    self.count += 1
                except Refused as e:
                    self.failures.append(str(e))

    def more(self, logins):
        """Waits until so many have connected from now on."""
        enough = self.count + logins
        eventually(60, lambda: self.failures or self.count >= enough, f"{logins} logins")

    def stop(self):
        self.ended.set()
        self.join(60 * PATIENCE)
        assert not self.failures, self.failures


def shown():
    return instance(NAME)["CertificateDetails"]["CAIdentifier"]


def journey(folder):
    step("the authorities of RDS's names are there, and all are in the bundle")
    eventually(120, lambda: len(rds.describe_certificates()["Certificates"]) >= 4, "four authorities")
    offered = {c["CertificateIdentifier"]: c for c in rds.describe_certificates()["Certificates"]}
    assert {"howdah-ca", FIRST, "rds-ca-rsa4096-g1", "rds-ca-ecc384-g1"} <= set(offered), offered
    old = bundle()
    assert len(old) >= len(offered), len(old)

    step("an instance whose certificate is by one of them says so, and a client that trusts only that one connects")
    create(NAME, CACertificateIdentifier=FIRST)
    made = available(NAME)
    assert made["CACertificateIdentifier"] == made["CertificateDetails"]["CAIdentifier"] == FIRST, made["CertificateDetails"]
    host = address(NAME)
    began = sql(host, "SELECT pg_postmaster_start_time()")
    first = [c for c in old if trusted(host, trusting(f"{folder}/one.pem", [c]))]
    assert len(first) == 2, f"{len(first)} certificates lead to it: the home's and {FIRST}"

    step("a newer one is made: it is in the bundle, and the rotation is pending")
    made = subprocess.run([os.environ["HOWDAH_TEST_BINARY"], "ca", "create", "--line", LINE, "-o", "json"], capture_output=True, text=True, timeout=150 * PATIENCE, check=True)
    newer = json.loads(made.stdout)["name"]
    assert newer != FIRST and rds.describe_certificates(CertificateIdentifier=newer)["Certificates"]
    added = [c for c in bundle() if c not in old]
    assert len(added) >= 1
    arn = instance(NAME)["DBInstanceArn"]
    pending = rds.describe_pending_maintenance_actions(ResourceIdentifier=arn)["PendingMaintenanceActions"][0]["PendingMaintenanceActionDetails"]
    assert [a["Action"] for a in pending] == ["ca-certificate-rotation"], pending
    told("db-instance", NAME, "server certificate requires rotation through a pending maintenance action")
    assert shown() == FIRST

    step("it is rotated while clients with the older bundle, and with the newer one, connect all along")
    clients = Clients(host, [trusting(f"{folder}/old.pem", old), trusting(f"{folder}/new.pem", old + added), os.environ["PGSSLROOTCERT"]])
    clients.start()
    clients.more(6)
    rds.apply_pending_maintenance_action(ResourceIdentifier=arn, ApplyAction="ca-certificate-rotation", OptInType="immediate")
    eventually(60, lambda: shown() == newer, "the server shows the new certificate")
    available(NAME)
    clients.more(6)
    clients.stop()
    print(f"         {clients.count} logins, none failed")
    assert sql(host, "SELECT pg_postmaster_start_time()") == began, "PostgreSQL was restarted"
    assert any(trusted(host, trusting(f"{folder}/one.pem", [c])) for c in added), "it is not by the new one"
    assert sum(trusted(host, trusting(f"{folder}/one.pem", [c])) for c in first) == 1, "the home's is trusted, and the older one is not any more"
    eventually(20, lambda: not rds.describe_pending_maintenance_actions(ResourceIdentifier=arn)["PendingMaintenanceActions"], "nothing is pending")

    step("it waits for the window when nobody is in a hurry, and for nobody when it is taken back")
    rds.modify_db_instance(DBInstanceIdentifier=NAME, CACertificateIdentifier="rds-ca-ecc384-g1")
    assert instance(NAME)["PendingModifiedValues"] == {"CACertificateIdentifier": "rds-ca-ecc384-g1"}, instance(NAME)["PendingModifiedValues"]
    rds.modify_db_instance(DBInstanceIdentifier=NAME, CACertificateIdentifier=newer)
    assert instance(NAME)["PendingModifiedValues"] == {} and shown() == newer
    fails("CertificateNotFound", rds.modify_db_instance, DBInstanceIdentifier=NAME, CACertificateIdentifier="rds-ca-2019")
    delete(NAME)
    wait("db_instance_deleted", DBInstanceIdentifier=NAME)


def trusted(host, roots):
    try:
        return login(host, roots) == "1"
    except Refused as e:
        assert "certificate" in str(e), e
        return False


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        try:
            journey(scratch)
        except BaseException:
            try:
                delete(NAME)
            except ClientError as e:
                print("         left behind:", e)
            raise
