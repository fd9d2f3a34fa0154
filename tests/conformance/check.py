#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks docs/conformance.md and the threats in docs/security.md.

Each row is well-formed, each test named there exists, and each row about an RFC names a guard, marked
in the sources as dev/mutation/guards.py tells, or says why it has none.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "dev" / "mutation"))
from guards import labels_of, read_tree  # noqa: E402

RECORD = ROOT / "docs" / "conformance.md"
THREATS = ROOT / "docs" / "security.md"
RFCS = ("5040", "5041", "5044", "6581", "7306")
THREAT_RFCS = ("5042",)
CLAUSE = re.compile(r"\d+(\.\d+)*(, \d+(\.\d+)*)*")
TESTS = re.compile(r"`[^`]+`(, `[^`]+`)*")
REASON = re.compile(r"n/a: \S.{9,}")
LABELS = re.compile(r"`[a-z0-9-]+`(, `[a-z0-9-]+`)*")
NO_GUARD = re.compile(r"none: \S.{9,}")


def sections(text):
    """{RFC: rows} of the record's sections about RFCs; each row is (line number, cells)."""
    found, current = {}, None
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("## "):
            heading = re.match(r"## RFC (\d+):", line)
            current = found.setdefault(heading[1], []) if heading else None
        elif current is not None and line.startswith("|"):
            current.append((number, [cell.strip() for cell in line.strip().strip("|").split("|")]))
    return found


@dataclass(frozen=True)
class Row:
    line: int
    tests: tuple = ()
    labels: tuple = ()  # of the guards that its tests have to notice


def read_row(number, cells):
    """(what is wrong with the row's form, the row)"""
    if len(cells) != 4:
        return [f"line {number}: not four cells"], Row(number)
    clause, demand, shown, guarded = cells
    faults = []
    if not CLAUSE.fullmatch(clause):
        faults.append(f"line {number}: {clause!r} is no clause")
    if len(demand) < 15:
        faults.append(f"line {number}: the demand is not told")
    if REASON.fullmatch(shown):
        if guarded:
            faults.append(f"line {number}: a demand that does not apply has no guard")
        return faults, Row(number)
    if not TESTS.fullmatch(shown):
        faults.append(f"line {number}: neither `tests` nor n/a: with a reason")
    if LABELS.fullmatch(guarded):
        return faults, Row(number, names(shown), names(guarded))
    if not NO_GUARD.fullmatch(guarded):
        faults.append(f"line {number}: neither `guards` nor none: with a reason")
    return faults, Row(number, names(shown))


def names(cell):
    return tuple(re.findall(r"`([^`]+)`", cell))


def read_rows(text, rfcs, least=10):
    """(what is wrong with the form of the rows about these RFCs, the rows)"""
    faults, rows, found = [], [], sections(text)
    for rfc in rfcs:
        lines = found.get(rfc, [])[2:]  # behind the heading and its rule
        if len(lines) < least:
            faults.append(f"RFC {rfc}: only {len(lines)} rows")
        for number, cells in lines:
            wrong, row = read_row(number, cells)
            faults += wrong
            rows.append(row)
    return faults, rows


def check(text, known, labels, rfcs=RFCS):
    """What is wrong with a record, given the names of the tests and of the guards there are."""
    faults, rows = read_rows(text, rfcs)
    for row in rows:
        faults += [f"line {row.line}: no test is named {test!r}"
                   for test in row.tests if test not in known]
        faults += [f"line {row.line}: no guard is labelled {label!r}"
                   for label in row.labels if label not in labels]
    return faults


def check_shown(text, known):
    """What is wrong with the tables whose last column is `shown by`, which are about no RFC."""
    faults, shown = [], False
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("|"):
            shown = False
            continue
        last = line.strip().strip("|").split("|")[-1].strip()
        if last == "shown by":
            shown = True
        elif shown and not re.fullmatch(r"-+", last):
            faults += [f"line {number}: no test is named {test!r}"
                       for test in names(last) or ("",) if test not in known]
    return faults


def unnamed(rows, labels):
    """Labels of guards that no row names."""
    return [f"no row names the guard {label!r}"
            for label in sorted(labels - {label for row in rows for label in row.labels})]


def all_rows():
    """The rows of both documents."""
    return (read_rows(RECORD.read_text(), RFCS)[1] +
            read_rows(THREATS.read_text(), THREAT_RFCS)[1])


def known_tests(build):
    listing = subprocess.run(["ctest", "--test-dir", str(build), "--show-only=json-v1"],
                             capture_output=True, text=True, check=True).stdout
    return {test["name"] for test in json.loads(listing)["tests"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path, help="the folder of a complete build")
    known = known_tests(parser.parse_args().build)
    if missing := sorted(name for name in known if "_NOT_BUILT" in name):
        print(f"the build is not complete: {', '.join(missing)}")
        return 1
    labels = labels_of(read_tree(ROOT)[0])
    faults = check(RECORD.read_text(), known, labels)
    faults += [f"{THREATS.name}: {fault}"
               for fault in check(THREATS.read_text(), known, labels, THREAT_RFCS)]
    faults += [f"{THREATS.name}: {fault}" for fault in check_shown(THREATS.read_text(), known)]
    faults += unnamed(all_rows(), labels)
    print("\n".join(faults) if faults else
          "every row is well-formed, every test and every guard exists")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
