#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/ as a reader runs them. Called with the name of one case; --list names
all."""
import re
import subprocess
import sys

from harness import PATIENCE, Skipped, case, check, example, main

# What each prints. Those that need no order among their lines are looked at by their cases below.
OUTPUTS = {
    "ud_hello": r"20 bytes from 127\.0\.0\.1:\d+: hello over datagrams\n",
    "rc_hello": (r'server: "alice" asks for a connection\n'
                 r'server: got "hello, how are you\?"\n'
                 r'client: "bob" answers "well, thank you"\n'),
    "rdma_write": r'server: 25 bytes were written: "written without a receive"\n',
    "datagram_read_cache": (r"(version \d+: \d+ primes\n)*version 10: 9592 primes\n"
                            r"\d+ checks of 8 bytes, \d+ fetches of 1024 bytes\n"),
}


def start(name, *arguments, before=()):
    return subprocess.run([*before, example(name), *map(str, arguments)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=PATIENCE)


def output_of(name, *arguments):
    done = start(name, *arguments)
    check(done.returncode == 0 and not done.stderr, f"{done}")
    return done.stdout


def check_refusal(done, name, *parts):
    """Status 1, and one sentence on standard error that names the program."""
    lines = done.stderr.splitlines()
    check(done.returncode == 1 and len(lines) == 1 and lines[0].startswith(f"{name}: "), f"{done}")
    for part in parts:
        check(part in lines[0], f"{part!r} is not in {lines[0]!r}")


@case(*[(name,) for name in OUTPUTS])
def shows_its_subject(name):
    output = output_of(name)
    check(re.fullmatch(OUTPUTS[name], output), output)


@case(*[(name,) for name in (*OUTPUTS, "reconfigure", "multicast_feed")])
def refuses_arguments(name):
    check_refusal(start(name, "more"), name, "it takes no arguments")


def frames_of(output):
    """The bytes that came of each frame, and the gaps that were concealed in all."""
    *frames, last = output.splitlines()
    came = [int(re.fullmatch(rf"frame {number}: (\d+) of 64000 bytes came", line).group(1))
            for number, line in enumerate(frames)]
    check(len(came) == 30, output)
    share, gaps = re.fullmatch(r"(\d+) % of all bytes came; (\d+) gaps were concealed", last).groups()
    check(int(share) == 100 * sum(came) // (30 * 64000), output)
    return came, int(gaps)


@case()
def write_record_stream_conceals_gaps():
    """The chance that 10 % take none of 1,350 datagrams, or all of a frame, is below 1 in 10^40."""
    came, gaps = frames_of(output_of("write_record_stream", 10))
    check(gaps > 0 and sum(came) < 30 * 64000 and max(came) > 0, came)


@case()
def write_record_stream_has_gaps_only_where_bytes_are_missing():
    """The host itself may lose some."""
    came, gaps = frames_of(output_of("write_record_stream", 0))
    check((gaps == 0) == (sum(came) == 30 * 64000), f"{came} {gaps}")


@case()
def write_record_stream_loses_little_by_default():
    came, _ = frames_of(output_of("write_record_stream"))
    check(sum(came) > 0, came)


@case()
def write_record_stream_refuses_arguments():
    for wrong in ("x", "-1", "91", "2.5", "", "99999999999999999999"):
        check_refusal(start("write_record_stream", wrong), "write_record_stream",
                      "is no number from 0 to 90")
    check_refusal(start("write_record_stream", 1, 2), "write_record_stream", "usage:")


@case()
def reconfigure_has_one_winner_whom_all_know():
    lines = output_of("reconfigure").splitlines()
    winners = [number for number in range(1, 6)
               if f"balancer {number} reconfigures the node" in lines]
    check(len(winners) == 1, lines)
    rest = [f"balancer {number}: balancer {winners[0]} was first" for number in range(1, 6)
            if number != winners[0]]
    check(sorted(lines) == sorted([f"balancer {winners[0]} reconfigures the node", *rest]), lines)


@case()
def multicast_feed_comes_to_each_subscriber():
    """All of it, unless the host lost some, which the subscriber then says."""
    output = output_of("multicast_feed")
    for number in (1, 2, 3):
        ticks = [(int(tick), int(price)) for tick, price in re.findall(
            rf"^subscriber {number}: tick (\d+), price (\d+)$", output, re.MULTILINE)]
        check(ticks == [(tick, price_at(tick)) for tick, _ in ticks] and ticks, output)
        gaps = output.count(f"subscriber {number}: a gap\n")
        check([tick for tick, _ in ticks] == list(range(10)) or gaps or ticks[-1][0] < 9, output)


def price_at(tick):
    return 100 + tick * tick % 7


# One over RC stands for all: the server waits 20 s for a client that cannot come.
@case(*[(name,) for name in ("ud_hello", "rc_hello", "write_record_stream", "datagram_read_cache",
                             "multicast_feed")])
def ends_where_loopback_is_down(name):
    """In a network namespace of its own, whose interface lo is down."""
    alone = ("unshare", "--user", "--map-root-user", "--net")
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode != 0:
        raise Skipped("no network namespaces here")
    check_refusal(start(name, before=alone), name)


if __name__ == "__main__":
    sys.exit(main())
