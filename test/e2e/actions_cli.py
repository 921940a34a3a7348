"""Runs an AWS CLI, for tests that walk the script. Each input line has the arguments of a run, and each output line what it said, as JSON.

Each run is the program's own file in a process of its own. It is forked from this one, which has the program's modules
loaded: that takes most of the processor time of a run.

    PYTHON actions_cli.py PROGRAM
"""
import json
import os
import runpy
import sys
import tempfile

import awscli.clidriver

program = sys.argv[1]
awscli.clidriver.create_clidriver()


def run(arguments):
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            code = 255
            try:
                sys.argv = [program, *arguments]
                runpy.run_path(program, run_name="__main__")
            except SystemExit as e:
                code = e.code if isinstance(e.code, int) else int(e.code is not None)
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        _, status = os.waitpid(child, 0)
        out.seek(0)
        err.seek(0)
        return {"code": os.waitstatus_to_exitcode(status), "out": out.read().decode(), "err": err.read().decode()}


for line in sys.stdin:
    print(json.dumps(run(json.loads(line))), flush=True)
