#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A soak finds faults that are planted in its processes, and names them; and it ends well where
there are none. Called with the name of one case; --list names all."""
import argparse
import re
import subprocess
import sys
import tempfile
import os

PATIENCE = 300  # seconds for one run
# The planted faults, and the message that tells of each.
FAULTS = {
    "wrong-byte": r"wrong-byte: byte 99 of \d+ is wrong: a message over",
    "shared-lost": r"order: RC: message \d+ came after \d+",
    "window": r"wrong-byte: byte \d+ of \d+ is wrong: (memory that a peer|a Read over rc)",
    "lost": r"lost: RD: [Ss]end \d+ (to process \d )?was reported as delivered, and was not",
    "stuck": r"stuck: (rc|ud|rd): .* is not done after",
    "leak": r"growth: \d+ bytes of memory",
    "descriptor-leak": r"growth: \d+ descriptors",
    "crash": r"was ended by signal 6 .*crash",
    "end": r"ended with status 0 .*crash",
}
# Growth is looked for at the end of the run; the first of all else ends it.
MINUTES = {"leak": "0.4", "descriptor-leak": "0.2"}
OPERATIONS = ("rc.write", "rc.read", "rc.fetch-add", "ud.write-record", "rd.send")


def run(arguments, folder, *options):
    soak = os.path.join(os.path.dirname(os.path.abspath(__file__)), "soak.py")
    done = subprocess.run([sys.executable, "-B", soak, "--programs", arguments.programs,
                           "--processes", "2", "--logs", folder, *options],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=PATIENCE)
    print(done.stdout, done.stderr)
    return done


def check_planted(arguments, folder):
    # On a loaded machine seconds pass without anything stuck, and that would be found first.
    stuck = "3" if arguments.case == "stuck" else "60"
    done = run(arguments, folder, "--calm", "--minutes", MINUTES.get(arguments.case, "2"), "--round",
               "0.2", "--stuck", stuck, "--plant", arguments.case)
    assert done.returncode == 1, done.returncode
    assert re.search(r"FOUND after .*" + FAULTS[arguments.case], done.stdout), arguments.case
    assert re.search(r"--seed \d+; logs in ", done.stdout), "no seed"


def check_clean(arguments, folder):
    """Kills and stops included; and all types of queue pairs did something."""
    awaited = [*(f"done.{operation}" for operation in OPERATIONS), "shared", "windows", "kills",
               "stops"]
    done = run(arguments, folder, "--minutes", "0.1", "--no-limits", "--until", ",".join(awaited))
    assert done.returncode == 0, done.returncode
    for operation in OPERATIONS:
        assert re.search(rf" {re.escape(operation)} +[1-9]", done.stdout), operation
    for what in ("receives that were shared", "windows", "kills", "stops"):
        assert re.search(rf"{what}: [1-9]", done.stdout), what
    assert "nothing found" in done.stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--programs")
    parser.add_argument("case", nargs="?")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join([*FAULTS, "clean"]))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        (check_clean if arguments.case == "clean" else check_planted)(arguments, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
