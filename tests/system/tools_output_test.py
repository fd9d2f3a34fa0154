#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tools whose output is not taken, or is read no longer, and those whose user has had enough. Called
with the name of one case; --list names all."""
import json
import os
import resource
import signal
import socket
import subprocess
import sys

from harness import (PATIENCE, Process, case, check, check_sentence, children_of, main, path, run,
                     start_endless, tool, wait_until)

SHORT = {"info": (), "stat": (), "memory": ("--clients", 5), "takeover": ("--rounds", 5),
         "compare": ("--rounds", 1, "--time", 5, "--only", "^ud-send-latency$"),
         "bandwidth": ("--loopback", "--iterations", 50, "--max-loss", 100),
         "pingpong": ("--loopback", "--iterations", 50, "--max-loss", 100)}
NO_SPACE = "No space left on device"
FULL = "/dev/full"


def outcome(name, options, output, **more):
    """The end of a tool that writes to such an output."""
    return subprocess.run([tool(name), *map(str, options)], stdin=subprocess.DEVNULL, stdout=output,
                          stderr=subprocess.PIPE, text=True, timeout=PATIENCE, **more)


def check_refused(name, done, *parts):
    check(done.returncode == 1, done)
    check_sentence(name, done.stderr, *parts)


@case(*[(name, "--json") for name in SHORT], ("bandwidth", "--csv"), ("pingpong", "--csv"))
def file_on_a_full_disk(name, option):
    """Nothing is lost without a word, and standard output has the table still."""
    done = run(name, *SHORT[name], option, FULL, status=1)
    check_sentence(name, done.stderr, f"{FULL} cannot be written: {NO_SPACE}")
    check(done.stdout, "no table")


@case()
def both_files_on_a_full_disk():
    """Each that could not be written is named."""
    os.symlink(FULL, path("rows.json"))
    os.symlink(FULL, path("rows.csv"))
    name = "bandwidth"
    done = run(name, *SHORT[name], "--json", path("rows.json"), "--csv", path("rows.csv"), status=1)
    check_sentence(name, done.stderr, "rows.json cannot be written", "rows.csv cannot be written")


@case()
def both_files_are_tried():
    name = "bandwidth"
    done = run(name, *SHORT[name], "--json", FULL, "--csv", path("rows.csv"), status=1)
    check_sentence(name, done.stderr, FULL)
    with open(path("rows.csv")) as file:
        check(len(file.readlines()) == 2, "not a title and a row")


@case(("info",), ("memory",))
def file_at_its_limit(name):
    """The largest size that a file may have is no reason to die."""
    done = outcome(name, (*SHORT[name], "--json", path("cut.json")), subprocess.DEVNULL,
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)))
    check_refused(name, done, "cut.json cannot be written: File too large")


@case(("info", "--help"), ("info", "--version"), ("info", "--json"), ("info", "--counters"),
      ("memory", "--help"), ("memory", "--version"), ("memory", "--json"), ("memory", "--clients", 5),
      ("takeover", "--json", "-", "--rounds", 5), ("takeover", "--rounds", 5), ("compare", "--list"),
      ("stat", "--help"), ("stat", "--json"), ("stat", "--prometheus"),
      ("stat", "--watch", 0.01), ("switch", "--help"), ("rping", "--version"),
      ("bandwidth", *SHORT["bandwidth"]), ("bandwidth", "--json", *SHORT["bandwidth"]))
def standard_output(name, *options):
    """A full disk has a sentence, whichever write it is that meets it; a pipe without a reader none."""
    if "--prometheus" in options:  # writes nothing where nothing runs
        start_endless("bandwidth")
    with open(FULL, "wb") as full:
        check_refused(name, outcome(name, options, full), "Standard output cannot be written", NO_SPACE)
    reader, writer = os.pipe()
    os.close(reader)
    here, there = socket.socketpair()
    here.close()
    with open(writer, "wb") as pipe, there:
        for output in (pipe, there):
            done = outcome(name, options, output)
            check(done.returncode == 128 + signal.SIGPIPE and not done.stderr, done)


@case()
def standard_output_in_a_file_at_its_limit():
    with open(path("cut"), "wb") as file:
        done = outcome("info", ("--counters",), file,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)))
    check(os.path.getsize(path("cut")) == 100, "it was not cut")
    check_refused("info", done, "Standard output cannot be written")


@case(*[(transport, number) for transport in ("ud", "rc") for number in ("SIGINT", "SIGTERM")])
def interrupted_memory(transport, number):
    """While clients come by the thousand, or one end waits for the other, which has been stopped."""
    process = Process("memory", "--transport", transport, "--clients", 500)
    pid = process.process.pid
    wait_until(lambda: children_of(pid), "no second process")
    child = children_of(pid)[0]
    os.kill(child, signal.SIGSTOP)
    process.process.send_signal(getattr(signal, number))
    check_sentence("memory", process.end(128 + getattr(signal, number)), "interrupted")
    wait_until(lambda: not os.path.exists(f"/proc/{child}"), "the child survives")


@case(("ud",), ("rc",), ("rd",))
def memory(transport):
    """Its table tells how many messages came."""
    done = run("memory", "--transport", transport, "--clients", 5, "--json", path("memory.json"))
    title, heads, _, used = done.stdout.splitlines()
    check(title == f"{transport}, 5 clients" and heads.endswith(" messages"), done.stdout)
    with open(path("memory.json")) as file:
        told = json.load(file)
    [row] = told["rows"]
    check(told["tool"] == "diwarp-memory" and row["transport"] == transport, told)
    check(used.split()[-1] == str(row["received"]), done.stdout)
    check(row["received"] == 5 or transport == "ud", row)


@case()
def memory_of_a_named_device():
    run("memory", "--device", "127.0.0.2", "--clients", 5)
    check_sentence("memory", run("memory", "--device", "192.0.2.1", status=1).stderr, "192.0.2.1")
    check_sentence("memory", run("memory", "--hardware", "some", status=1).stderr, "--hardware is one of")


@case()
def memory_with_lost_messages():
    """What does not come is not measured."""
    os.environ["DIWARP_IMPAIR"] = "drop=1"
    done = run("memory", "--transport", "ud", "--clients", 2, status=1, patience=2 * PATIENCE)
    check_sentence("memory", done.stderr, "Of 2 messages only 0 came")


@case()
def sentences_end_once():
    """What an error means in general is left out where a message tells of the case."""
    done = run("info", "--pcap", FULL, status=1)
    check_sentence("info", done.stderr, f"{FULL} is not[.]$")
    check("An argument is not acceptable" not in done.stderr, done.stderr)
    done = run("info", "--pcap", path("no/such/folder.pcapng"), status=1)
    check_sentence("info", done.stderr, "No such file or directory")


if __name__ == "__main__":
    sys.exit(main())
