# SPDX-License-Identifier: Apache-2.0
"""What every part has: how long to wait, and how to say that something cannot be."""
import time
import types

PATIENCE = 100  # seconds for anything that should come to an end by itself; CTest has 120
# The folder of the programs; whoever starts sets it.
where = types.SimpleNamespace(tools=None)


class Skipped(Exception):
    """What this host cannot do, in a sentence."""


class Refusal(Exception):
    """What is not done as it was asked for, in a sentence for the user."""


def printable(text):
    """Without what would move a terminal's cursor or change its colours."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def wait_until(condition, what):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        check(time.monotonic() < deadline, what)
        time.sleep(0.02)
