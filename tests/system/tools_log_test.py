#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What DIWARP_LOG has the tools tell. Called with the name of one case; --list names all."""
import os
import re
import subprocess
import tempfile

from harness import PATIENCE, case, check, example, main, tool

MESSAGES = 5
PINGPONG = ("--loopback", "--iterations", MESSAGES, "--warmup", 0, "--size", 64)
LINE = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}\] \[diwarp\] \[(\w+)\] (.*)")


def pingpong(transport, level, descriptors=(), **variables):
    """What a run tells on stderr."""
    done = subprocess.run([tool("pingpong"), *map(str, PINGPONG), "--transport", transport],
                          env={**os.environ, "DIWARP_LOG": level, **variables}, text=True,
                          capture_output=True, pass_fds=descriptors, timeout=PATIENCE, check=False)
    check(done.returncode == 0, done.stderr)
    return done.stderr


def lines(text, level):
    return [found[2] for found in map(LINE.fullmatch, text.splitlines())
            if found and found[1] == level]


def check_traced(text):
    traced = lines(text, "trace")
    for wanted in (r"posted receive of \d+ bytes, wr_id \d+", r"posted send of 64 bytes.*, wr_id \d+",
                   r"sent send of 64 bytes.*, wr_id \d+", r"received Send of 64 bytes.*",
                   r"completed recv of 64 bytes.*, wr_id \d+: success"):
        found = [line for line in traced if re.fullmatch(r"127\.0\.0\.1 qp \d+: " + wanted, line)]
        check(len(found) >= MESSAGES, f"{wanted}: {len(found)} of {traced[:20]}")


@case(("ud",), ("rd",), ("rc",))
def trace_shows_messages(transport):
    check_traced(pingpong(transport, "trace"))


@case()
def info_shows_connections():
    text = pingpong("rc", "info")
    told = lines(text, "info")
    check(not lines(text, "trace") and not lines(text, "debug"), text)
    for wanted in ("connected to 127.0.0.1:", "accepted a connection from 127.0.0.1:",
                   "ended: "):
        check(any(wanted in line for line in told), f"{wanted!r} is not in {told}")


@case()
def descriptor_gets_the_lines():
    with tempfile.TemporaryFile("w+") as file:
        number = file.fileno()
        on_stderr = pingpong("ud", "trace", (number,), DIWARP_LOG_FD=str(number))
        check(not lines(on_stderr, "trace"), on_stderr[:500])
        file.seek(0)
        check_traced(file.read())


@case()
def unknown_level_is_told_once():
    done = subprocess.run([example("ud_hello")], env={**os.environ, "DIWARP_LOG": "loud"},
                          text=True, capture_output=True, timeout=PATIENCE, check=False)
    told = lines(done.stderr, "warn")
    named = [line for line in told if "DIWARP_LOG=loud names no level" in line]
    check(len(named) == 1 and "trace, debug, info, warn, error or off" in named[0], told)


@case()
def unknown_word_for_the_counters_is_told_once():
    """Though both devices of the process read it."""
    for word, told in (("foo", 1), ("private", 0), ("shared", 0), ("", 0)):
        done = subprocess.run([example("rc_hello")], env={**os.environ, "DIWARP_COUNTERS": word},
                              text=True, capture_output=True, timeout=PATIENCE, check=False)
        named = [line for line in lines(done.stderr, "warn") if "DIWARP_COUNTERS=foo" in line]
        check(done.returncode == 0 and len(named) == told, f"{word}: {done}")
        check(all("private" in line for line in named), named)


@case()
def quiet_unless_asked():
    for transport in ("ud", "rd", "rc"):
        text = pingpong(transport, "")
        check(not any(map(LINE.fullmatch, text.splitlines())), text)


if __name__ == "__main__":
    main()
