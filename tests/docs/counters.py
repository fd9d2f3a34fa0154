#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares docs/troubleshooting.md with the table of counters, base/include/base/counters.h.

Each word in backquotes that has the form of a counter's name (`like_this`) is one: of a counter, or else
of a value of `diwarp-stat`, an option, a status, an error, an event or a row of the tools. In the
columns titled "counter" it is a counter. Each counter that tells of a drop stands in the document.
"""
import json
import pathlib
import re
import sys

import limits

ROOT = limits.ROOT
DOCUMENT = "docs/troubleshooting.md"
SCHEMA = "tools/schema.json"
NAME = re.compile(r"`([a-z][a-z0-9]*(?:_[a-z0-9]+)+)`")
# Statuses, events, functions and modules of others, which stand beside counters all the same.
OTHERS = {"ib_uverbs", "post_send"}
EVENTS_OF_COUNTERS = {"cq_overflow"}  # told by an event, where there is no counter


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


def members(root):
    """What structures of public headers have: WorkCompletion::vendor_error, for example."""
    return {name for path in (root / limits.PUBLIC).glob("*.h")
            for name in re.findall(r"\b([a-z]\w*)(?: = [^;]*|\{[^;]*)?;", path.read_text())}


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


def check(root):
    text = (root / DOCUMENT).read_text()
    counters = names(root, "DIWARP_COUNTERS")
    others = {*names(root, "DIWARP_METERS"), *limits.Code(root).words(), *members(root),
              *keys(json.loads((root / SCHEMA).read_text())), *OTHERS}
    faults = [f"line {line}: {name} is no counter" for line, title, cell in rows(text)
              if title == "counter" for name in NAME.findall(cell)
              if name not in counters | EVENTS_OF_COUNTERS]
    faults += [f"line {number}: there is no {name}" for number, line in enumerate(text.splitlines(), 1)
               for name in NAME.findall(line) if name not in counters | others]
    named = set(NAME.findall(text))
    return list(dict.fromkeys(faults)) + [f"{name} does not stand there" for name in sorted(counters)
                     if name.startswith("drop_") and name not in named]


def main():
    faults = check(ROOT)
    print("\n".join(f"{DOCUMENT}: {fault}" for fault in faults) or
          "each counter is one that there is, and each drop stands there")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
