#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sorts the sources of each target into groups that compile as one.

usage: unity_groups.py PROJECT_FOLDER < TARGETS > CMAKE_FILE

TARGETS has a line for each source: `folder;target;source`, the folder being the target's. The sources of a group have the same using
directives. No two of them have the same name in their unnamed namespaces, and none has a name there
that a header of the project has, too: another source of the group may include it. A source of several
targets of one folder compiles alone: CMake has one group for each source of a folder.
"""
import collections
import pathlib
import re
import sys

GROUP_SIZE = 10  # sources
UNNAMED_NAMESPACE = re.compile(r"^namespace \{\n(.*?)^\}  // namespace$", re.MULTILINE | re.DOTALL)
# A definition of formatted code outside of functions and classes begins in the first column.
DEFINITION = re.compile(
    r"^(?! |namespace)(?:template <.*>\n?)?(?:(?:enum class|enum|struct|class|union|using) (\w+)\b(?! *::)"
    r"|(?:[\w:<>,*&\[\] ]+?[ *&])(\w+)(?:\(| ?[={\[;]))", re.MULTILINE)
NOT_NAMES = {"operator", "if", "return", "TEST_CASE"}
USING_DIRECTIVE = re.compile(r"^using namespace ((?!std)[\w:]+);", re.MULTILINE)


def names_in(text):
    return {one or other for one, other in DEFINITION.findall(text)} - NOT_NAMES


def info_of(source):
    """(the using directives of a source, the names in its unnamed namespaces)"""
    text = pathlib.Path(source).read_text(encoding="utf-8")
    names = set().union(*map(names_in, UNNAMED_NAMESPACE.findall(text)))
    return frozenset(USING_DIRECTIVE.findall(text)), names


def names_in_headers(project):
    headers = (path for path in project.rglob("*.h")
               if "build" not in path.relative_to(project).parts)
    return set().union(*(names_in(path.read_text(encoding="utf-8")) for path in headers))


def grouped(sources, taken):
    """Yields (source, number of its group)."""
    groups = []  # (using directives, sources, names) of each
    for source in sources:
        directives, names = info_of(source)
        if names & taken:
            continue
        fitting = (number for number, (common, members, others) in enumerate(groups)
                   if common == directives and len(members) < GROUP_SIZE and not names & others)
        number = next(fitting, len(groups))
        if number == len(groups):
            groups.append((directives, [], set()))
        groups[number][1].append(source)
        groups[number][2].update(names)
    for number, (_, members, _) in enumerate(groups):
        if len(members) > 1:
            yield from ((source, number) for source in members)


def main():
    project = pathlib.Path(sys.argv[1])
    lines = [line.split(";") for line in sys.stdin.read().splitlines()]
    uses = collections.Counter((folder, source) for folder, _, source in lines)
    targets = collections.defaultdict(list)
    for folder, target, source in lines:
        if uses[folder, source] == 1:
            targets[target].append(source)
    in_headers = names_in_headers(project)
    for target, sources in targets.items():
        for source, number in grouped(sources, in_headers):
            print(f'set_source_files_properties("{source}" TARGET_DIRECTORY {target}'
                  f" PROPERTIES UNITY_GROUP group_{number})")


if __name__ == "__main__":
    main()
