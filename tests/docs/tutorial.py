#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of docs/tutorial.md as a reader types them: in their order, in one shell.

  tutorial.py --build FOLDER [--cmake PROGRAM]     FOLDER: a finished build of this tree

The shell has a home, a loopback interface where the kernel gives one, and a copy of the tree of its
own. Some programs are stand-ins: `git clone` gives that copy, `cmake` finds the build finished (it
does install), and nothing installs packages. A command that fails ends the run. The output that is
shown after a block is compared with what came by its words: each shown line stands for a line with
the same words in the same order, and all else may stand between. Words with digits do not count.

A step with a program that is not installed is left out, with the line "SKIPPED: ...".
"""
import argparse
import collections
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import blocks

DOCUMENT = "docs/tutorial.md"
PATIENCE = 270  # seconds for all steps, which take half a minute; CTest has 300
LEFT_OUT = shutil.ignore_patterns(".git", "build", "tests", "__pycache__")  # of the copied tree
# What a step may need beyond the packages that a build needs, and Debian's package of it.
PACKAGES = {"tshark": "tshark", "g++": "g++", "pkg-config": "pkg-config"}
DRIVER = 'set -e\nwhile IFS= read -r block <&3; do . "$block"; echo "$block"; done\n'
STAND_INS = {
    "git": 'mv "$TUTORIAL_TREE" "$3"\n',
    "cmake": ('case $1 in --install) exec "$TUTORIAL_CMAKE" "$@" ;; esac\n'
              'mkdir -p build\n[ -e build/release ] || ln -s "$TUTORIAL_BUILD" build/release\n'),
    "apt-get": 'echo "the tutorial\'s test installs nothing" >&2\nexit 1\n',
    "sudo": 'echo "the tutorial\'s test installs nothing" >&2\nexit 1\n',
}
Step = collections.namedtuple("Step", "title exchanges")
# A block of commands, and the lines that are shown after it.
Exchange = collections.namedtuple("Exchange", "line commands shown")


class Failure(Exception):
    """What is not as the document says."""


def steps_of(text):
    steps = []
    for block in blocks.blocks_of(DOCUMENT, text):
        if not re.match(r"\d+\. ", block.heading):
            raise Failure(f"line {block.line}: this block is in no step")
        if not steps or steps[-1].title != block.heading:
            steps.append(Step(block.heading, []))
        if block.language == "sh":
            steps[-1].exchanges.append(Exchange(block.line, block.text, []))
        elif not steps[-1].exchanges:
            raise Failure(f"line {block.line}: output stands before the command that prints it")
        else:
            steps[-1].exchanges[-1].shown.extend(block.text.splitlines())
    return steps


def words_of(line):
    """Those with a letter and without digits: figures, addresses and their units are not compared."""
    return [word for word in line.split()
            if re.search("[A-Za-z]", word) and not re.search("[0-9]", word)]


def is_like(shown, line):
    """Whether the words of the shown line stand in the other one, in their order."""
    rest = iter(words_of(line))
    return all(word in rest for word in words_of(shown))


def first_missing(shown, output):
    """The first of the shown lines that the output has no line for; None: all are there."""
    rest = iter(output.splitlines())
    for line in shown:
        if words_of(line) and not any(is_like(line, other) for other in rest):
            return line
    return None


def programs_of(commands):
    """The first word of each command, where it is no path: what PATH must have."""
    for line in commands.splitlines():
        words = shlex.split(line, comments=True)
        while words and re.match(r"\w+=", words[0]):
            words = words[1:]
        if words and "/" not in words[0]:
            yield words[0]
        yield from re.findall(r"\$\(([a-z][\w+-]*)", line)


def missing_packages(step):
    return sorted({PACKAGES[name] for exchange in step.exchanges
                   for name in programs_of(exchange.commands)
                   if name in PACKAGES and not shutil.which(name)})


def own_network():
    """What to begin the command with so that no port is in use: a loopback interface of its own."""
    for prefix in (["unshare", "--net"], ["unshare", "--net", "--map-root-user"]):
        begin = [*prefix, "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
        try:
            if subprocess.run([*begin, "true"], capture_output=True, timeout=20).returncode == 0:
                return begin
        except (OSError, subprocess.TimeoutExpired):
            pass
    return []


class Shell:
    """A shell that runs one block after the other, and is ended with all that it started."""

    def __init__(self, folder, environment, begin=()):
        self.folder = folder
        self.deadline = time.monotonic() + PATIENCE
        self.output = open(folder / "output", "w+b", buffering=0)
        reading, self.writing = os.pipe()
        driver = folder / "driver"
        driver.write_text(DRIVER)
        self.process = subprocess.Popen(
            ["bash", "-c", 'exec 3<&"$1" && exec "${@:2}"', "bash", str(reading), *begin,
             "bash", str(driver)],
            cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=self.output,
            stderr=subprocess.STDOUT, pass_fds=[reading], start_new_session=True)
        os.close(reading)

    def said(self, since):
        return (self.folder / "output").read_bytes()[since:].decode(errors="replace")

    def run(self, exchange):
        """What the block printed. What it leaves in the background may print later."""
        block = self.folder / f"line-{exchange.line}"
        block.write_text(exchange.commands)
        since = (self.folder / "output").stat().st_size
        try:
            os.write(self.writing, f"{block}\n".encode())
        except BrokenPipeError:
            pass  # it has ended, as is found below
        while True:
            ended = self.process.poll()
            said = self.said(since)
            done = f"{block}\n" in said
            missing = first_missing(exchange.shown, said)
            if done and (missing is None or "&\n" not in exchange.commands):
                break
            if not done and ended is not None:
                raise Failure(f"{DOCUMENT}:{exchange.line}: a command failed (status {ended}):\n{said}")
            if time.monotonic() > self.deadline:
                break
            time.sleep(0.02)
        if not done:
            raise Failure(f"{DOCUMENT}:{exchange.line}: not done in time, {PATIENCE} s for all:\n{said}")
        if missing is not None:
            raise Failure(f"{DOCUMENT}:{exchange.line}: no line is like {missing!r} in:\n{said}")
        return said.replace(f"{block}\n", "")

    def end(self):
        if self.output.closed:
            return
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.writing)
        self.output.close()


def environment_of(folder, build, cmake):
    programs = folder / "stand-ins"
    programs.mkdir()
    for name, text in STAND_INS.items():
        (programs / name).write_text(f"#!/bin/sh -e\n{text}")
        (programs / name).chmod(0o755)
    (folder / "home").mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DIWARP_")}
    environment.update(
        PATH=f"{programs}:{environment['PATH']}", HOME=str(folder / "home"), LC_ALL="C.UTF-8",
        TUTORIAL_TREE=str(folder / "tree"), TUTORIAL_BUILD=str(build), TUTORIAL_CMAKE=cmake,
        DIWARP_REPOSITORY=str(folder / "tree"), DIWARP_LAB_LOCK=f"test-{os.getpid()}")
    return environment


def run_steps(shell, steps, verbose):
    """Sentences on steps that are left out."""
    skipped = []
    for step in steps:
        packages = missing_packages(step)
        if packages:
            skipped.append(f"step {step.title}: not installed: {', '.join(packages)}")
            continue
        began = time.monotonic()
        for exchange in step.exchanges:
            said = shell.run(exchange)
            if verbose:
                print(said, end="")
        print(f"{step.title}: {time.monotonic() - began:.1f} s", flush=True)
    return skipped


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--cmake", default=shutil.which("cmake"))
    parser.add_argument("--verbose", action="store_true", help="print what the commands print")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="diwarp-tutorial-") as name:
        folder = pathlib.Path(name)
        shutil.copytree(blocks.ROOT, folder / "tree", symlinks=True, ignore=LEFT_OUT)
        environment = environment_of(folder, options.build.resolve(), options.cmake)
        shell = Shell(folder, environment, own_network())
        try:
            steps = steps_of((blocks.ROOT / DOCUMENT).read_text())
            skipped = run_steps(shell, steps, options.verbose)
        except Failure as failure:
            print(f"FAILED: {failure}")
            return 1
        finally:
            shell.end()
    print("\n".join(f"SKIPPED: {reason}" for reason in skipped) or f"{len(steps)} steps, all as shown")
    return 0


if __name__ == "__main__":
    sys.exit(main())
