#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks docs/conformance.md: each clause row is well-formed, each test named there exists."""
import argparse
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECORD = ROOT / "docs" / "conformance.md"
RFCS = ("5040", "5041", "5044", "6581", "7306")
CLAUSE = re.compile(r"\d+(\.\d+)*(, \d+(\.\d+)*)*")
TESTS = re.compile(r"`[^`]+`(, `[^`]+`)*")
REASON = re.compile(r"n/a: \S.{9,}")


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


def faults_of_row(number, cells):
    """(what is wrong with the row's form, the tests that it names)"""
    if len(cells) != 3:
        return [f"line {number}: not three cells"], []
    clause, demand, shown = cells
    faults = []
    if not CLAUSE.fullmatch(clause):
        faults.append(f"line {number}: {clause!r} is no clause")
    if len(demand) < 15:
        faults.append(f"line {number}: the demand is not told")
    if TESTS.fullmatch(shown):
        return faults, re.findall(r"`([^`]+)`", shown)
    if not REASON.fullmatch(shown):
        faults.append(f"line {number}: neither `tests` nor n/a: with a reason")
    return faults, []


def check(text, known):
    """What is wrong with the record, given the names of the tests there are."""
    faults, found = [], sections(text)
    for rfc in RFCS:
        rows = found.get(rfc, [])[2:]  # behind the heading and its rule
        if len(rows) < 10:
            faults.append(f"RFC {rfc}: only {len(rows)} rows")
        for number, cells in rows:
            wrong, tests = faults_of_row(number, cells)
            faults += wrong
            faults += [f"line {number}: no test is named {test!r}"
                       for test in tests if test not in known]
    return faults


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
    faults = check(RECORD.read_text(), known)
    print("\n".join(faults) if faults else "every row is well-formed and every test exists")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
