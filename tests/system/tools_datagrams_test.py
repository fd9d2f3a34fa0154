#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What diwarp-pingpong and diwarp-bandwidth measure over datagrams beyond UD Sends. Called with the
name of one case; --list names all."""
import json
import socket
import sys

from harness import (PATIENCE, PROGRAMS, case, check, check_sentence, main, need_ipv6, path, rows_of,
                     run, start_endless, start_server)
from rows import check_rows

OVER = [("ud", "write-record"), ("ud", "read"), ("rd", "send"), ("rd", "write-record"), ("rd", "read")]


@case(*[(transport, operation, program, family) for transport, operation in OVER
        for program in PROGRAMS for family in ("ipv4", "ipv6")])
def loopback(transport, operation, program, family):
    """Sizes 0 B to 1 MiB, every byte checked."""
    options = ["--loopback", "--transport", transport, "--op", operation, "--size", "0,1:1M",
               "--iterations", 30, "--verify", "--max-loss", 10, "--json", path("rows.json")]
    if family == "ipv6":
        need_ipv6()
        options.append("--ipv6")
    done = run(program, *options)
    sizes = [0] + [1 << i for i in range(21)]
    check_rows(rows_of("rows.json"), program, transport, sizes, 30, operation)
    lines = done.stdout.splitlines()
    check(len(lines) == len(sizes) + 1 and f" {operation} " in lines[1], done.stdout)


@case(*[(transport, operation, program) for transport, operation in OVER for program in PROGRAMS])
def server_and_client(transport, operation, program):
    """Without --verify; the server reports the same figures as the client."""
    server, address = start_server(program, "127.0.0.1:0", "--json", path("server.json"))
    run(program, "--connect", address, "--transport", transport, "--op", operation, "--iterations",
        300, "--size", "64,4K,100K", "--max-loss", 10, "--json", path("client.json"))
    server.end(0)
    check_rows(rows_of("client.json"), program, transport, [64, 4096, 102400], 300, operation)
    check(rows_of("client.json") == rows_of("server.json"), "the ends report different figures")


@case(*[(segment, transport) for segment in ("mtu", "jumbo", "128", "1472", "9000")
        for transport in ("ud", "rd")])
def segments(segment, transport):
    run("bandwidth", "--loopback", "--transport", transport, "--segment", segment, "--size", "10,100K",
        "--iterations", 30, "--verify", "--max-loss", 20, "--json", path("rows.json"))
    rows = rows_of("rows.json")
    check_rows(rows, "bandwidth", transport, [10, 102400], 30)
    check(all(row["segment"] == segment for row in rows), rows)


@case(*[(operation, window) for operation in ("write-record", "read") for window in (1, 5, 100)])
def window(operation, window):
    """Fewer and more at once than a queue pair lets Reads be outstanding (16)."""
    run("bandwidth", "--loopback", "--op", operation, "--iterations", 700, "--size", 100, "--window",
        window, "--verify", "--max-loss", 5, "--json", path("rows.json"))
    rows = rows_of("rows.json")
    check_rows(rows, "bandwidth", "ud", [100], 700, operation)
    check(rows[0]["window"] == window, rows)


def lossy(operation, *options):
    """A run whose messages are longer than the receive buffer that they come into."""
    run("bandwidth", "--loopback", "--op", operation, "--size", "1M", "--iterations", 30, "--warmup", 2,
        "--udp-buffer", "64K", "--segment", 1472, "--window", 2, "--max-loss", 100, "--json",
        path("rows.json"), *options)
    return rows_of("rows.json")[0]


@case(("verified",), ("unverified",))
def write_records_that_lose_datagrams_tell_what_is_valid(how):
    """The share of the bytes is more than that of the messages, and all that is valid is right."""
    row = lossy("write-record", *(["--verify"] if how == "verified" else []))
    check(row["partial"] > 0, f"nothing was lost: {row}")
    check(0 < row["valid_percent"] < 100, row)
    check(row["valid_bytes"] > row["received"] * row["size"], row)
    check(row["received"] + row["partial"] <= row["sent"] and row["wrong"] == 0, row)
    check(row["loss_percent"] > 100 - row["valid_percent"], row)


@case()
def reads_that_lose_datagrams_tell_what_is_valid():
    row = lossy("read", "--verify")
    check(row["received"] + row["partial"] == row["sent"] and row["wrong"] == 0, row)
    check(row["partial"] == 0 or row["valid_bytes"] > row["received"] * row["size"], row)


@case(("write-record",), ("read",))
def lost_messages_of_a_pingpong_do_not_end_it(operation):
    run("pingpong", "--loopback", "--op", operation, "--size", "1M", "--iterations", 10, "--warmup", 0,
        "--udp-buffer", "64K", "--segment", 1472, "--max-loss", 100, "--verify", "--timeout", 50,
        "--json", path("rows.json"))
    row = rows_of("rows.json")[0]
    check(row["op"] == operation and row["sent"] >= 10, row)


@case(*[(program,) for program in PROGRAMS])
def wrong_options(program):
    for options, parts in (
            (("--transport", "rc", "--op", "write-record"), ("--op write-record needs datagrams",)),
            (("--transport", "rd", "--op", "write"), ("--op write needs", "--transport rc")),
            (("--transport", "rd", "--op", "atomic"), ("--op atomic needs", "--transport rc")),
            (("--transport", "ur"), ("no transport .ur.", "ud, rc or rd")),
            (("--segment", "big"), ("--segment needs mtu, jumbo", "128 to 65507", "big")),
            (("--segment", "127"), ("--segment needs",)),
            (("--segment", "65508"), ("--segment needs",)),
            (("--segment", "-1"), ("--segment needs",)),
            (("--segment", "1e3"), ("--segment needs",)),
            (("--segment", "999999999999999999999"), ("--segment needs",)),
            (("--segment", ""), ("--segment needs",)),
            (("--segment", "mtu", "--transport", "rc"), ("--segment is of datagrams only",))):
        done = run(program, "--loopback", *options, status=1)
        check_sentence(program, done.stderr, *parts)
    done = run(program, "--server", "127.0.0.1:0", "--segment", "jumbo", status=1)
    check_sentence(program, done.stderr, "--segment is the client's choice")


@case(*[(program, transport, operation, victim) for program in PROGRAMS
        for transport, operation in OVER for victim in ("server", "client")])
def peer_killed(program, transport, operation, victim):
    server, client = start_endless(program, "--transport", transport, "--op", operation)
    dead, survivor = (server, client) if victim == "server" else (client, server)
    dead.kill()
    check_sentence(program, survivor.end(1), "127.0.0.1:", "ended in the middle of the run")


@case()
def unusable_memory_ends_the_run():
    hello = {"type": "hello", "tool": "diwarp-pingpong", "version": 3, "transport": "ud",
             "op": "write-record", "verify": False, "segment": "mtu", "rows": 1, "token": 7}
    for memory, part in ((None, "stag"), (7, "stag"), ({"stag": 1}, "offset")):
        server, address = start_server("pingpong")
        row = {"type": "row", "size": 64, "port": 9}
        if memory is not None:
            row["memory"] = memory
        host, port = address.rsplit(":", 1)
        with socket.create_connection((host, int(port))) as client:
            client.settimeout(PATIENCE)
            for word in (hello, row):
                client.sendall(json.dumps(word).encode() + b"\n")
            answers = b""
            while b'"error"' not in answers:
                chunk = client.recv(4096)
                check(chunk, f"{memory} gave {answers}")
                answers += chunk
        check_sentence("pingpong", server.end(1), f"no usable .{part}")


if __name__ == "__main__":
    sys.exit(main())
