#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several flows at the same time: streams, both ways, several clients of one server; and how the target
of a Write-Record is told. Called with the name of one case; --list names all."""
import os
import pty
import re
import select
import subprocess
import sys
import time

from harness import (PATIENCE, PROGRAMS, Process, answers_to, case, check, check_sentence, main, path, rows_of,
                     run, start_server, tool)
from rows import check_bandwidth, check_processor, check_rows

OVER = [("ud", "send"), ("ud", "write-record"), ("ud", "read"), ("rd", "send"), ("rc", "send"),
        ("rc", "write"), ("rc", "read"), ("rc", "atomic")]


def size_options(operation, sizes="1,64,5000"):
    return [] if operation == "atomic" else ["--size", sizes]


def sizes_of(operation):
    return [8] if operation == "atomic" else [1, 64, 5000]


@case(*OVER)
def streams(transport, operation):
    """Messages that do not spread evenly, and fewer in the warm-up than there are streams."""
    run("bandwidth", "--loopback", "--transport", transport, "--op", operation, "--streams", 3,
        "--iterations", 100, "--warmup", 2, *size_options(operation), "--verify", "--max-loss", 100,
        "--json", path("rows.json"))
    rows = rows_of("rows.json")
    check_rows(rows, "bandwidth", transport, sizes_of(operation), 100, operation)
    check(all(row["streams"] == 3 and row["posted_by"] == "client" for row in rows), rows)


@case(*OVER)
def bidirectional(transport, operation):
    done = run("bandwidth", "--loopback", "--transport", transport, "--op", operation,
               "--bidirectional", "--streams", 2, "--iterations", 100, *size_options(operation),
               "--verify", "--max-loss", 100, "--json", path("rows.json"))
    rows = rows_of("rows.json")
    check_rows(rows, "bandwidth", transport, [size for size in sizes_of(operation) for _ in "12"], 100,
               operation)
    check([row["posted_by"] for row in rows] == ["client", "server"] * len(sizes_of(operation)), rows)
    check(all(len(line) <= 80 for line in done.stdout.splitlines()), done.stdout)


def check_clients(rows, clients, sizes, iterations):
    """The rows of each client, and for each size one of the server, which has their sums."""
    numbers = [str(i + 1) for i in range(clients)]
    check(len(rows) == len(sizes) * (clients + 1), rows)
    for size in sizes:
        mine = [row for row in rows if row["size"] == size]
        check(sorted(row["client"] for row in mine) == numbers + ["all"], mine)
        for row in mine:
            if row["client"] != "all":
                check_bandwidth(row)
                check(row["sent"] == iterations, row)
        server, = (row for row in mine if row["client"] == "all")
        check_processor(server, ("server",))
        check(server["sent"] == clients * iterations, server)
        for name in ("received", "valid_bytes", "lost"):
            check(server[name] == sum(row[name] for row in mine if row is not server), server)


@case(*[(transport, operation) for transport, operation in OVER if operation != "atomic"])
def clients_of_a_loopback(transport, operation):
    done = run("bandwidth", "--loopback", "--clients", 3, "--transport", transport, "--op", operation,
               "--size", "64,5000", "--iterations", 60, "--verify", "--max-loss", 100, "--json",
               path("rows.json"))
    check_clients(rows_of("rows.json"), 3, [64, 5000], 60)
    check(all(len(line) <= 80 for line in done.stdout.splitlines()), done.stdout)


@case(("ud",), ("rd",), ("rc",))
def clients_of_a_server(transport):
    """Each client has its own rows, with other messages if it likes; the server has all."""
    server, address = start_server("bandwidth", "127.0.0.1:0", "--clients", 2, "--json",
                                   path("server.json"))
    options = ("--connect", address, "--iterations", 50, "--max-loss", 100, "--size", 64)
    first = Process("bandwidth", *options, "--transport", transport, "--json", path("1.json"))
    second = Process("bandwidth", *options, "--transport", "rc", "--op", "write", "--json",
                     path("2.json"))
    for process in (first, second, server):
        process.end(0)
    rows = rows_of("server.json")
    check_clients(rows, 2, [64], 50)
    told = sorted((rows_of("1.json") + rows_of("2.json")), key=lambda row: row["client"])
    check(rows[:2] == told, "the ends report different figures")
    check({row["op"] for row in told} == {"send", "write"}, told)


@case()
def clients_that_do_not_come():
    server, address = start_server("bandwidth", "127.0.0.1:0", "--clients", 2, "--timeout", 2)
    client = Process("bandwidth", "--connect", address, "--iterations", 10)
    check_sentence("bandwidth", server.end(1), "only 1 of 2 clients came within 2 s")
    check_sentence("bandwidth", client.end(1), "stopped: only 1 of 2 clients")


@case()
def clients_with_other_sizes_are_refused():
    server, address = start_server("bandwidth", "127.0.0.1:0", "--clients", 2)
    first = Process("bandwidth", "--connect", address, "--iterations", 50, "--max-loss", 100)
    server.wait_for("serving")
    done = run("bandwidth", "--connect", address, "--size", "1,2", status=1)
    check_sentence("bandwidth", done.stderr, "as many sizes each")
    run("bandwidth", "--connect", address, "--iterations", 50, "--max-loss", 100)
    first.end(0)
    check("refused a peer" in server.end(0), server.output)


@case()
def client_that_is_killed_ends_the_others():
    server, address = start_server("bandwidth", "127.0.0.1:0", "--clients", 2)
    options = ("--connect", address, "--transport", "rc", "--iterations", 1_000_000_000)
    processes = [Process("bandwidth", *options) for _ in range(2)]
    server.wait_for("serving(.|\n)*serving")
    time.sleep(0.2)
    processes[0].kill()
    check_sentence("bandwidth", server.end(1), "ended in the middle of the run")
    check_sentence("bandwidth", processes[1].end(1), "stopped: .*ended in the middle of the run")


@case()
def clients_are_the_servers_choice():
    done = run("bandwidth", "--connect", "127.0.0.1:9", "--clients", 2, status=1)
    check_sentence("bandwidth", done.stderr, "server's choice")


@case()
def group_of_a_server_that_waits_for_clients():
    server, address = start_server("bandwidth", "127.0.0.1:0", "--clients", 2)
    other, other_address = start_server("bandwidth", "127.0.0.2:0")
    done = run("bandwidth", "--connect", f"{address},{other_address}", status=1)
    check_sentence("bandwidth", done.stderr, "waits for several clients")
    for process in (server, other):
        process.kill()


@case(*[(policy, transport, how) for policy in ("complete", "last-segment", "per-segment")
        for transport in ("ud", "rd") for how in ("verified", "unverified")])
def completion(policy, transport, how):
    run("bandwidth", "--loopback", "--transport", transport, "--op", "write-record", "--completion",
        policy, "--size", "0,64,100K", "--segment", 1472, "--iterations", 60, "--max-loss", 100,
        "--json", path("rows.json"), *(["--verify"] if how == "verified" else []))
    rows = rows_of("rows.json")
    check_rows(rows, "bandwidth", transport, [0, 64, 102400], 60, "write-record")
    check(all(row["completion"] == policy for row in rows), rows)


@case(("last-segment",), ("per-segment",))
def completion_of_records_that_lose_datagrams(policy):
    run("bandwidth", "--loopback", "--op", "write-record", "--completion", policy, "--size", "1M",
        "--iterations", 30, "--warmup", 2, "--udp-buffer", "4K", "--local", "off", "--segment", 1472,
        "--window", 2, "--max-loss", 100, "--verify", "--json", path("rows.json"))
    row, = rows_of("rows.json")
    check_bandwidth(row)
    check(row["partial"] > 0 and row["lost"] > 0, f"nothing was lost: {row}")


@case(("complete",), ("last-segment",))
def completion_of_a_pingpong(policy):
    run("pingpong", "--loopback", "--op", "write-record", "--completion", policy, "--size", "64,20K",
        "--iterations", 20, "--max-loss", 100, "--verify", "--json", path("rows.json"))
    rows = rows_of("rows.json")
    check_rows(rows, "pingpong", "ud", [64, 20480], 20, "write-record")
    check(all(row["completion"] == policy for row in rows), rows)


@case()
def pingpong_has_no_answers_in_segments():
    done = run("pingpong", "--loopback", "--op", "write-record", "--completion", "per-segment",
               status=1)
    check_sentence("pingpong", done.stderr, "complete or last-segment")


@case(*[(program, gso, gro) for program in PROGRAMS for gso in ("on", "off") for gro in ("on", "off")])
def offloads(program, gso, gro):
    """Each is of one end, and the ends need not agree."""
    server, address = start_server(program, "127.0.0.1:0", "--gso", gro, "--gro", gso)
    run(program, "--connect", address, "--gso", gso, "--gro", gro, "--segment", 1472, "--size", "50K",
        "--iterations", 30, "--verify", "--max-loss", 100, "--json", path("rows.json"))
    server.end(0)
    check_rows(rows_of("rows.json"), program, "ud", [51200], 30)


@case()
def options_of_another_version_are_refused():
    """A server reads what it can take, and says what it cannot."""
    hello = {"type": "hello", "tool": "diwarp-bandwidth", "version": 8, "transport": "ud",
             "op": "write-record", "verify": False, "segment": "mtu", "completion": "complete",
             "streams": 1, "bidirectional": False, "rows": 1, "token": 7, "congestion": "bbr"}
    server, address = start_server("bandwidth", "127.0.0.1:0")
    for name, value in (("streams", 0), ("streams", 65), ("streams", "x"), ("bidirectional", 1),
                        ("completion", "sometimes"), ("completion", 7)):
        check(b"error" in answers_to(address, {**hello, name: value}), name)
    run("bandwidth", "--connect", address, "--transport", "rc", "--iterations", 20)
    check(len(server.end(0).splitlines()) == 6, "refusals are missing")


@case()
def progress_moves_within_one_long_message():
    """On a terminal; the message takes seconds at its rate."""
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [tool("bandwidth"), "--loopback", "--size", "64M", "--rate", "16M", "--iterations", "1",
         "--warmup", "0", "--max-loss", "100"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=terminal)
    os.close(terminal)
    text = b""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and len(set(re.findall(rb"(\d+) %", text))) < 3:
        if select.select([controller], [], [], 0.5)[0]:
            try:
                text += os.read(controller, 4096)
            except OSError:  # the other side is closed
                break
    process.kill()
    process.wait()
    check(len(set(re.findall(rb"67108864 bytes: (\d+) %", text))) >= 3, text)


if __name__ == "__main__":
    sys.exit(main())
