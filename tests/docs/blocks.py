#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The code blocks of README.md and docs/*.md.

  blocks.py extract FOLDER     writes each C++ block to FOLDER/<document>/<heading>.inc, for the test
                               that compiles and runs it, and prints the documents' names
  blocks.py check [--tools FOLDER]
                               each C++ block is in a test, or is a program that examples/ has; each
                               block of CMake is in a project of tests/install; each command is one
                               that there is, with options that it knows
"""
import argparse
import collections
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTS = "tests/docs"
# Commands of the system, which nothing here checks.
SYSTEM = {"sudo", "export", "unset", "cd", "wait", "sed", "git", "ctest", "ninja", "gdb", "tshark", "pre-commit", "nice",
          "install", "sysctl", "ip", "ethtool", "nstat", "ss", "ulimit"}
Block = collections.namedtuple("Block", "document heading language line text")


def documents(root):
    return [root / "README.md", *sorted((root / "docs").glob("*.md"))]


def blocks_of(document, text):
    """The fenced blocks ("" is the language of figures), and the indented ones, of "sh"."""
    heading, fence, lines, found, before = "", None, [], [], ""
    for number, line in enumerate(text.splitlines() + [""], 1):
        if fence is not None:
            if line.startswith("```"):
                found.append(Block(document, heading, fence[0], fence[1], "".join(lines)))
                fence, lines = None, []
            else:
                lines.append(line + "\n")
        elif line.startswith("```"):
            fence = (line[3:].strip(), number + 1)
        elif line.startswith("    ") and line.strip() and (lines or not before.strip()):
            lines.append(line[4:] + "\n")
        else:
            if lines:
                found.append(Block(document, heading, "sh", number - len(lines), "".join(lines)))
                lines = []
            if line.startswith("#"):
                heading = line.lstrip("#").strip()
        before = line
    return found


def all_blocks(root):
    return [block for path in documents(root)
            for block in blocks_of(str(path.relative_to(root)), path.read_text())]


def is_program(block):
    return "int main(" in block.text


def files_of(blocks):
    """{file: block} of the C++ blocks that are no programs."""
    files = {}
    for block in blocks:
        if block.language != "cpp" or is_program(block):
            continue
        slug = re.sub(r"[^a-z0-9]+", "-", block.heading.lower()).strip("-")
        stem = f"{pathlib.Path(block.document).stem.lower()}/{slug}"
        again = sum(name == f"{stem}.inc" or name.startswith(f"{stem}-") for name in files)
        files[f"{stem}-{again + 1}.inc" if again else f"{stem}.inc"] = block
    return files


def extract(root, folder):
    for name, block in files_of(all_blocks(root)).items():
        path = folder / name
        text = f'#line {block.line} "{block.document}"\n{block.text}'
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:  # else all is compiled again
            path.write_text(text)
    print("\n".join(str(path) for path in documents(root)))


def faults_of_cpp(root, blocks):
    tests = "".join(path.read_text() for path in sorted((root / TESTS).glob("*.cpp")))
    tested = set(re.findall(r'#include "([^"]+\.inc)"', tests))
    programs = {path.read_text().split("\n", 1)[1] for path in (root / "examples").glob("*.cpp")}
    faults = [f"{block.document}:{block.line}: no test has this block as {name}"
              for name, block in files_of(blocks).items() if name not in tested]
    return faults + [f"{block.document}:{block.line}: no program of examples/ is this one"
                     for block in blocks
                     if block.language == "cpp" and is_program(block) and block.text not in programs]


def faults_of_cmake(root, blocks):
    projects = "".join(path.read_text()
                       for path in sorted((root / "tests/install").glob("*/CMakeLists.txt")))
    return [f"{block.document}:{block.line}: no project of tests/install has these lines"
            for block in blocks if block.language == "cmake" and block.text not in projects]


def help_of(program):
    done = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=60)
    return done.stdout if done.returncode == 0 else ""


def fault_of_command(root, tools, command):
    """What is wrong with a command, or "". Those that install and compile are run by tests/install."""
    words = shlex.split(command, comments=True)
    while words and re.match(r"[A-Za-z_]+=", words[0]):
        words = words[1:]  # what is set, for this command alone if there is one
    if words[:2] == ["python3", "-B"]:
        words = words[2:]
    if not words or words[0] in SYSTEM or words[0] in ("./hello", "./first"):
        return ""
    options = [word.split("=")[0] for word in words[1:] if word.startswith("--")]
    if words[0] in ("g++", "cmake"):
        installed = (root / "tests/install/check").read_text()
        return "" if "step_readme" in installed else "tests/install does not run it"
    if words[0].startswith("build/release/tools/"):
        program = tools / pathlib.Path(words[0]).name if tools else None
    elif words[0].startswith("build/release/examples/"):
        program, options = root / "examples" / f"{pathlib.Path(words[0]).name}.cpp", []
    else:
        program = root / words[0]
    if program is None:
        return ""  # the tools are not built here
    if not program.is_file():
        return f"there is no {program}"
    known = help_of(program) if options else ""
    unknown = [option for option in options if not re.search(rf"{option}\b", known)]
    return f"it does not know {', '.join(unknown)}" if unknown else ""


def faults_of_commands(root, tools, blocks):
    faults = []
    for block in blocks:
        # tests/lab runs the experiment of docs/lab.md.
        if block.language not in ("", "cmake", "cpp", "sh", "python experiment"):
            faults.append(f"{block.document}:{block.line}: nothing checks blocks of {block.language}")
        if block.language != "sh":
            continue
        for number, line in enumerate(block.text.splitlines()):
            if fault := fault_of_command(root, tools, line):
                faults.append(f"{block.document}:{block.line + number}: {fault}")
    return faults


def check(root, tools):
    blocks = all_blocks(root)
    return faults_of_cpp(root, blocks) + faults_of_cmake(root, blocks) + faults_of_commands(root, tools, blocks)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("step", choices=["extract", "check"])
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    parser.add_argument("--tools", type=pathlib.Path)
    options = parser.parse_args()
    if options.step == "extract":
        extract(ROOT, options.folder)
        return 0
    faults = check(ROOT, options.tools)
    print("\n".join(faults) or f"{len(all_blocks(ROOT))} blocks, and each is tested")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
