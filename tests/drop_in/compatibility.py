#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/compatibility.md, made of the facts that stand at the cases. --table prints it with the
versions of the packages that are installed: compatibility.py --table >docs/compatibility.md
--check says where the committed one differs, versions apart."""
import argparse
import difflib
import functools
import os
import re
import subprocess
import sys

from facts import Fails, Works, facts
import drop_in_test  # noqa: F401: each has facts
import cm_test  # noqa: F401
import perftest_test  # noqa: F401
import frameworks_test  # noqa: F401
import mpi_test  # noqa: F401

DOCUMENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs",
                        "compatibility.md")
HEAD = """# Programs that were tried

Debian 12's unmodified packages over the drop-ins ([drop-in.md](drop-in.md)), both ends under
`diwarp-run` on one host. Each row is shown by cases of `tests/drop_in`, and
`tests/drop_in/compatibility.py --table` writes this document from them. Each program ends with
status 0 on both sides, except servers that run until they are stopped.
"""
FAILS = """
What does not work:

"""


@functools.lru_cache(None)
def version_of(package):
    done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True,
                          text=True)
    if done.returncode != 0 or not done.stdout:
        raise SystemExit(f"{package} is not installed (dev/packages.sh, purpose drop-in)")
    return done.stdout


def rows_of(kind, version):
    for fact in facts:
        if isinstance(fact, kind):
            yield (fact.program, f"{fact.package} {version(fact.package)}", *fact[2:])


def table(heads, rows):
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def document(version):
    return (HEAD + "\n" +
            table(["program", "package", "what works", "how it was run"], rows_of(Works, version)) +
            FAILS + table(["program", "package", "why"], rows_of(Fails, version)))


def without_versions(text):
    """Rows have the version after the package's name, in the second column."""
    return re.sub(r"^(\| [^|]* \| [a-z0-9.+-]+) [^|]* \|", r"\1 |", text, flags=re.MULTILINE)


def differences():
    """Between the committed document and what the cases say, versions apart."""
    with open(DOCUMENT) as file:
        committed = without_versions(file.read())
    said = without_versions(document(lambda package: "0"))
    return list(difflib.unified_diff(committed.splitlines(), said.splitlines(),
                                     "docs/compatibility.md", "what the cases say", lineterm=""))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    wanted = parser.add_mutually_exclusive_group(required=True)
    wanted.add_argument("--table", action="store_true")
    wanted.add_argument("--check", action="store_true")
    if parser.parse_args().table:
        print(document(version_of), end="")
        return 0
    found = differences()
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
