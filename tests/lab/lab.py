# SPDX-License-Identifier: Apache-2.0
"""What the cases of the lab are made with: the harness of tests/system, experiments' files, and
programs that stand in for diwarp's."""
import os
import stat
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
LAB = os.path.join(HERE, "..", "..", "tools", "lab")
sys.path[:0] = [os.path.join(HERE, "..", "system"), LAB]
from harness import Skipped, case, check, main, path, wait_until, where  # noqa: E402, F401


def write(name, text, executable=False):
    """A file in the folder of the case; its path."""
    with open(path(name), "w") as file:
        file.write(text)
    if executable:
        os.chmod(path(name), stat.S_IRWXU)
    return path(name)


SERVE = """
if "--help" in sys.argv:
    print("--server --connect --json --size --transport --op --iterations --warmup --max-loss")
    sys.exit(0)
if "--server" in sys.argv:
    print("listening at 127.0.0.1:1", flush=True)
    sys.exit(0)
"""


def fake(name, client, server=SERVE):
    """A program in the folder of the case that stands in for diwarp-NAME."""
    return write(f"diwarp-{name}",
                 f"#!/usr/bin/python3 -B\nimport json, os, sys, time\n{server}\n{client}\n", True)


def refused(error, call, *parts):
    """The exception's sentence, which has all these parts."""
    try:
        call()
    except error as reason:
        for part in parts:
            check(part in str(reason), f"{part!r} is not in {str(reason)!r}")
        return str(reason)
    raise AssertionError(f"not refused: {call}")
