#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The operations of diwarp-pingpong and diwarp-bandwidth beyond send. Called with the name of one
case; --list names all."""
import sys

from harness import (PROGRAMS, answers_to, case, check, check_sentence, family_options, few,
                     main, path, rows_of, run, start_endless, start_server, sweep)
from rows import check_rows, check_table

SIZED = ("write", "read")
EIGHT_BYTES = ("atomic", "send-imm")
OPERATIONS = SIZED + EIGHT_BYTES


def size_options(operation, sizes):
    return ["--size", sizes] if operation in SIZED else []


@case(*[(operation, program, family) for operation in OPERATIONS for program in PROGRAMS
        for family in ("ipv4", "ipv6")])
def loopback(operation, program, family):
    """Sizes 1 B to 1 MiB where there is a choice, every byte checked."""
    options, sizes = sweep(family) if operation in SIZED else (family_options(family), [8])
    done = run(program, "--loopback", "--transport", "rc", "--op", operation, *options,
               "--iterations", few(program, "rc"), "--verify", "--json", path("rows.json"))
    check_rows(rows_of("rows.json"), program, "rc", sizes, few(program, "rc"), operation)
    check_table(done.stdout, f"rc {operation}", len(sizes))


@case(*[(operation, program) for operation in OPERATIONS for program in PROGRAMS])
def server_and_client(operation, program):
    """Without --verify; the server reports the same figures as the client."""
    server, address = start_server(program, "127.0.0.1:0", "--json", path("server.json"))
    run(program, "--connect", address, "--transport", "rc", "--op", operation, "--iterations", 50,
        "--json", path("client.json"), *size_options(operation, "1,64,4K"))
    server.end(0)
    sizes = [1, 64, 4096] if operation in SIZED else [8]
    check_rows(rows_of("client.json"), program, "rc", sizes, 50, operation)
    check(rows_of("client.json") == rows_of("server.json"), "the ends report different figures")


@case(*[(program,) for program in PROGRAMS])
def empty_reads(program):
    run(program, "--loopback", "--transport", "rc", "--op", "read", "--size", 0, "--iterations", 100,
        "--verify", "--json", path("rows.json"))
    check_rows(rows_of("rows.json"), program, "rc", [0], 100, "read")


@case(*[(operation, window) for operation in OPERATIONS for window in (1, 5, 100)])
def window(operation, window):
    """Fewer and more at once than the connection lets be outstanding (16 Reads and atomics)."""
    run("bandwidth", "--loopback", "--transport", "rc", "--op", operation, "--iterations", 700,
        "--window", window, "--verify", "--json", path("rows.json"), *size_options(operation, 100))
    rows = rows_of("rows.json")
    check_rows(rows, "bandwidth", "rc", [100] if operation in SIZED else [8], 700, operation)
    check(rows[0]["window"] == window, rows)


@case()
def writes_go_on_when_marks_repeat():
    """A slot's mark has 255 values; with a window of 2 each comes round twice."""
    run("bandwidth", "--loopback", "--transport", "rc", "--op", "write", "--size", "1,9",
        "--iterations", 1200, "--window", 2, "--verify", "--json", path("rows.json"))
    check_rows(rows_of("rows.json"), "bandwidth", "rc", [1, 9], 1200, "write")


@case(*[(program,) for program in PROGRAMS])
def wrong_options(program):
    reliable = ("--transport", "rc", "--op")
    for options, parts in (
            *[(("--op", operation), (f"--op {operation} needs a reliable", "--transport rc"))
              for operation in OPERATIONS if operation != "read"],
            *[((*reliable, operation, "--size", 64), (f"--op {operation} is always of 8 bytes",))
              for operation in EIGHT_BYTES],
            ((*reliable, "write", "--size", "64,0"), ("--op write needs", "1 byte or more")),
            ((*reliable, "sends"),
             ("no operation .sends", "send, write, read, atomic, send-imm, write-record"))):
        done = run(program, "--loopback", *options, status=1)
        check_sentence(program, done.stderr, *parts)
    done = run(program, "--server", "127.0.0.1:0", "--op", "write", status=1)
    check_sentence(program, done.stderr, "--op is the client's choice")


@case(*[(program,) for program in PROGRAMS])
def help_explains_the_operations(program):
    text = " ".join(run(program, "--help").stdout.split())
    for words in ("RFC 7306", "no Send with immediate", "no receive", *OPERATIONS):
        check(words in text, f"{words!r} is not in {text}")
    check(program != "pingpong" or "full operation" in text, text)


@case(*[(program, operation, victim) for program in PROGRAMS for operation in OPERATIONS
        for victim in ("server", "client")])
def peer_killed(program, operation, victim):
    server, client = start_endless(program, "--transport", "rc", "--op", operation)
    dead, survivor = (server, client) if victim == "server" else (client, server)
    dead.kill()
    check_sentence(program, survivor.end(1), "127.0.0.1:", "ended in the middle of the run")


HELLO = {"type": "hello", "tool": "diwarp-bandwidth", "version": 8, "transport": "rc", "op": "write",
         "verify": False, "segment": "mtu", "completion": "complete", "streams": 1,
         "bidirectional": False, "rows": 1, "token": 7, "congestion": "bbr"}
ROW = {"type": "row", "size": 64, "window": 8, "rate": 0, "iterations": 10, "warmup": 0, "partial": False,
       "port": 1}


@case()
def clients_with_impossible_operations_are_refused():
    server, address = start_server("bandwidth")
    for changes, part in (({"op": "teleport"}, b"no operation"), ({"op": 7}, b"op"),
                          ({"transport": "ud"}, b"needs a reliable"),
                          ({"transport": "tcp"}, b"no transport"),
                          ({"segment": "12"}, b"--segment needs"), ({"segment": 1500}, b"segment")):
        check(part in answers_to(address, {**HELLO, **changes}), f"{changes} was not refused so")
    run("bandwidth", "--connect", address, "--transport", "rc", "--op", "read", "--iterations", 20)
    check(server.end(0).count("refused a peer") == 6, server.errors())


@case()
def unusable_sizes_end_the_run():
    for operation, size, part in (("write", 0, "1 byte"), ("atomic", 64, "8 bytes"),
                                  ("send-imm", 9, "8 bytes")):
        server, address = start_server("bandwidth")
        answers_to(address, {**HELLO, "op": operation}, {**ROW, "size": size})
        check_sentence("bandwidth", server.end(1), part)


@case()
def unusable_memory_ends_the_run():
    """Only the ping-pong's server writes into its client's memory."""
    hello = {**HELLO, "tool": "diwarp-pingpong"}
    for memory, part in ((None, "stag"), (7, "stag"), ({}, "stag"), ({"stag": 1 << 32, "offset": 0}, "stag"),
                         ({"stag": 1}, "offset"), ({"stag": 1, "offset": -1}, "offset")):
        server, address = start_server("pingpong")
        row = ROW if memory is None else {**ROW, "memory": memory}
        answers_to(address, hello, row)
        check_sentence("pingpong", server.end(1), f"no usable .{part}")


if __name__ == "__main__":
    sys.exit(main())
