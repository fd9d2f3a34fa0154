#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A router whose far network carries smaller packets than the near one, which senders learn from
ICMP in the middle of a message; and an interface that cannot segment. Called with the name of one
case; --list names all."""
import errno
import json
import os
import socket
import struct
import sys

from exchange import (RATE, Layout, attempts, check_counters, finish, remote_options, send,
                      start_target)
from scene import DEVICE, Router, Scene, case, check, main

MIB = 1 << 20
UDP_SEGMENT = 103
NARROW = 1000  # bytes of a packet that the far network carries


def narrow(network):
    """The router's way to the second host, and the second host's own."""
    network.middle.command("ip", "link", "set", "side2", "mtu", str(NARROW))
    network.hosts[1].command("ip", "link", "set", DEVICE, "mtu", str(NARROW))


def check_learned(network):
    """The first host's kernel knows the path by now, which it can have from the router alone."""
    routes = network.hosts[0].command("ip", "route", "get", network.hosts[1].address)
    check(f"mtu {NARROW}" in routes, f"no ICMP came: {routes}")


def swallow_icmp(network):
    """The router says nothing of what it cannot forward: a black hole."""
    network.middle.command("nft", "\n".join((
        "add table ip hole", "add chain ip hole out { type filter hook output priority 0 ; }",
        "add rule ip hole out ip protocol icmp drop")))


def check_unlearned(network):
    routes = network.hosts[0].command("ip", "route", "get", network.hosts[1].address)
    check("mtu" not in routes, f"an ICMP message came: {routes}")


@case()
def records_lose_what_a_black_hole_swallows():
    """Datagrams longer than the far network carries are lost, and invalid in the map."""
    with Scene() as scene:
        network = Router(scene)
        narrow(network)
        swallow_icmp(network)
        layout = Layout([3000, 100], 8)
        sent, messages, end = send(scene, network, layout, "--op", "write-record",
                                   target_options=["--record-timeout", 300])
        check_unlearned(network)
        check(sent["counters"].get("tx_errors", 0) == 0, sent["counters"])
        check(not any(message["wrong"] for message in messages) and not end.changed, messages)
        valid = {length: {message["valid"] for message in messages if message["length"] == length}
                 for length in (3000, 100)}
        check(valid[100] == {100} and len(valid[3000]) == 1, messages)
        check(0 < valid[3000].pop() < NARROW, messages)


@case()
def rd_cuts_its_datagrams_shorter_in_a_black_hole():
    """Acknowledgements tell that only short ones get through: the sender is told, and all comes."""
    with Scene() as scene:
        network = Router(scene)
        narrow(network)
        swallow_icmp(network)
        layout = Layout([100, 3000], 4)
        target, ready = start_target(scene, network.hosts[1], layout.region, "--reliable",
                                     "--receive", 3000)
        source = scene.peer(network.hosts[0], "source", "--address", network.hosts[0].address,
                            "--reliable", *remote_options(ready),
                            *layout.options())
        sent = source.word("sent")
        source.end()
        messages, _ = finish(target)
        check_unlearned(network)
        check(sent["statuses"] == {"success": 4} and sent["in_order"], sent)
        # From 1,472 bytes to 1,200, which are too many as well, and to 548.
        check(sent["counters"].get("mtu_black_holes", 0) == 2, sent["counters"])
        check([message["length"] for message in messages] == [100, 3000, 100, 3000], messages)
        check(not any(message["wrong"] for message in messages), messages)
        told = [error for error in sent["errors"] if error["error"] == "mtu_black_hole"]
        check(len(told) == 2 and "1472 bytes" in told[0]["text"] and "548" in told[1]["text"], sent)


@case()
def rd_messages_of_a_chosen_segment_pass_a_black_hole():
    with Scene() as scene:
        network = Router(scene)
        narrow(network)
        swallow_icmp(network)
        layout = Layout([MIB // 4, 100], 6)
        _, messages, end = send(scene, network, layout, "--reliable", "--segment", NARROW - 28,
                                target_options=["--reliable", "--receive", MIB // 4])
        check_unlearned(network)
        check(len(messages) == layout.count and not any(m["wrong"] for m in messages), messages)
        check(not end.changed, "memory outside of the receives changed")


@case()
def rd_messages_come_whole_through_a_narrow_path():
    with Scene() as scene:
        network = Router(scene)
        narrow(network)
        layout = Layout([MIB, 3000, 100], 12)
        sent, messages, end = send(scene, network, layout, "--reliable", "--op", "mixed",
                                   target_options=["--reliable", "--receive", MIB])
        check_learned(network)
        check(len(messages) == layout.count, f"{len(messages)} messages came")
        for number, (message, (_, size)) in enumerate(zip(messages, layout.messages)):
            check(message["length"] == size and not message["wrong"], f"{number}: {message}")
        check(not end.changed, "memory outside of the records changed")
        check(sent["counters"].get("tx_errors", 0) > 0, sent["counters"])


@case()
def records_hold_what_came_through_a_narrow_path():
    """Datagrams sent before the router's word are lost, and none after it."""
    def attempt(number):
        with Scene() as scene:
            network = Router(scene)
            narrow(network)
            layout = Layout([MIB], 10)
            _, messages, end = send(scene, network, layout, "--op", "write-record", "--rate",
                                    RATE >> number, target_options=["--record-timeout", 500])
            check_learned(network)
            check_counters(end.counters)
            check(not any(message["wrong"] for message in messages) and not end.changed, "contents")
            valid = sum(message["valid"] for message in messages)
            print(f"{valid / (10 * MIB):.4f} are valid")
            check(9 * MIB <= valid < 10 * MIB, "the valid share")

    attempts(3, attempt)


@case()
def reads_come_whole_through_a_narrow_path():
    with Scene() as scene:
        network = Router(scene)
        network.middle.command("ip", "link", "set", "side1", "mtu", str(NARROW))
        network.hosts[0].command("ip", "link", "set", DEVICE, "mtu", str(NARROW))
        layout = Layout([MIB, 100], 4)
        target, ready = start_target(scene, network.hosts[1], layout.region, "--rate", RATE)
        reader = scene.peer(network.hosts[0], "reader", "--address", network.hosts[0].address,
                            "--retries", 5, *remote_options(ready), *layout.options())
        reads, end = finish(reader)
        check(not finish(target)[1].changed, "the target's memory changed")
        check(all(r["status"] == "success" and not r["wrong"] for r in reads), reads)
        check(not end.changed, "memory outside of the Reads changed")


@case(("send",), ("write",), ("read",))
def rc_messages_come_whole_through_a_narrow_path(operation):
    with Scene() as scene:
        network = Router(scene)
        narrow(network)
        path = os.path.join(scene.folder.name, "rows.json")
        server = scene.tool(network.hosts[1], "bandwidth", "--server",
                            f"{network.hosts[1].address}:0", "--timeout", 30)
        address = server.line().split("listening at ")[1].split()[0]
        scene.tool(network.hosts[0], "bandwidth", "--connect", address, "--verify", "--transport",
                   "rc", "--op", operation, "--size", "1M", "--iterations", 10, "--warmup", 0,
                   "--timeout", 30, "--json", path).end()
        with open(path) as file:
            row, = json.load(file)["rows"]
        check(row["received"] == 10 and row["wrong"] == 0, row)


def refuses_segments(network):
    """Whether the first host's kernel refuses (EIO) to segment on its way to the second."""
    plain = network.hosts[0].socket(socket.SOCK_DGRAM)
    try:
        plain.sendmsg([bytes(200)], [(socket.IPPROTO_UDP, UDP_SEGMENT, struct.pack("H", 100))], 0,
                      (network.hosts[1].address, 9))
        return False
    except OSError as error:
        check(error.errno == errno.EIO, error)
        return True
    finally:
        plain.close()


@case((True,), (False,))
def interface_without_checksum_offload(reliable):
    """There older kernels know UDP_SEGMENT, but refuse it when it is used."""
    with Scene() as scene:
        network = Router(scene)
        for host in network.hosts:
            host.command("ethtool", "-K", DEVICE, "tx", "off")
        layout = Layout([MIB // 4, 100], 8)
        options = ["--reliable"] if reliable else []
        sent, messages, end = send(scene, network, layout, *options, "--op", "send", "--rate", RATE,
                                   target_options=[*options, "--receive", MIB // 4])
        check(len(messages) == layout.count and not any(m["wrong"] for m in messages), messages)
        check_counters(end.counters)
        refused = sent["counters"].get("gso_refused", 0)
        check(refused == refuses_segments(network), f"{refused} links were refused segmentation")


if __name__ == "__main__":
    sys.exit(main())
