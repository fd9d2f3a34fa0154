#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares docs/troubleshooting.md and docs/tuning.md with the table of counters,
base/include/base/counters.h, and with the public headers.

Each word in backquotes that has the form of a counter's name (`like_this`) is one: of a counter, or else
of a value of `diwarp-stat`, an option, a status, an error, an event or a row of the tools. In the
columns titled "counter" it is a counter. Each `Type::member` is one of a public header. Each counter that
tells of a drop stands in troubleshooting.md.
"""
import json
import pathlib
import re
import sys

import limits

ROOT = limits.ROOT
DOCUMENT = "docs/troubleshooting.md"
DOCUMENTS = (DOCUMENT, "docs/tuning.md")
SCHEMA = "tools/schema.json"
NAME = re.compile(r"`([a-z][a-z0-9]*(?:_[a-z0-9]+)+)`")
MEMBER = re.compile(r"`(\w+)::(\w+)")
OTHERS = {"ib_uverbs"}  # neither counter nor diwarp's
EVENTS = {"cq_overflow"}  # in a column of counters, where an event tells instead


def names(root, macro):
    text = (root / limits.COUNTERS).read_text()
    table = text.split(f"#define {macro}(X)")[1].split("// clang-format on")[0]
    return set(re.findall(r"X\((\w+),", table))


def keys(schema):
    """All names of properties in a schema."""
    if isinstance(schema, dict):
        return {*schema.get("properties", {}), *(key for one in schema.values() for key in keys(one))}
    if isinstance(schema, list):
        return {key for one in schema for key in keys(one)}
    return set()


def headers(root):
    return [path.read_text() for path in sorted((root / limits.PUBLIC).glob("*.h"))]


def members(root):
    """Of structures and classes: WorkCompletion::vendor_error, QueuePair::post_send."""
    return {name for text in headers(root)
            for name in re.findall(r"\b([a-z]\w*)(?:\(| = [^;]*;|\{[^;]*;|;)", text)}


def has_member(root, scope, name):
    return any(re.search(rf"\b(?:struct|class)(?: DIWARP_EXPORT)? {scope}\b", text)
               and re.search(rf"\b{name}\b", text) for text in headers(root))


def rows(text):
    """(line, title of the column, cell) of all tables."""
    titles = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("|"):
            titles = []
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not titles:
            titles = cells
        elif not set(line) <= set("|-"):
            yield from ((number, title, cell) for title, cell in zip(titles, cells))


def faults_of(root, document, counters, others):
    text = (root / document).read_text()
    faults = [f"line {line}: {name} is no counter" for line, title, cell in rows(text)
              if title == "counter" for name in NAME.findall(cell)
              if name not in counters | EVENTS]
    for number, line in enumerate(text.splitlines(), 1):
        faults += [f"line {number}: there is no {name}" for name in NAME.findall(line)
                   if name not in counters | others]
        faults += [f"line {number}: there is no {scope}::{name}"
                   for scope, name in MEMBER.findall(line) if not has_member(root, scope, name)]
    return [f"{document}: {fault}" for fault in dict.fromkeys(faults)]


def check(root):
    counters = names(root, "DIWARP_COUNTERS")
    others = {*names(root, "DIWARP_METERS"), *limits.Code(root).words(), *members(root),
              *keys(json.loads((root / SCHEMA).read_text())), *OTHERS}
    told = set(NAME.findall((root / DOCUMENT).read_text()))
    return [fault for document in DOCUMENTS for fault in faults_of(root, document, counters, others)] + \
        [f"{DOCUMENT}: {name} does not stand there" for name in sorted(counters)
         if name.startswith("drop_") and name not in told]


def main():
    faults = check(ROOT)
    print("\n".join(faults) or "each counter and option is one that there is, and each drop is told")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
