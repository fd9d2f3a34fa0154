#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the contract suite on a device, and compares the promises that it skips with a list.

Usage: promises.py run PROGRAM DEVICE LIST [--write] [--if-there]
       promises.py table FOLDER DOCUMENT [--write]

PROGRAM is test_contract, DEVICE the name that DIWARP_CONTRACT_DEVICE gets. LIST has a line for each
promise that the device does not keep, "capability: promise"; it cannot grow or shrink unseen. The
table of DOCUMENT, between two lines of comment, shows the lists of FOLDER side by side. `--write`
writes the list, or the table, anew. With `--if-there` a device that this host does not have, or that
has no address here, is no failure: the test is skipped. Exit status 0 if all cases passed and nothing
differs.
"""
import os
import re
import subprocess
import sys
from pathlib import Path

PREFIX = "SKIPPED: "
PATIENCE = 600  # seconds
# What the library says of hardware devices that are not there.
ABSENT = re.compile(r"There is no hardware device \S+|The device \S+ cannot be used: it has no IP address")
BEGIN, END = "<!-- promises: begin -->\n", "<!-- promises: end -->\n"


def skipped_in(output):
    """The promises that a run skipped, each once, sorted."""
    return sorted({line[len(PREFIX):] for line in output.splitlines() if line.startswith(PREFIX)})


def differences(expected, found):
    """Lines that say how the lists differ."""
    lines = [f"skipped, and not in the list: {promise}" for promise in found
             if promise not in expected]
    return lines + [f"in the list, and not skipped: {promise}" for promise in expected
                    if promise not in found]


def run(program, device):
    """Output and status of the whole suite."""
    done = subprocess.run([program], env={**os.environ, "DIWARP_CONTRACT_DEVICE": device},
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", timeout=PATIENCE,
                          check=False)
    return done.returncode, done.stdout


def failures(output):
    """What a run printed, without the promises that it skipped: the list tells those."""
    return "\n".join(line for line in output.splitlines() if not line.startswith(PREFIX))


def read_list(path):
    return Path(path).read_text(encoding="utf-8").splitlines()


def compare(output, path, write=False):
    """True if the list agrees with what a run of the suite skipped; `write` makes it so."""
    found = skipped_in(output)
    if write:
        Path(path).write_text("".join(f"{promise}\n" for promise in found), encoding="utf-8")
    wrong = differences(read_list(path), found)
    # Told in other words: this test is not skipped.
    print(f"{len(found)} promises are not kept:")
    print("\n".join(f"  {promise}" for promise in found))
    print("\n".join(wrong))
    return not wrong


def table(folder):
    """The lists of the folder as one table in Markdown."""
    lists = {path.stem: read_list(path) for path in sorted(Path(folder).glob("*.txt"))}
    lines = ["| lacks | promise | " + " | ".join(lists) + " |", "|---|---|" + "---|" * len(lists)]
    for line in sorted(set().union(*lists.values())):
        capability, promise = line.split(": ", 1)
        marks = ["no" if line in one else "yes" for one in lists.values()]
        lines.append(f"| {capability} | {promise} | " + " | ".join(marks) + " |")
    return "\n".join(lines) + "\n"


def check_table(folder, document, write):
    text = Path(document).read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    wanted = before + BEGIN + table(folder) + END + after
    if write:
        Path(document).write_text(wanted, encoding="utf-8")
    elif wanted != text:
        print(f"{document} has another table: promises.py table {folder} {document} --write")
        return 1
    return 0


def main(arguments):
    write, if_there = "--write" in arguments, "--if-there" in arguments
    command, *words = [word for word in arguments if not word.startswith("--")]
    if command == "table":
        return check_table(*words, write)
    program, device, path = words
    status, output = run(program, device)
    if status != 0 and if_there and (absent := ABSENT.search(output)):
        print(f"{PREFIX}{absent[0]}")
        return 0
    if status != 0:
        print(failures(output))
        return 1
    return 0 if compare(output, path, write) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
