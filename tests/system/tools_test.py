#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command line tools as a user runs them. Called with the name of one case; --list names all."""
import csv
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

from harness import (ENDLESS, PATIENCE, PROGRAMS, Process, case, check,
                     check_sentence, children_of, few, figures_of, main, path, rows_of, run,
                     start_endless, start_server, sweep, tool, wait_until, where)
from rows import check_bandwidth, check_processor, check_rows, check_table

TRANSPORTS = ("ud", "rc")
TOOLS = ("pingpong", "bandwidth", "info", "compare", "takeover", "rping", "memory", "stat")
VERSION = r"\d+\.\d+\.\d+"


@case(*[(program, transport, family) for program in PROGRAMS for transport in TRANSPORTS
        for family in ("ipv4", "ipv6")])
def loopback(program, transport, family):
    """Sizes 1 B to 1 MiB, every byte checked on arrival. Over UD a busy host may lose messages."""
    options, sizes = sweep(family)
    done = run(program, "--loopback", "--transport", transport, *options, "--iterations",
               few(program, transport), "--verify", "--max-loss", 100, "--json", path("rows.json"))
    check_rows(rows_of("rows.json"), program, transport, sizes, few(program, transport))
    check_table(done.stdout, transport, len(sizes))


@case(*[(program, transport) for program in PROGRAMS for transport in TRANSPORTS])
def empty_messages(program, transport):
    run(program, "--loopback", "--transport", transport, "--size", 0, "--iterations", 50,
        "--max-loss", 100, "--verify", "--json", path("rows.json"))
    check_rows(rows_of("rows.json"), program, transport, [0], 50)


@case(*[(program, transport) for program in PROGRAMS for transport in TRANSPORTS])
def server_and_client(program, transport):
    """Two processes; the server reports the same figures as the client."""
    server, address = start_server(program, "127.0.0.1:0", "--json", path("server.json"))
    run(program, "--connect", address, "--transport", transport, "--size", "64,4K", "--iterations",
        50, "--max-loss", 100, "--json", path("client.json"))
    server.end(0)
    check_rows(rows_of("client.json"), program, transport, [64, 4096], 50)
    check(figures_of("client.json") == figures_of("server.json"), "the ends report different figures")


@case(*[(transport,) for transport in TRANSPORTS])
def server_on_all_addresses(transport):
    server, address = start_server("pingpong", "0.0.0.0:0")
    port = address.rsplit(":", 1)[1]
    run("pingpong", "--connect", f"127.0.0.1:{port}", "--transport", transport, "--iterations", 50,
        "--max-loss", 100)
    server.end(0)


@case()
def csv_has_a_title_and_the_rows():
    run("pingpong", "--loopback", "--transport", "rc", "--size", "1,2", "--iterations", 50, "--csv",
        path("rows.csv"))
    with open(path("rows.csv"), newline="") as file:
        rows = list(csv.DictReader(file))
    check([row["size"] for row in rows] == ["1", "2"], rows)
    check(all(float(row["half_rtt_us_p50"]) > 0 for row in rows), rows)


@case()
def json_goes_to_standard_output():
    done = run("bandwidth", "--loopback", "--transport", "rc", "--size", 64, "--iterations", 50,
               "--json", "-")
    values = json.loads(done.stdout)
    check(values["tool"] == "diwarp-bandwidth" and re.fullmatch(VERSION, values["version"]), values)
    check_rows(values["rows"], "bandwidth", "rc", [64], 50)


@case(*[(program,) for program in PROGRAMS])
def wrong_options(program):
    loop = ("--loopback",)
    for options, part in (
            ((), "say which end"),
            (("--loopback", "--server"), "say which end"),
            (("--connect",), "--connect"),
            (("--connect", "nowhere"), "not an address"),
            (("--connect", "127.0.0.1:99999"), "not an address"),
            (("--connect", "0.0.0.0:1"), "needs the address"),
            (("--server", "1.2.3"), "not an address"),
            (("--server", "127.0.0.1:0", "--size", "64"), "client's choice"),
            (loop + ("--transport", "xx"), "ud, rc or rd"),
            (loop + ("--op", "teleport"), "no operation"),
            (loop + ("--size", "big"), "not a size"),
            (loop + ("--size", "8:4"), "not a range"),
            (loop + ("--size", "2G"), "too long"),
            (loop + ("--max-loss", "lots"), "not a share"),
            (loop + ("--iterations", "-1"), "iterations"),
            (loop + ("--iterations", "some"), "iterations"),
            (loop + ("--iterations", 0), "iterations"),
            (loop + ("--timeout", "0"), "--timeout"),
            (loop + ("--cpu", "4000"), "processor 4000"),
            (loop + ("--gso", "maybe"), "--gso is on or off"),
            (loop + ("--gro",), "--gro"),
            (loop + ("--gro", "OFF"), "--gro is on or off"),
            (loop + ("--completion", "complete"), "Write-Records only"),
            (loop + ("--op", "write-record", "--completion", "never"), "per-segment, not never"),
            (("--server", "127.0.0.1:0", "--completion", "complete"), "client's choice"),
            (loop + ("--address", "not-here"), "not an address"),
            (loop + ("--transport", "rd", "--size", "64,128", "--transmissions", path("sent.csv")), "one --size"),
            (loop + ("--json", path("no/such/folder.json")), "cannot write"),
            (loop + ("--nonsense",), "nonsense")):
        done = run(program, *options, status=1)
        check_sentence(program, done.stderr, part)


@case()
def wrong_flow_options():
    for options, part in ((("--window", 5000), "--window"), (("--window", 0), "--window"),
                          (("--rate", "fast"), "not a rate"),
                          (("--rate", "1M", "--transport", "rc"), "datagrams only"),
                          (("--window", 4096, "--size", "1G"), "too large"),
                          (("--window", 4, "--size", "1G", "--streams", 2), "2 times, is too large"),
                          (("--streams", 0), "--streams"), (("--streams", 65), "--streams"),
                          (("--streams", "many"), "--streams"),
                          (("--streams", 4, "--iterations", 3), "one message for each"),
                          (("--streams", 2, "--receivers", 2), "one queue pair, one way"),
                          (("--bidirectional", "--receivers", 2), "one queue pair, one way"),
                          (("--clients", 0), "--clients"), (("--clients", 65), "--clients"),
                          (("--transport", "rd", "--clients", 2, "--transmissions", path("sent.csv")), "one client"),
                          (("--clients", 2, "--receivers", 2), "one client each")):
        done = run("bandwidth", "--loopback", *options, status=1)
        check_sentence("bandwidth", done.stderr, part)


@case()
def rows_of_rd_alone_name_a_congestion_control():
    for transport, congestion in (("rd", "bbr"), ("ud", None), ("rc", None)):
        run("bandwidth", "--loopback", "--transport", transport, "--size", 64, "--iterations", 50, "--json",
            path("rows.json"))
        rows = rows_of("rows.json")
        check([row.get("congestion") for row in rows] == [congestion], rows)


@case(*[(name,) for name in TOOLS])
def help_is_no_failure(name):
    text = run(name, "--help").stdout
    for option in ("--help", "--version", "--json"):
        check(option in text, f"no {option} in {text}")


@case(*[(name,) for name in (*TOOLS, "switch")])
def help_fits_a_terminal(name):
    """But for words that are longer, as the names of all operations are."""
    for line in run(name, "--help").stdout.splitlines():
        check(len(line) <= 80 or len(line.split()) <= 2, line)


@case()
def switch_refuses_what_it_cannot_do():
    for options, part in ((("--loss", "2"), "--loss"), (("--burst", "0.5"), "--burst"),
                          (("--port", "nowhere"), "DEVICE=NAMESPACE_FILE, not nowhere"),
                          (("--log", path("no/such/folder/log")), "cannot be written"),
                          ((), "--port is required")):
        ports = () if "nowhere" in options or not options else ("--port", "a=/none")
        check_sentence("switch", run("switch", *ports, *options, status=1).stderr, part)
    check(run("switch", "--version").stdout.startswith("diwarp-switch "), "no version")


def check_port_is_refused(port, *parts, before=(), user=None):
    done = subprocess.run([*before, tool("switch"), "--port", port], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=PATIENCE, user=user)
    check(done.returncode == 1, done)
    check_sentence("switch", done.stderr, *parts)


@case()
def switch_names_a_port_that_it_cannot_have():
    """With the cause and a cure, before and after it enters the namespace."""
    check_port_is_refused("abcdefghijklmnop=/none", "1 to 15 characters", "abcdefghijklmnop")
    check_port_is_refused("=/none", "1 to 15 characters")
    check_port_is_refused("t0=/none", "/none cannot be opened", "No such file", "/run/netns/NAME")
    alone = ("unshare", "--user", "--map-root-user", "--net")
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode != 0:
        raise Skipped("no network namespaces here")
    check_port_is_refused("t0=/etc/passwd", "/etc/passwd is no network namespace", before=alone)
    if not os.path.exists("/dev/net/tun"):
        raise Skipped("no /dev/net/tun here")
    own = "/proc/self/ns/net"
    check_port_is_refused(f"lo={own}", f"{own} has a device lo already", "another name", before=alone)
    check_port_is_refused(f"a/b={own}", "No device can be called .a/b.", before=alone)


@case()
def switch_names_a_namespace_that_it_may_not_enter():
    nobody = 65534 if os.geteuid() == 0 else None
    try:
        check_port_is_refused("t0=/proc/self/ns/net", "/proc/self/ns/net may not be entered", "be root",
                              user=nobody)
    except PermissionError:
        raise Skipped("other users cannot run the tools of this build")


@case(*[(name,) for name in TOOLS])
def version_of(name):
    text = run(name, "--version").stdout
    check(re.fullmatch(rf"diwarp-{name} {VERSION}\n", text), text)


@case(("alone",), ("dash",), ("file",))
def json_of_info(where_to):
    """--json is the same option in all tools."""
    options = {"alone": ("--json",), "dash": ("--json", "-"), "file": ("--json", path("info.json"))}
    text = run("info", *options[where_to]).stdout
    if where_to == "file":
        check("Devices" in text, text)
        with open(path("info.json")) as file:
            text = file.read()
    check(json.loads(text)["tool"] == "diwarp-info", text)


@case()
def announcements_are_no_part_of_json():
    server = Process("pingpong", "--server", "127.0.0.1:0", "--json")
    wait_until(lambda: "listening at" in server.errors(), "the server does not listen")
    address = re.search(r"listening at (\S+)", server.errors()).group(1)
    run("pingpong", "--connect", address, "--transport", "rc", "--iterations", 20)
    server.end(0)
    check_rows(json.loads(server.output)["rows"], "pingpong", "rc", [64], 20)


@case(("text",), ("json",))
def rping(kind):
    server = Process("rping", "--server", "--address", "127.0.0.1", "--port", 0, "--count", 20)
    address, port = server.wait_for(r"listening at (\S+):(\d+)\n").groups()
    options = ("--json",) if kind == "json" else ()
    done = run("rping", "--client", "--address", address, "--port", port, "--count", 20, *options)
    server.end(0)
    if kind == "json":
        row, = json.loads(done.stdout)["rows"]
        check((row["rounds"], row["size"], row["verified"]) == (20, 64, False), row)
        check_processor(row, ("client",))
    for output in (server.output, *([done.stdout] if kind == "text" else [])):
        check(re.search(r"^20 rounds of 64 bytes$", output, re.MULTILINE), output)


@case(*[(program,) for program in PROGRAMS])
def port_in_use(program):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = run(program, "--server", f"127.0.0.1:{port}", status=1)
    check_sentence(program, done.stderr, f"port {port}", "in use")


@case()
def address_of_another_host():
    done = run("pingpong", "--server", "192.0.2.1:0", status=1)
    check_sentence("pingpong", done.stderr, "192.0.2.1", "not an address of this host")


@case(*[(program,) for program in PROGRAMS])
def no_one_listens(program):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    done = run(program, "--connect", f"127.0.0.1:{port}", status=1)
    check_sentence(program, done.stderr, "no one listens", str(port))


@case(("garbage",), ("json",), ("endless",), ("closing",), ("silent",))
def server_that_is_not_diwarp(kind):
    def serve(listener):
        peer, _ = listener.accept()
        with peer:
            peer.settimeout(PATIENCE)
            try:
                if kind != "closing":
                    peer.recv(4096)
                if kind == "garbage":
                    peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                if kind == "json":
                    peer.sendall(b'{"type": 7}\n')
                while kind == "endless":
                    peer.sendall(b"x" * 4096)
                if kind != "closing":
                    peer.recv(4096)
            except OSError:
                pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        port = listener.getsockname()[1]
        done = run("pingpong", "--connect", f"127.0.0.1:{port}", "--timeout", 1, status=1)
    told = "nothing came from it within 1 s" if kind == "silent" else "does not speak"
    check_sentence("pingpong", done.stderr, str(port), told)
    thread.join(PATIENCE)


@case()
def strangers_at_the_server_are_refused_and_it_goes_on():
    server, address = start_server("pingpong", "127.0.0.1:0")
    host, port = address.rsplit(":", 1)
    for words in (b"GET / HTTP/1.0\r\n\r\n", b"", b'{"type": "hello"}\n', b"[" * 100000 + b"\n",
                  b'{"type": "hello", "tool": "diwarp-pingpong", "version": 99}\n'):
        with socket.create_connection((host, int(port))) as stranger:
            try:
                stranger.sendall(words)
                stranger.shutdown(socket.SHUT_WR)
                stranger.settimeout(PATIENCE)
                while stranger.recv(4096):
                    pass
            except OSError:
                pass
    run("pingpong", "--connect", address, "--transport", "rc", "--iterations", 20)
    refusals = server.end(0).splitlines()
    check(len(refusals) == 5 and all("refused a peer" in line for line in refusals), refusals)


@case()
def unusable_rows_end_the_run():
    hello = {"type": "hello", "tool": "diwarp-bandwidth", "version": 8, "transport": "ud",
             "op": "send", "verify": False, "segment": "mtu", "completion": "complete", "streams": 1,
             "bidirectional": False, "rows": 1, "token": 7, "congestion": "bbr"}
    row = {"type": "row", "size": 64, "window": 8, "rate": 0, "iterations": 10, "warmup": 0, "port": 9}
    for name, value in (("size", -5), ("size", 1 << 40), ("window", 0), ("window", 1 << 20),
                        ("iterations", "x"), ("port", 0), ("port", 70000), ("rate", None)):
        server, address = start_server("bandwidth", "127.0.0.1:0")
        host, port = address.rsplit(":", 1)
        with socket.create_connection((host, int(port))) as client:
            client.settimeout(PATIENCE)
            for word in (hello, {**row, name: value}):
                client.sendall(json.dumps(word).encode() + b"\n")
            answers = b""
            while b'"error"' not in answers:
                chunk = client.recv(4096)
                check(chunk, f"{name}: {value} gave {answers}")
                answers += chunk
        check_sentence("bandwidth", server.end(1), f"no usable .{name}")


@case()
def another_tool_is_refused():
    server, address = start_server("bandwidth", "127.0.0.1:0")
    done = run("pingpong", "--connect", address, status=1)
    check_sentence("pingpong", done.stderr, "diwarp-bandwidth", "both ends must be the same")
    run("bandwidth", "--connect", address, "--transport", "rc", "--iterations", 20)
    server.end(0)


@case(*[(program, transport, victim) for program in PROGRAMS for transport in TRANSPORTS
        for victim in ("server", "client")])
def peer_killed(program, transport, victim):
    server, client = start_endless(program, "--transport", transport)
    dead, survivor = (server, client) if victim == "server" else (client, server)
    dead.kill()
    check_sentence(program, survivor.end(1), "127.0.0.1:", "ended in the middle of the run")


@case(*[(transport,) for transport in TRANSPORTS])
def peer_killed_amid_a_large_message(transport):
    server, client = start_endless("bandwidth", "--transport", transport, "--size", 64 << 20)
    server.kill()
    check_sentence("bandwidth", client.end(1), "127.0.0.1:", "ended in the middle of the run")


def start_endless_loopback(program, transport):
    process = Process(program, "--loopback", "--transport", transport, "--iterations",
                      ENDLESS[program], "--max-loss", 100)
    pid = process.process.pid
    wait_until(lambda: children_of(pid), "no second process")
    child = children_of(pid)[0]
    # Both ends have their device once more than one thread runs, and the run begins.
    wait_until(lambda: len(os.listdir(f"/proc/{pid}/task")) > 1, "no RNIC thread")
    time.sleep(0.2)
    return process, child


@case(*[(program, transport) for program in PROGRAMS for transport in TRANSPORTS])
def child_of_loopback_killed(program, transport):
    process, child = start_endless_loopback(program, transport)
    os.kill(child, signal.SIGKILL)
    check_sentence(program, process.end(1), "ended in the middle of the run")


@case(*[(program, number) for program in PROGRAMS for number in ("SIGINT", "SIGTERM")])
def interrupted(program, number):
    process, child = start_endless_loopback(program, "ud")
    process.process.send_signal(getattr(signal, number))
    check_sentence(program, process.end(128 + getattr(signal, number)), "interrupted")
    wait_until(lambda: not os.path.exists(f"/proc/{child}"), "the child survives")


@case()
def parent_of_loopback_killed_ends_the_child():
    process, child = start_endless_loopback("pingpong", "ud")
    process.kill()

    def ended():
        try:
            with open(f"/proc/{child}/stat") as file:
                return file.read().rsplit(")", 1)[1].split()[0] == "Z"
        except OSError:
            return True
    wait_until(ended, "the child survives")


@case()
def interrupted_server_ends_the_client():
    server, client = start_endless("bandwidth", "--transport", "rc")
    server.process.send_signal(signal.SIGINT)
    check_sentence("bandwidth", server.end(130), "interrupted")
    check_sentence("bandwidth", client.end(1), "stopped: interrupted")


@case()
def server_waits_no_longer_than_told():
    done = run("pingpong", "--server", "127.0.0.1:0", "--timeout", "0.2", status=1)
    check_sentence("pingpong", done.stderr, "no peer came")


@case()
def rate_paces_the_sender():
    """200 messages of 10 KB at 4 MB/s take at least 0.4 s, whatever else goes on."""
    run("bandwidth", "--loopback", "--transport", "ud", "--size", 10000, "--iterations", 200,
        "--warmup", 0, "--rate", "4M", "--max-loss", 100, "--json", path("rows.json"))
    row = rows_of("rows.json")[0]
    check_bandwidth(row)
    check(row["mb_per_s"] < 4.4, f"faster than the rate: {row}")


@case()
def json_goes_to_a_socket():
    """Standard output need not be a file that can be opened by a name."""
    here, there = socket.socketpair()
    with here, there:
        done = subprocess.run([tool("pingpong"), "--loopback", "--size", "64", "--iterations", "10",
                               "--json", "-"], stdin=subprocess.DEVNULL, stdout=there,
                              stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
        check(done.returncode == 0, f"status {done.returncode}: {done.stderr}")
        there.close()
        rows = json.loads(here.makefile().read())["rows"]
    check(len(rows) == 1 and rows[0]["size"] == 64, f"rows: {rows}")


@case()
def output_that_cannot_be_written():
    with open("/dev/full", "wb") as full:
        done = subprocess.run([tool("info")], stdout=full, stderr=subprocess.PIPE, text=True,
                              timeout=PATIENCE)
    check(done.returncode == 1, f"a full disk: status {done.returncode}")
    check_sentence("info", done.stderr, "Standard output cannot be written", "space")
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as broken:
        done = subprocess.run([tool("info")], stdout=broken, stderr=subprocess.PIPE, text=True,
                              timeout=PATIENCE)
    check(done.returncode == 128 + signal.SIGPIPE, f"nobody reads: status {done.returncode}")


@case()
def info():
    text = run("info", "--counters").stdout
    for word in ("127.0.0.1", "Can", "immediate data", "Limits", "Backends", "CRC32C", "rx_overflow", "drop_crc"):
        check(word in text, f"{word} is not in {text}")
    check(all(len(line) <= 80 for line in text.splitlines()), text)
    values = json.loads(run("info", "--json").stdout)
    check(any(device["address"] == "127.0.0.1" and device["usable"] for device in values["devices"]),
          values)
    check(values["limits"]["message"] == 1 << 30, values)
    check("atomics" in values["capabilities"] and "datagrams" in values["capabilities"], values)
    check("rx_overflow" in values["counters"], values)


@case(*[(transport,) for transport in TRANSPORTS])
def takeover(transport):
    """Bounded loosely: the host may be busy. Without the takeover nothing would arrive at all."""
    done = run("takeover", "--transport", transport, "--rounds", 200, "--json")
    values, = json.loads(done.stdout)["rows"]
    check_processor(values)
    delay = values["delay_us"]
    check(0 < delay["min"] <= delay["p50"] <= delay["max"], values)
    check(delay["p50"] < 20_000, values)
    check(values["lost"] < 20, values)


if __name__ == "__main__":
    sys.exit(main())
