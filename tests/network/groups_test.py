#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One sender, three receivers and a bystander, each on a host of its own: broadcast, multicast, and
one Write-Record into the memory of each. Called with the name of one case; --list names all."""
import sys

from exchange import (RATE, Layout, arrivals, attempts, check_all_sent, check_counters, finish,
                      start_target)
from scene import DEVICE, Scene, Switch, case, check, main

PORT = 7000
STAG = 0x5ADD1E00  # what the members agreed on
GROUPS = {"limited": "255.255.255.255", "subnet": "10.77.0.255", "multicast": "239.77.1.2",
          "multicast6": "ff15::77:12"}
MEMBERS = (1, 2, 3)  # of the switch's hosts; 0 sends, 4 hears what is sent to its port alone


def use_ipv6(network):
    for number, host in enumerate(network.hosts, 1):
        host.address = f"fd77::{number}"


def start_members(scene, network, group, region, *options):
    """Targets on all hosts but the first; the last one does not join."""
    options = ("--port", PORT, "--interface", DEVICE, *options)
    joined = [start_target(scene, network.hosts[i], region, "--join", group, *options)[0]
              for i in MEMBERS]
    return joined, start_target(scene, network.hosts[MEMBERS[-1] + 1], region, *options)[0]


def send_to(scene, network, group, layout, *options):
    host = network.hosts[0]
    destination = f"[{group}]:{PORT}" if ":" in group else f"{group}:{PORT}"
    source = scene.peer(host, "source", "--address", host.address, "--destination", destination,
                        "--interface", DEVICE, *layout.options(), *options)
    sent = source.word("sent")
    source.end()
    check_all_sent(sent, layout.count)
    return sent


def check_bystander(bystander):
    messages, end = finish(bystander)
    check(not messages and not end.changed, f"a host that did not join heard {messages}")


@case(*((kind,) for kind in GROUPS))
def sends_reach_three_hosts_by(kind):
    def attempt(number):
        with Scene() as scene:
            network = Switch(scene, 5)
            if kind == "multicast6":
                use_ipv6(network)
            layout = Layout([0, 1, 1000, 1400, 5000, 20_000], 60)
            members, bystander = start_members(scene, network, GROUPS[kind], layout.region,
                                               "--receive", 20_000)
            send_to(scene, network, GROUPS[kind], layout, "--rate", RATE >> number)
            for member in members:
                messages, end = finish(member)
                check([(m["kind"], m["immediate"], m["length"]) for m in messages] ==
                      [("send", *place) for place in layout.messages], messages)
                check(not any(m["wrong"] for m in messages), "contents")
                check_counters(end.counters)
            check_bystander(bystander)

    attempts(3, attempt)


def check_maps(port, maps, arrived):
    check(set(maps) == set(arrived), f"at host {port}: records at {set(maps)}, not {set(arrived)}")
    for place, ranges in maps.items():
        check(ranges == arrived[place],
              f"host {port}, at {place}: {ranges} are valid, {arrived[place]} arrived")


def write_to_group(attempt, kind):
    with Scene() as scene:
        network = Switch(scene, 5, log=True, loss=0.05)
        if kind == "multicast6":
            use_ipv6(network)
        layout = Layout([100_000, 1, 1425, 1 << 20], 8)
        members, bystander = start_members(scene, network, GROUPS[kind], layout.region,
                                           "--stag-chosen", STAG, "--record-timeout", 500)
        send_to(scene, network, GROUPS[kind], layout, "--op", "write-record", "--rate",
                RATE >> attempt, "--stag", STAG)
        maps = []
        for port, member in zip(MEMBERS, members):
            messages, end = finish(member)
            arrived = arrivals(network.log(), port, 0)
            maps.append({m["offset"]: m["ranges"] for m in messages})
            check_maps(port, maps[-1], arrived)
            check(len(messages) == len(arrived), f"{len(messages)} records, not {len(arrived)}")
            check(all(m["stag"] == STAG for m in messages), messages)
            check(not end.changed and not any(m["wrong"] for m in messages), "contents")
            check_counters(end.counters)
        check(maps[0] != maps[1] != maps[2], "every host lost the same")
        check_bystander(bystander)


@case(("limited",), ("multicast",), ("multicast6",))
def write_records_are_placed_in_three_memories_by(kind):
    attempts(3, lambda number: write_to_group(number, kind))


@case()
def nobody_answers_to_what_came_to_a_group():
    """Write-Records that name no memory: an Error each, were they sent to one host."""
    with Scene() as scene:
        network = Switch(scene, 5)
        layout = Layout([1000], 20)
        members, bystander = start_members(scene, network, GROUPS["multicast"], layout.region)
        send_to(scene, network, GROUPS["multicast"], layout, "--op", "write-record", "--stag", STAG)
        for member in members:
            messages, end = finish(member)
            check(not messages and not end.changed, messages)
            check(end.counters.get("drop_stag") == layout.count, end.counters)
        check_bystander(bystander)
        back = network.figures()[0]
        check(back["passed"] == 0, f"something was sent back: {back}")


if __name__ == "__main__":
    sys.exit(main())
