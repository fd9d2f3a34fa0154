#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the arrows between the folders: docs/architecture.md says which may include which.

Usage: layers.py PROJECT_FOLDER. Prints each violation; exit status 0 if there is none.
"""
import re
import sys
from pathlib import Path

# What each layer stands on. It may include these, and what these stand on.
USES = {
    "base": [],
    "llp": ["base"],
    "mpa": ["base"],
    "dgram": ["base"],
    "ddp": ["base"],
    "rdmap": ["ddp"],
    "rnic": ["llp", "mpa", "dgram", "rdmap"],
    "verbs": ["rnic"],
}
# These see the installed headers, and of the layers no more than this: tools share base's small
# utilities, examples show what a user can do.
PROGRAMS = {"tools": ["base"], "examples": []}
# These do no I/O, own no thread, and are told the time and what is random.
PROTOCOL = ["mpa", "dgram", "ddp", "rdmap"]
SIDE_EFFECT_HEADER = re.compile(
    r"sys/(?!types\.h)|netinet/|arpa/|netdb\.h|net/|linux/|unistd\.h|fcntl\.h|poll\.h|liburing|boost/"
    r"|thread$|future$|condition_variable$|semaphore$|random$|ctime$|time\.h|pthread\.h|i?o?f?stream$"
)
SIDE_EFFECT_CALL = re.compile(
    r"\bnow\s*\(|\b\w*(?:_clock|SteadyClock)\b|\bclock_gettime\b|\bgettimeofday\b|\bsystem_random\w*"
    r"|\bgetrandom\b|\bstd::j?thread\b|\bsocket\s*\("
)
# An installed header shows nothing of what the library is built with.
OUTSIDE_HEADER = re.compile(r"boost/|spdlog/|fmt/|liburing|isa-l")

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def below(layer):
    """Every layer that stands below this one."""
    found = set(USES[layer])
    for lower in USES[layer]:
        found |= below(lower)
    return found


def owner(root, file, quote, name):
    """The folder an included header belongs to; None for a header from outside, "" for none."""
    if quote == '"' and (file.parent / name).exists():
        return file.relative_to(root).parts[0]
    for layer in USES:
        if (root / layer / "include" / name).exists():
            return layer
    own = file.relative_to(root).parts[0]
    if (root / own / name).exists() or (root / own / "src" / name).exists():
        return own
    return "" if quote == '"' or name.split("/")[0] in [*USES, "diwarp"] else None


def include_problem(root, file, quote, name):
    """What is wrong with one #include; None if nothing is."""
    folder = file.relative_to(root).parts[0]
    target = owner(root, file, quote, name)
    installed = "/include/diwarp/" in file.as_posix()
    if target is None:
        if folder in PROTOCOL and SIDE_EFFECT_HEADER.match(name):
            return "a protocol layer does no I/O and owns no thread"
        if installed and OUTSIDE_HEADER.match(name):
            return "an installed header includes what is not installed with it"
        return None
    if target == "":
        return "no header of the project has this name"
    if installed and not name.startswith("diwarp/"):
        return "an installed header includes what is not installed"
    if target == folder:
        return None
    if folder in PROGRAMS:
        allowed = name.startswith("diwarp/") or target in PROGRAMS[folder]
        return None if allowed else "only installed headers may be used here"
    return None if target in below(folder) else f"{folder} does not stand on {target}"


def check_file(root, file):
    text = file.read_text(encoding="utf-8")
    place = file.relative_to(root)
    for quote, name in INCLUDE.findall(text):
        problem = include_problem(root, file, quote, name)
        if problem:
            yield f"{place} includes {name}: {problem}"
    if place.parts[0] in PROTOCOL:
        for call in SIDE_EFFECT_CALL.findall(COMMENT.sub("", text)):
            yield f"{place} uses {call}: a protocol layer is told the time and what is random"


def check_cmake(root, layer):
    """The USES of diwarp_layer() must be those of the table, and no target above may be named."""
    path = root / layer / "CMakeLists.txt"
    if not path.exists():
        yield f"{layer} has no CMakeLists.txt"
        return
    text = re.sub(r"#[^\n]*", "", path.read_text(encoding="utf-8"))
    call = re.search(rf"diwarp_layer\(\s*{layer}\b(.*?)\)", text, re.DOTALL)
    uses = re.search(r"\bUSES\s+([a-z_\s]+)", call.group(1)) if call else None
    named = uses.group(1).split() if uses else []
    if sorted(named) != sorted(USES[layer]):
        yield f"{layer}/CMakeLists.txt: USES is {named}, not {USES[layer]}"
    for target in re.findall(r"\bdiwarp_([a-z]+)\b", text):
        if target in USES and target != layer and target not in below(layer):
            yield f"{layer}/CMakeLists.txt names diwarp_{target}: {layer} does not stand on it"


def check(root):
    """Every violation in the project at `root`, a sentence each."""
    problems = []
    for layer in USES:
        problems += check_cmake(root, layer)
    for folder in [*USES, *PROGRAMS]:
        files = sorted(p for p in (root / folder).rglob("*") if p.suffix in (".h", ".cpp"))
        if not files and folder in USES:
            problems.append(f"{folder} has no sources")
        for file in files:
            problems += check_file(root, file)
    return problems


def main():
    problems = check(Path(sys.argv[1]).resolve())
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
