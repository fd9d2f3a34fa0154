#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The measuring tools between hosts whose network loses packets. Called with the name of one case;
--list names all."""
import json
import os
import sys

from exchange import RATE, attempts
from scene import Router, Scene, Switch, case, check, main

LOSS = 0.01
COUNT = 40


def start_servers(scene, hosts, name="bandwidth"):
    """diwarp-NAME on each host; their addresses."""
    servers = [scene.tool(host, name, "--server", f"{host.address}:0", "--timeout", 30)
               for host in hosts]
    return ",".join(server.line().split("listening at ")[1].split()[0] for server in servers)


def measure(scene, network, *options):
    """The rows of a run to all hosts but the first."""
    path = os.path.join(scene.folder.name, "rows.json")
    servers = start_servers(scene, network.hosts[1:])
    scene.tool(network.hosts[0], "bandwidth", "--connect", servers, "--verify", "--rate", RATE // 2,
               "--iterations", COUNT, "--warmup", 0, "--window", 16, "--max-loss", 100,
               "--timeout", 30, "--json", path, *options).end()
    with open(path) as file:
        rows = json.load(file)["rows"]
    for row in rows:
        print({name: row[name] for name in ("received", "lost", "valid_percent", "overflowed")})
        check(row["sent"] == COUNT and row["wrong"] == 0, row)
    return rows


def check_share(row, least):
    """Of 40 messages of 256 KiB, 7,360 datagrams: six standard deviations are 0.7 %."""
    check(least <= row["valid_percent"] <= 99.7, row)


@case()
def bandwidth_tells_the_valid_share():
    def attempt(_):
        with Scene() as scene:
            row, = measure(scene, Switch(scene, loss=LOSS), "--op", "write-record", "--size",
                           "256K")
            check_share(row, 98.3)

    attempts(3, attempt)


@case(("write-record",), ("read",))
def lost_messages_of_a_pingpong_do_not_end_it(operation):
    """Messages of 14 datagrams: nearly every second one is lost."""
    with Scene() as scene:
        network = Router(scene)
        path = os.path.join(scene.folder.name, "rows.json")
        server = start_servers(scene, network.hosts[1:], "pingpong")
        network.drop(40)
        scene.tool(network.hosts[0], "pingpong", "--connect", server, "--op", operation, "--size",
                   "20K", "--segment", 1472, "--iterations", 20, "--warmup", 0, "--max-loss", 100,
                   "--verify", "--timeout", 30, "--json", path).end()
        with open(path) as file:
            row, = json.load(file)["rows"]
        check(row["op"] == operation and row["sent"] >= 20 and row["lost"] > 0, row)


@case()
def bandwidth_over_rd_loses_nothing():
    with Scene() as scene:
        row, = measure(scene, Switch(scene, loss=LOSS), "--transport", "rd", "--size", "16K")
        check(row["received"] == COUNT and row["valid_percent"] == 100, row)


@case()
def bandwidth_tells_the_valid_share_of_each_receiver():
    with Scene() as scene:
        rows = measure(scene, Switch(scene, 4, loss=LOSS), "--op", "write-record", "--size",
                       "256K", "--receivers", 3)
        check(len({row["receiver"] for row in rows}) == 3, rows)
        for row in rows:
            check_share(row, 70)  # four programs poll: one that has to wait lets records time out


@case()
def bandwidth_over_rc_without_copying_is_whole():
    """Ethernet's segments: a call has many short pieces between what is not copied."""
    with Scene() as scene:
        network = Router(scene)
        path = os.path.join(scene.folder.name, "rows.json")
        for op in ("write", "send"):
            server = start_servers(scene, network.hosts[1:])
            scene.tool(network.hosts[0], "bandwidth", "--connect", server, "--verify",
                       "--transport", "rc", "--op", op, "--size", "4K,100K,1M", "--iterations",
                       COUNT, "--warmup", 0, "--zerocopy", "4K", "--timeout", 30, "--json",
                       path).end()
            with open(path) as file:
                rows = json.load(file)["rows"]
            check(len(rows) == 3, rows)
            for row in rows:
                check(row["received"] == COUNT and row["wrong"] == 0, row)
                check(row["zerocopy_sends"] > 0, row)


if __name__ == "__main__":
    sys.exit(main())
