#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is told, with cause and cure, of messages that get lost: closed ports, small buffers, a
device that cannot reach the peer; and that forged ICMP messages fail nothing. Called with the name
of one case; --list names all."""
import json
import os
import socket
import struct
import sys
import threading

from exchange import Layout, finish, remote_options, start_target
from scene import Router, Scene, case, check, main

IP = struct.Struct(">BBHHHBBH4s4s")


@case(("ud",), ("rd",))
def closed_port(transport):
    """The host that the datagrams come to says so."""
    with Scene() as scene:
        network = Router(scene)
        near, far = network.hosts
        plain = far.socket(socket.SOCK_DGRAM)
        plain.bind((far.address, 0))
        port = plain.getsockname()[1]
        plain.close()
        options = ["--reliable", "--peer-timeout", 1000] if transport == "rd" else []
        layout = Layout([100], 4)
        source = scene.peer(near, "source", "--address", near.address, *options, "--destination",
                            f"{far.address}:{port}", "--linger", 300, *layout.options())
        sent = source.word("sent")
        source.end()
        # What was posted has the fate that it has without ICMP.
        expected = "peer does not answer" if transport == "rd" else "success"
        check(sent["statuses"] == {expected: 4}, sent)
        check(sent["counters"].get("port_unreachable", 0) > 0, sent["counters"])
        check(sent["counters"].get("tx_errors", 0) == 0, sent["counters"])
        told = [error for error in sent["errors"] if error["error"] == "port_unreachable"]
        check(told and told[0]["peer"] == f"{far.address}:{port}", sent["errors"])
        check("start the peer" in told[0]["text"], told)


def port_unreachable(victim, sent_to, quoted):
    """An ICMP message about a datagram from `victim` to `sent_to`, as a router sends it."""
    datagram = struct.pack(">HHHH", victim[1], sent_to[1], 8 + len(quoted), 0) + quoted
    ip = IP.pack(0x45, 0, 20 + len(datagram), 0, 0, 64, socket.IPPROTO_UDP, 0,
                 socket.inet_aton(victim[0]), socket.inet_aton(sent_to[0]))
    body = ip + datagram
    body += bytes(len(body) % 2)
    message = struct.pack(">BBHI", 3, 3, 0, 0) + body
    total = sum(struct.unpack(f">{len(message) // 2}H", message))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack(">BBHI", 3, 3, total ^ 0xFFFF, 0) + body


@case(("ud",), ("rd",))
def forged_icmp(transport):
    """From a host that is not on the path it comes in floods, and every message arrives."""
    with Scene() as scene:
        network = Router(scene)
        near, far = network.hosts
        options = ["--reliable"] if transport == "rd" else []
        layout = Layout([3000, 100], 400)
        target, ready = start_target(scene, far, layout.region, *options, "--receive", 3000)
        host, port = ready["address"].rsplit(":", 1)
        source = scene.peer(near, "source", "--address", near.address, "--port", 4791, *options,
                            "--rate", 500_000, "--linger", 300, *remote_options(ready),
                            *layout.options())
        raw = network.middle.socket(socket.SOCK_RAW, protocol=socket.IPPROTO_ICMP)
        done = threading.Event()

        def flood():
            forgeries = [port_unreachable((near.address, 4791), (host, int(port)), quoted)
                         for quoted in (b"", b"\x20\0\0\0\1\2\3\4")]
            forgeries.append(port_unreachable((near.address, 4791), ("192.0.2.1", 9), b""))
            while not done.is_set():
                for forgery in forgeries:
                    raw.sendto(forgery, (near.address, 0))
                done.wait(0.0005)

        thread = threading.Thread(target=flood)
        thread.start()
        try:
            sent = source.word("sent")
        finally:
            done.set()
            thread.join()
            raw.close()
        source.end()
        messages, _ = finish(target)
        check(sent["statuses"] == {"success": 400} and sent["in_order"], sent)
        check(len(messages) == 400 and not any(m["wrong"] for m in messages), len(messages))
        counters = sent["counters"]
        check(counters.get("tx_errors", 0) == 0 and counters.get("gso_refused", 0) == 0, counters)
        check(counters.get("drop_icmp", 0) > 0, counters)  # they quote what was not sent
        check(counters.get("port_unreachable", 0) > 0, counters)  # too little to tell
        check(0 < len(sent["errors"]) <= 16, len(sent["errors"]))


def bandwidth(scene, network, *options, server_options=()):
    """(the client's rows, what it said on standard error, whether it failed)"""
    path = os.path.join(scene.folder.name, "rows.json")
    server = scene.tool(network.hosts[1], "bandwidth", "--server", f"{network.hosts[1].address}:0",
                        "--timeout", 20, *server_options)
    address = server.line().split("listening at ")[1].split()[0]
    client = scene.tool(network.hosts[0], "bandwidth", "--connect", address, "--timeout", 20,
                        "--json", path, *options)
    client.process.communicate(timeout=60)
    client.errors.seek(0)
    errors = client.errors.read()
    with open(path) as file:
        text = file.read()
    return json.loads(text)["rows"] if text else [], errors, client.process.returncode != 0


@case()
def small_receive_buffer():
    """It is the tool that says how many bytes there are, and what to do."""
    with Scene() as scene:
        network = Router(scene)
        rows, errors, failed = bandwidth(
            scene, network, "--transport", "ud", "--size", "60000", "--iterations", 500, "--warmup",
            0, "--window", 64, "--max-loss", 0, server_options=["--udp-buffer", 4096])
        check(failed and "got lost" in errors, errors)
        check("At the server: " in errors and "found no room in the receive buffer" in errors, errors)
        check("net.core.rmem_max" in errors and "--udp-buffer" in errors, errors)
        check(any("receive buffer" in hint for hint in rows[0]["hints"]), rows)
        check(rows[0]["lost"] > 0 and rows[0]["overflowed"] > 0, rows)


@case()
def loopback_device():
    """It is refused when something is posted, not when the peer has stayed silent."""
    with Scene() as scene:
        network = Router(scene)
        near, far = network.hosts
        layout = Layout([100], 4)
        source = scene.peer(near, "source", "--address", "127.0.0.1", "--destination",
                            f"{far.address}:4791", *layout.options())
        source.process.wait(timeout=60)
        source.errors.seek(0)
        errors = source.errors.read()
        check(source.process.returncode != 0, "it was not refused")
        check("A device on a loopback address reaches this host alone" in errors, errors)


@case()
def measured_loss_without_a_cause_has_no_hints():
    """Where nothing gets lost nothing is said of why."""
    with Scene() as scene:
        network = Router(scene)
        rows, errors, failed = bandwidth(scene, network, "--transport", "rd", "--size", "1000",
                                         "--iterations", 100, "--warmup", 0)
        check(not failed and "hints" not in rows[0], (rows, errors))


if __name__ == "__main__":
    sys.exit(main())
