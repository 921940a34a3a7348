#!/usr/bin/env python3
"""Journeys through the logs of a database: what PostgreSQL writes can be listed, read and followed, on whichever host it is.

Run it against the environment that `howdah env` prints; HOWDAH_TEST_BINARY is the program.

    eval "$(bin/howdah env --home DIR)" && HOWDAH_TEST_BINARY=bin/howdah python3 test/e2e/logs_journey.py
"""
import os
import re
import subprocess
import threading
import time

from api_steps import MAJOR, PATIENCE, address, available, create, delete, eventually, fails, instance, rds, sql, step

NAME = re.compile(r"error/postgresql\.log\.\d{4}-\d\d-\d\d-\d\d$")


def files(name, **more):
    pages = rds.get_paginator("describe_db_log_files").paginate(DBInstanceIdentifier=name, **more)
    return [f for page in pages for f in page["DescribeDBLogFiles"]]


def names(name, **more):
    """Without sizes and times: PostgreSQL may write at any moment."""
    return [f["LogFileName"] for f in files(name, **more)]


def newest(name):
    return names(name)[-1]


def whole(name, file):
    """As the AWS CLI does with --starting-token 0."""
    pages = rds.get_paginator("download_db_log_file_portion").paginate(
        DBInstanceIdentifier=name, LogFileName=file, PaginationConfig={"StartingToken": "0"})
    return "".join(page.get("LogFileData") or "" for page in pages)


def portion(name, file, **more):
    return rds.download_db_log_file_portion(DBInstanceIdentifier=name, LogFileName=file, **more)


def logged(name, text):
    """The file with the text. It is not the newest one if the hour has ended meanwhile."""
    return next((file for file in names(name)[-2:] if text in whole(name, file)), None)


def write(at, first, last):
    """Makes PostgreSQL write numbered lines, some of them with characters that XML has to escape."""
    sql(at, f"DO $$ BEGIN FOR i IN {first}..{last} LOOP RAISE LOG 'line <%> & é', i; END LOOP; END $$")


def numbers(text):
    return [int(n) for n in re.findall(r"line <(\d+)> & é", text)]


def journey_logs():
    step("an instance with a standby, whose group keeps logs for a day")
    eventually(60, lambda: rds.describe_db_parameters(DBParameterGroupName=f"default.postgres{MAJOR}")["Parameters"], "the parameters read")
    rds.create_db_parameter_group(DBParameterGroupName="talkative", DBParameterGroupFamily=f"postgres{MAJOR}", Description="a journey")
    day = {"ParameterName": "rds.log_retention_period", "ParameterValue": "1440", "ApplyMethod": "immediate"}
    rds.modify_db_parameter_group(DBParameterGroupName="talkative", Parameters=[day])
    for value in ("1439", "10081", "a day"):
        fails("InvalidParameterValue", rds.modify_db_parameter_group, DBParameterGroupName="talkative", Parameters=[day | {"ParameterValue": value}])
    create("logged", DBParameterGroupName="talkative", MultiAZ=True)
    available("logged")
    at = address("logged")
    assert sql(at, "SHOW rds.log_retention_period") == "1440"

    step("its files are an hour's each, and can be chosen by name, size and time")
    listed = files("logged")
    assert all(NAME.match(f["LogFileName"]) for f in listed) and listed[0]["Size"] > 0, listed
    assert all(abs(time.time() - f["LastWritten"] / 1000) < 600 for f in listed), listed
    # If the hour ends just now, there is one more file, and the newest one is empty.
    assert names("logged", FilenameContains="postgresql.log")[:len(listed)] == [f["LogFileName"] for f in listed]
    assert {f["LogFileName"] for f in listed if f["Size"] > 1} <= set(names("logged", FileSize=1)) <= set(names("logged"))
    assert not files("logged", FilenameContains="slowquery") and not files("logged", FileSize=1 << 40)
    assert not files("logged", FileLastWritten=int(time.time() + 3600) * 1000)

    step("what PostgreSQL logs is there, from the beginning and at the end")
    write(at, 1, 20)
    file = eventually(10, lambda: logged("logged", "line <20> & é"), "the line in the log")
    end = portion("logged", file, NumberOfLines=4)
    assert len(end["LogFileData"].splitlines()) == 4 and not end["AdditionalDataPending"], end

    step("who goes on with each marker reads every line once, while the log grows")
    marker = portion("logged", file, NumberOfLines=1)["Marker"]
    writer = threading.Thread(target=lambda: [write(at, 1000 * n, 1000 * n + 999) for n in range(1, 9)])
    writer.start()
    text, most = "", 0
    deadline = time.time() + 60 * PATIENCE
    while 8999 not in numbers(text[-4000:]) and time.time() < deadline:
        # This look comes first: a file that was not the newest one by then has all of its lines.
        later = newest("logged")
        p = portion("logged", file, Marker=marker, NumberOfLines=700)
        text, marker = text + (p.get("LogFileData") or ""), p["Marker"]
        most = max(most, len((p.get("LogFileData") or "").splitlines()))
        if not p["AdditionalDataPending"] and later != file:
            file, marker = later, "0"
    writer.join()
    assert numbers(text) == list(range(1000, 9000)), (len(numbers(text)), numbers(text)[:3])
    assert most == 700, most

    step("a paginator reads all of it, in portions")
    assert set(range(1000, 9000)) <= set(n for f in names("logged")[-2:] for n in numbers(whole("logged", f)))

    step("the command line shows the end, and follows")
    binary = os.environ["HOWDAH_TEST_BINARY"]
    # The environment says where the API is, as for any client. The home does not, because journeys have regions of their own.
    region = {name: value for name, value in os.environ.items() if name != "HOWDAH_HOME"}
    shown = subprocess.run([binary, "logs", "logged", "-n", "3"], env=region, capture_output=True, text=True, timeout=30 * PATIENCE, check=True).stdout
    assert len(shown.splitlines()) == 3, shown
    follower = subprocess.Popen([binary, "logs", "logged", "-f", "-n", "1"], env=region, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        stop = threading.Timer(30 * PATIENCE, follower.kill)
        stop.start()
        follower.stdout.readline()
        write(at, 9000, 9000)
        assert any("line <9000>" in line for line in follower.stdout), "it ended"
        stop.cancel()
    finally:
        follower.kill()
        follower.wait()

    step("names and markers that are wrong")
    for wrong in ("error/../postgresql.log.2026-11-22-01", "error/postgresql.log.1999-01-01-00", "/etc/passwd", "error/patroni.log"):
        fails("DBLogFileNotFoundFault", rds.download_db_log_file_portion, DBInstanceIdentifier="logged", LogFileName=wrong)
    fails("InvalidParameterValue", rds.download_db_log_file_portion, DBInstanceIdentifier="logged", LogFileName=file, Marker="17")
    fails("DBInstanceNotFound", rds.describe_db_log_files, DBInstanceIdentifier="nobody")

    step("after a failover the log is that of the new primary, and a marker of the old one is told to be")
    before = instance("logged")["AvailabilityZone"]
    eventually(30, lambda: rds.reboot_db_instance(DBInstanceIdentifier="logged", ForceFailover=True), "a standby in sync")
    available("logged")
    eventually(30, lambda: instance("logged")["AvailabilityZone"] != before, "the other zone")
    write(at, 9500, 9500)
    eventually(20, lambda: logged("logged", "line <9500>"), "the line in the other log")
    fails("InvalidParameterValue", rds.download_db_log_file_portion, DBInstanceIdentifier="logged", LogFileName=newest("logged"), Marker=marker)
    delete("logged")


if __name__ == "__main__":
    journey_logs()
