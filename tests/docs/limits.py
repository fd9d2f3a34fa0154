#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares docs/limits.md with the code.

Each row of its tables names a bound, its default, what sets it, and what its exhaustion gives.
It is set by an option, `Options::member` (of a header `*_options.h`), or a constant,
`Class::kName` or `kName`, with its file. The check finds
  - options, constants, counters, statuses and errors that do not exist, and defaults that differ;
  - numbers among the options, and constants that say by their name that they are bounds (kMax...,
    kMost..., kLeast..., kLongest...), that stand in no table and are no exceptions;
  - exceptions that are none.
"""
import ast
import collections
import operator
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENT = "docs/limits.md"
PUBLIC = "include/diwarp"
OPTIONS = "*_options.h"  # the public headers that have them
COUNTERS = "base/include/base/counters.h"
LAYERS = ("include", "base", "bridge", "compat", "ddp", "dgram", "hybrid", "llp", "mpa", "provider", "rdmap",
          "rnic")
BOUNDED = ("include", "base", "bridge", "compat", "ddp", "dgram", "hybrid", "llp", "provider", "rnic")  # their bounds stand in the document
BOUND = re.compile(r"k(?:Max|Most|Least|Longest)(?![a-z])")
HEADING = ["bound", "default", "set by", "exhaustion"]

NANOSECONDS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
BYTES = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
CHRONO = {"nanoseconds": "ns", "microseconds": "us", "milliseconds": "ms", "seconds": "s",
          "minutes": "min", "hours": "h"}
CLASS = re.compile(r"\b(?:class|struct)\s+(?:\w+\s+)*?(?:\w+::)*(\w+)(?:\s+final)?\s*(?::[^:].*)?$",
                   re.DOTALL)
ACCESS = re.compile(r"\b(?:public|private|protected):\s*")
NUMBER = r"(?:u?int\d+_t|int|unsigned|size_t|double|Duration)"
OPERATIONS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
              ast.Div: operator.floordiv, ast.LShift: operator.lshift}

Row = collections.namedtuple("Row", "line default name path exhaustion")
# What a header defines: `scope` is its class or "", `text` the initializer, or None.
Definition = collections.namedtuple("Definition", "path scope kind name text")


# Bounds that stand in no table, each with its reason: nothing that a user could meet follows from
# them, or they are no numbers of this library's.
EXCEPTIONS = {
    ("base/src/crc32c_isal.cpp", "kMost"): "a CRC of more is computed piece by piece",
    ("ddp/stag_table.cpp", "kLeastSlots"): "what a table begins with; it grows",
    ("llp/tcp/tcp_stream.cpp", "kMaxPieces"): "IOV_MAX, the system's",
    ("llp/capture/packet.h", "kMostTcpPayload"): "follows from the format",
    ("llp/capture/packet.h", "kMostUdpPayload"): "follows from the format",
    ("llp/capture/pcapng.h", "kLongestBlockText"): "a longer name is cut",
    ("llp/udp/udp_sender.cpp", "kMaxPieces"): "IOV_MAX, the system's",
    ("rnic/rc/partial_fpdu_buffer.h", "PartialFpduBuffer::kLongestFpdu"): "follows from the format",
    ("rnic/rc/partial_fpdu_buffer.h", "PartialFpduBuffer::kMostMarkers"): "follows from the format",
    ("rnic/datagram/control_sender.h", "ControlSender::kLongest"): "follows from the formats",
    ("base/include/base/blocking_wait.h", "kLongestWait"): "a longer wait is done piece by piece",
}


# --- The code.

def without_comments(text):
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
    return re.sub(r"^#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.MULTILINE)


def closing(text, begin):
    """The place of the brace that closes the one at `begin`."""
    depth = 0
    for place in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return place
    raise ValueError("a brace is not closed")


def without_parentheses(text):
    shorter = re.sub(r"\([^()]*\)", "#", text)
    return shorter if shorter == text else without_parentheses(shorter)


def statements(text, scope=""):
    """(class or "", statement) of all that ends with a semicolon, in functions as well."""
    statement, place = "", 0
    while place < len(text):
        char = text[place]
        if char == ";":
            yield scope, " ".join(statement.split())
            statement = ""
        elif char == "{":
            end = closing(text, place)
            outside = without_parentheses(ACCESS.sub("", statement))
            structure = CLASS.search(outside)
            function = "#" in outside and "=" not in outside
            if structure or function or "namespace" in outside:
                yield from statements(text[place + 1:end], structure[1] if structure else scope)
                statement = ""
            else:
                statement += text[place:end + 1]
            place = end
        else:
            statement += char
        place += 1


def definitions(path, text):
    """The constants and the members with a number that a file defines."""
    for scope, statement in statements(without_comments(text)):
        found = re.fullmatch(rf"(.*?)\b({NUMBER})\s+(\w+)\s*(?:=\s*(.+)|\{{(.*)\}})?",
                             ACCESS.sub("", statement))
        if found and re.fullmatch(r"(?:(?:inline|static|constexpr|const|std::)\s*)*", found[1]):
            kind = "time" if found[2] == "Duration" else "number"
            yield Definition(path, scope, kind, found[3], found[4] or found[5])


class Code:
    def __init__(self, root):
        self.root = root
        self.files = {}
        self.option_headers = [str(path.relative_to(root))
                               for path in sorted((root / PUBLIC).glob(OPTIONS))]
        for layer in LAYERS:
            for path in sorted((root / layer).rglob("*")):
                if path.suffix in (".h", ".cpp"):
                    self.read(str(path.relative_to(root)))

    def read(self, path):
        """The definitions of a file, none where it does not exist."""
        if path not in self.files:
            file = self.root / path
            self.files[path] = list(definitions(path, file.read_text())) if file.is_file() else []
        return self.files[path]

    def all(self):
        return [one for found in self.files.values() for one in found]

    def find(self, path, name):
        """What `name`, with its class in front or without, is in a file, or without one in the
        headers of options; or None."""
        *scope, name = name.split("::")
        return next((one for header in ([path] if path else self.option_headers)
                     for one in self.read(header)
                     if one.name == name and (not scope or one.scope == scope[-1])), None)

    def options(self):
        """The numbers that an application sets."""
        return [one for path in self.option_headers for one in self.read(path)
                if one.text is not None and
                re.fullmatch(r"\w+(Options|Capacity)|StreamAttributes", one.scope)]

    def bounds(self):
        """The constants that say by their name that they are bounds."""
        return [one for one in self.all() if one.path.split("/")[0] in BOUNDED and
                one.text is not None and BOUND.match(one.name)]

    def words(self):
        """The names that the column of exhaustion may mention: counters, enumerators, options."""
        counters = re.findall(r"X\((\w+),", (self.root / COUNTERS).read_text())
        enums = [body for path in sorted((self.root / PUBLIC).glob("*.h"))
                 for body in re.findall(r"enum class \w+[^{;]*\{([^}]*)\}",
                                        without_comments(path.read_text()))]
        enumerators = [name for body in enums for name in re.findall(r"\b[a-z]\w*", body)]
        options = [one.name for path in self.option_headers for one in self.read(path) if one.scope]
        return {*counters, *enumerators, *options}

    def value(self, definition):
        """In bytes, nanoseconds or pieces. Throws ValueError where that cannot be told."""
        text = re.sub(r"\b(\d[\da-fx']*)[uUlL]*\b", lambda found: found[1].replace("'", ""),
                      definition.text)
        text = re.sub(rf"\b(?:std::)?{NUMBER}::zero\(\)", "0", text)
        text = re.sub(rf"\b{NUMBER}(?=[{{(])", "", text).replace("{", "(").replace("}", ")")
        for name, unit in CHRONO.items():
            text = re.sub(rf"(?:std::)?(?:chrono::)?\b{name}\(", f"{NANOSECONDS[unit]}*(", text)
        text = re.sub(r"(?:(\w+)::)?\b(k[A-Z]\w*)",
                      lambda found: f"({self.constant(definition, found[1], found[2])})", text)
        try:
            return calculated(ast.parse(text.strip(), mode="eval").body)
        except SyntaxError:
            raise ValueError(text) from None

    def constant(self, beside, layer, name):
        near = self.find(beside.path, name)
        if near and not layer:
            return self.value(near)
        found = [one for one in self.all() if one.name == name and one.path.endswith(".h") and
                 one.path.startswith(f"{layer}/" if layer in LAYERS else "")]
        values = {self.value(one) for one in found}
        if len(values) != 1:
            raise ValueError(f"{name} has {len(values)} values")
        return values.pop()


def calculated(node):
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -calculated(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATIONS:
        return OPERATIONS[type(node.op)](calculated(node.left), calculated(node.right))
    raise ValueError("not a number")


# --- The document.

def read_rows(text):
    """(what is wrong with the form of the rows, the rows)"""
    faults, rows, in_table = [], [], False
    for number, line in enumerate(text.splitlines(), 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|") or cells == HEADING:
            in_table = cells == HEADING
        elif in_table and set(line) - set("|-"):
            wrong, row = read_row(number, cells)
            faults += wrong
            rows += [row] if row else []
    return faults, rows


def read_row(number, cells):
    if len(cells) != len(HEADING):
        return [f"line {number}: not {len(HEADING)} cells"], None
    bound, default, setter, exhaustion = cells
    named = re.fullmatch(r"`([\w:]+)`(?:, `([\w/.]+)`)?", setter)
    if not named:
        return [f"line {number}: {setter!r} is neither an `option` nor a `constant`, `file`"], None
    faults = [f"line {number}: the {what} is not told"
              for what, cell in (("bound", bound), ("exhaustion", exhaustion)) if len(cell) < 10]
    return faults, Row(number, default, named[1], named[2], exhaustion)


def told(default):
    """(kind or "", value) of the column of defaults, or None."""
    found = re.fullmatch(r"(-?[\d,]+)(?: (\w+))?(?:: .+)?", default)
    if not found:
        return None
    value = int(found[1].replace(",", ""))
    if found[2] in NANOSECONDS:
        return "time", value * NANOSECONDS[found[2]]
    if found[2] and found[2] not in BYTES:
        return None
    return ("" if value == 0 else "number"), value * BYTES.get(found[2], 1)


def faults_of_default(code, row, definition):
    try:
        actual = code.value(definition)
    except ValueError as why:
        return [f"line {row.line}: {row.name} has no value that can be told: {why}"]
    claimed = told(row.default)
    if claimed is None:
        return [f"line {row.line}: {row.default!r} is no number, alone or with a unit"]
    kind, value = claimed
    if value != actual or kind not in ("", definition.kind):
        return [f"line {row.line}: {row.name} is {definition.text}, not {row.default}"]
    return []


def faults_of_row(code, words, row):
    faults = [f"line {row.line}: no counter, status, error, event or option is named {word!r}"
              for word in re.findall(r"`([a-z][a-z0-9_]*)`", row.exhaustion) if word not in words]
    faults += [f"line {row.line}: there is no {name}"
               for name in re.findall(r"`(\w+::\w+)`", row.exhaustion)
               if code.find(None, name) is None]
    definition = code.find(row.path, row.name)
    if definition is None or definition.text is None:
        return faults + [f"line {row.line}: {row.path or OPTIONS} has no {row.name} with a number"]
    return faults + faults_of_default(code, row, definition)


def full_name(definition):
    return f"{definition.scope}{'::' if definition.scope else ''}{definition.name}"


def faults_of_omission(code, rows, exceptions):
    found = [code.find(row.path, row.name) for row in rows]
    listed = collections.Counter((one.path, one.scope, one.name) for one in found if one)
    unlisted = [(one.path, full_name(one)) for one in code.options() + code.bounds()
                if (one.path, one.scope, one.name) not in listed]
    faults = [f"{path}: {name} stands in no table" for path, name in unlisted
              if (path, name) not in exceptions]
    faults += [f"{path}: {name} is no exception: it stands in a table, or is no bound"
               for path, name in exceptions if (path, name) not in unlisted]
    return faults + [f"{name} of {path} stands in {count} rows"
                     for (path, _, name), count in listed.items() if count > 1]


def check(root, exceptions=EXCEPTIONS):
    """`exceptions` are the keys of EXCEPTIONS: files with the names of constants."""
    code = Code(root)
    faults, rows = read_rows((root / DOCUMENT).read_text())
    words = code.words()
    for row in rows:
        faults += faults_of_row(code, words, row)
    return faults + faults_of_omission(code, rows, exceptions), rows


def main():
    faults, rows = check(ROOT)
    print("\n".join(f"{DOCUMENT}: {fault}" for fault in faults) or
          f"{len(rows)} bounds, and each is as the code has it")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
