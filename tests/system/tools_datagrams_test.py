#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What diwarp-pingpong and diwarp-bandwidth measure over datagrams beyond UD Sends. Called with the
name of one case; --list names all."""
import socket
import sys

from harness import (PROGRAMS, Process, answers_to, case, check, check_sentence, few, figures_of,
                     main, path, rows_of, run, start_endless, start_server, sweep)
from rows import check_rows, check_table

OVER = [("ud", "write-record"), ("ud", "read"), ("rd", "send"), ("rd", "write-record"), ("rd", "read")]


@case(*[(transport, operation, program, family) for transport, operation in OVER
        for program in PROGRAMS for family in ("ipv4", "ipv6")])
def loopback(transport, operation, program, family):
    """Sizes 0 B to 1 MiB, every byte checked."""
    options, sizes = sweep(family, least=0)
    done = run(program, "--loopback", "--transport", transport, "--op", operation, *options,
               "--iterations", few(program, transport), "--verify", "--max-loss", 100, "--json",
               path("rows.json"))
    check_rows(rows_of("rows.json"), program, transport, sizes, few(program, transport), operation)
    check_table(done.stdout, f"{transport} {operation}", len(sizes))


@case(*[(transport, operation, program) for transport, operation in OVER for program in PROGRAMS])
def server_and_client(transport, operation, program):
    """Without --verify; the server reports the same figures as the client."""
    server, address = start_server(program, "127.0.0.1:0", "--json", path("server.json"))
    run(program, "--connect", address, "--transport", transport, "--op", operation, "--iterations",
        50, "--size", "64,4K,100K", "--max-loss", 100, "--json", path("client.json"))
    server.end(0)
    check_rows(rows_of("client.json"), program, transport, [64, 4096, 102400], 50, operation)
    check(figures_of("client.json") == figures_of("server.json"), "the ends report different figures")


@case(*[(segment, transport) for segment in ("mtu", "jumbo", "128", "1472", "9000")
        for transport in ("ud", "rd")])
def segments(segment, transport):
    run("bandwidth", "--loopback", "--transport", transport, "--segment", segment, "--size", "10,100K",
        "--iterations", 30, "--verify", "--max-loss", 100, "--json", path("rows.json"))
    rows = rows_of("rows.json")
    check_rows(rows, "bandwidth", transport, [10, 102400], 30)
    check(all(row["segment"] == segment for row in rows), rows)


@case(*[(operation, window) for operation in ("write-record", "read") for window in (1, 5, 100)])
def window(operation, window):
    """Fewer and more at once than a queue pair lets Reads be outstanding (16)."""
    run("bandwidth", "--loopback", "--op", operation, "--iterations", 700, "--size", 100, "--window",
        window, "--verify", "--max-loss", 100, "--json", path("rows.json"))
    rows = rows_of("rows.json")
    check_rows(rows, "bandwidth", "ud", [100], 700, operation)
    check(rows[0]["window"] == window, rows)


def lossy(operation, *options):
    """A run whose messages are longer than the receive buffer that they come into."""
    run("bandwidth", "--loopback", "--op", operation, "--size", "1M", "--iterations", 30, "--warmup", 2,
        "--udp-buffer", "4K", "--local", "off", "--segment", 1472, "--window", 2, "--max-loss", 100,
        "--json", path("rows.json"), *options)
    return rows_of("rows.json")[0]


def check_gaps(row):
    """Each partial message has one or more, which are what is not valid of them."""
    gaps = row["gaps"]
    missing = (row["received"] + row["partial"]) * row["size"] - row["valid_bytes"]
    check(gaps["count"] >= row["partial"], row)
    check(abs(gaps["mean_bytes"] * gaps["count"] - missing) < 1, row)
    check(abs(gaps["per_partial"] * row["partial"] - gaps["count"]) < 0.01, row)
    check(gaps["mean_bytes"] <= gaps["largest_bytes"] <= row["size"], row)


@case(("send", "complete"), ("write-record", "per-segment"))
def what_sees_no_gaps_tells_none(operation, completion):
    options = ["--completion", completion] if operation == "write-record" else []
    run("bandwidth", "--loopback", "--op", operation, "--iterations", 30, "--max-loss", 100, "--json",
        path("rows.json"), *options)
    check("gaps" not in rows_of("rows.json")[0], rows_of("rows.json"))


def ping_with_losses(operation, *options):
    """Messages of many datagrams, of which hardly one comes whole."""
    run("pingpong", "--loopback", "--op", operation, "--size", "256K", "--segment", 1472, "--iterations", 3,
        "--warmup", 0, "--rate", "20M", "--max-loss", 100, "--timeout", 60, "--json", path("rows.json"),
        *options, environment={"DIWARP_IMPAIR": "drop=0.05,seed=3"})
    return rows_of("rows.json")[0]


@case(("write-record", "half_rtt_us"), ("read", "operation_us"))
def a_message_that_comes_in_part_has_a_time(operation, times):
    row = ping_with_losses(operation, "--partial")
    check(row["partial"] > 0 and row["rate"] == 20000000, row)
    check(row[times]["max"] > 0, row)


@case()
def partial_is_refused_where_nothing_comes_in_part():
    for options in (("--op", "send"), ("--transport", "rd", "--op", "write-record")):
        done = run("pingpong", "--loopback", *options, "--partial", status=1)
        check_sentence("pingpong", done.stderr, "Only Write-Records and Reads over UD come in part")
    done = run("pingpong", "--loopback", "--op", "read", "--partial", "--verify", status=1)
    check_sentence("pingpong", done.stderr, "--verify checks whole messages")


@case(("verified",), ("unverified",))
def write_records_that_lose_datagrams_tell_what_is_valid(how):
    """The share of the bytes is more than that of the messages, and all that is valid is right."""
    row = lossy("write-record", *(["--verify"] if how == "verified" else []))
    check(row["partial"] > 0, f"nothing was lost: {row}")
    check(0 < row["valid_percent"] < 100, row)
    check(row["valid_bytes"] > row["received"] * row["size"], row)
    check(row["received"] + row["partial"] <= row["sent"], row)
    check_gaps(row)
    check(row["loss_percent"] > 100 - row["valid_percent"], row)


@case()
def reads_that_lose_datagrams_tell_what_is_valid():
    row = lossy("read", "--verify")
    check(row["received"] + row["partial"] == row["sent"] and row["wrong"] == 0, row)
    check(row["partial"] > 0, f"nothing was lost: {row}")
    check_gaps(row)
    check(row["valid_bytes"] > row["received"] * row["size"], row)


def check_group_rows(rows, operation, sizes, iterations, receivers):
    hosts = [f"127.0.0.{i + 2}" for i in range(receivers)]
    check_rows(rows, "bandwidth", "ud", [size for size in sizes for _ in hosts], iterations, operation)
    check([row["receiver"] for row in rows] == hosts * len(sizes), rows)


@case(*[(operation, group) for operation in ("send", "write-record")
        for group in ("239.192.77.1", "127.255.255.255")])
def group_flow(operation, group):
    """Every receiver has a row of its own, with every byte checked."""
    run("bandwidth", "--loopback", "--op", operation, "--receivers", 3, "--group", group, "--size",
        "0,1,4K,100K", "--iterations", 50, "--segment", 1472, "--verify", "--max-loss", 100, "--json",
        path("rows.json"))
    check_group_rows(rows_of("rows.json"), operation, [0, 1, 4096, 102400], 50, 3)


@case()
def group_pingpong():
    run("pingpong", "--loopback", "--receivers", 3, "--size", "0,1,10K", "--iterations", 30, "--warmup",
        2, "--verify", "--max-loss", 100, "--json", path("rows.json"))
    rows = rows_of("rows.json")
    check_rows(rows, "pingpong", "ud", [0, 1, 10240], 30)
    check(all(row["receivers"] == 3 for row in rows), rows)


@case()
def group_of_servers():
    """Each server tells its own share."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    servers = [start_server("bandwidth", f"127.0.0.{i}:0", "--json", path(f"server{i}.json"))
               for i in (2, 3)]
    run("bandwidth", "--connect", ",".join(address for _, address in servers), "--receivers", 2,
        "--group", f"239.192.77.2:{port}", "--op", "write-record", "--size", "2K", "--iterations", 100,
        "--max-loss", 100, "--json", path("client.json"))
    rows = rows_of("client.json")
    check_group_rows(rows, "write-record", [2048], 100, 2)
    for i, (server, _) in enumerate(servers):
        server.end(0)
        check(rows_of(f"server{i + 2}.json") == [rows[i]], "the ends report different figures")


@case()
def server_that_dies_ends_a_run_with_a_group():
    servers = [start_server("bandwidth", f"127.0.0.{i}:0") for i in (2, 3)]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    client = Process("bandwidth", "--connect", ",".join(address for _, address in servers), "--group",
                     f"239.192.77.3:{port}", "--iterations", 1_000_000_000, "--max-loss", 100)
    for server, _ in servers:
        server.wait_for("serving")
    servers[1][0].kill()
    check_sentence("bandwidth", client.end(1), "127.0.0.3:", "ended in the middle of the run")
    servers[0][0].end(1)


@case(*[(program,) for program in PROGRAMS])
def wrong_groups(program):
    loop = ("--loopback", "--receivers", 2)
    for options, parts in (
            ((*loop, "--transport", "rc"), ("--transport ud only",)),
            ((*loop, "--transport", "rd"), ("--transport ud only",)),
            ((*loop, "--op", "read"), ("--op read cannot go to a group", "send")),
            (("--loopback", "--group", "239.1.1.1"), ("how many receivers", "--receivers")),
            (("--loopback", "--receivers", 0), ("--receivers needs a number from 1 to 64",)),
            (("--loopback", "--receivers", 65), ("--receivers needs a number from 1 to 64",)),
            ((*loop, "--ipv6"), ("leave --ipv6",)),
            ((*loop, "--address", "127.0.0.9"), ("--address",)),
            ((*loop, "--group", "everyone"), ("everyone", "not an address")),
            ((*loop, "--group", "ff02::1"), ("--group needs", "ff02::1")),
            ((*loop, "--group", "127.0.0.7"), ("127.0.0.7 is no group",)),
            (("--connect", "127.0.0.1:1,127.0.0.2:1", "--receivers", 3), ("says 3", "names 2")),
            (("--connect", "127.0.0.1:1,0.0.0.0:1"), ("--connect needs", "0.0.0.0"))):
        done = run(program, *options, status=1)
        check_sentence(program, done.stderr, *parts)
    done = run(program, "--server", "127.0.0.1:0", "--receivers", 2, status=1)
    check_sentence(program, done.stderr, "--receivers is the client's choice")
    if program == "pingpong":
        done = run(program, *loop, "--op", "write-record", status=1)
        check_sentence(program, done.stderr, "--op write-record cannot go to a group: choose send")


@case()
def unusable_groups_end_the_run():
    hello = {"type": "hello", "tool": "diwarp-pingpong", "version": 8, "transport": "ud", "op": "send",
             "verify": False, "segment": "mtu", "completion": "complete",
             "streams": 1, "bidirectional": False, "rows": 1, "token": 7, "congestion": "bbr"}
    group = {"address": "239.1.1.1", "port": 4000, "stag": 1 << 20}
    for wrong, part in ((7, "address"), ({}, "address"), ({**group, "address": "x"}, "address"),
                        ({**group, "port": 0}, "port"), ({**group, "stag": 3}, "stag"),
                        ({**group, "address": "127.0.0.1"}, "127.0.0.1 is no group")):
        server, address = start_server("pingpong")
        answers_to(address, hello, {"type": "row", "size": 64, "rate": 0, "partial": False, "port": 9,
                                    "group": wrong})
        check_sentence("pingpong", server.end(1), part)


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
            (("--segment", "mtu", "--transport", "rc"), ("--segment is of datagrams only",)),
            (("--zerocopy", "64K", "--transport", "rd"), ("--zerocopy is of RC only",))):
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
    hello = {"type": "hello", "tool": "diwarp-pingpong", "version": 8, "transport": "ud",
             "op": "write-record", "verify": False, "segment": "mtu", "completion": "complete",
             "streams": 1, "bidirectional": False, "rows": 1, "token": 7, "congestion": "bbr"}
    for memory, part in ((None, "stag"), (7, "stag"), ({"stag": 1}, "offset")):
        server, address = start_server("pingpong")
        row = {"type": "row", "size": 64, "rate": 0, "partial": False, "port": 9}
        if memory is not None:
            row["memory"] = memory
        answers_to(address, hello, row)
        check_sentence("pingpong", server.end(1), f"no usable .{part}")


if __name__ == "__main__":
    sys.exit(main())
