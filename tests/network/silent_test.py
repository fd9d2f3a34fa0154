#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""RC connections whose peer falls silent, since a cable is pulled, or only seems to, since its
program does not read. Called with the name of one case; --list names all."""
import sys
import time

from scene import DEVICE, Router, Scene, case, check, main

KEEP_ALIVE, USER_TIMEOUT = 5, 5  # seconds
ENOUGH = 10_000  # seconds: longer than a case
SMALL = "4096 65536 65536"  # bytes of socket buffers, so that a window is soon closed


class Pair:
    """A connection from the first host to the second."""

    def __init__(self, scene, network, *options, how="verbs", receives=1, peer=()):
        near, far = network.hosts
        self.server = scene.run(far, "network_stream", "--address", far.address, "--how", how,
                                "--receives", receives, *peer)
        address = self.server.word("listening")["address"]
        self.client = scene.run(near, "network_stream", "--address", near.address, "--connect",
                                address, "--how", how, *options)
        self.server.word("connected")
        self.attributes = self.client.word("connected")

    def do(self, what):
        self.client.tell(what + "\n")
        return self.client.word(what.split()[0])


def timeouts(keep_alive, user_timeout):
    return ["--keep-alive", keep_alive, "--user-timeout", user_timeout]


def start(scene):
    network = Router(scene)
    for host in network.hosts:
        host.set("net/ipv4/tcp_rmem", SMALL)
        host.set("net/ipv4/tcp_wmem", SMALL)
    return network


def pull(network):
    """Nobody is told: the router forwards nothing any more."""
    network.middle.set("net/ipv4/ip_forward", 0)


def check_ended(name, program, flushed):
    """In the end, and told in every way."""
    program.tell("wait 60\n")
    word = program.word("waited", 70)
    print(name, word)
    check(word.get("event") == "queue pair failed" and word["timed_out"], f"{name}: {word}")
    check(word["state"] == "error" and word["timeouts"] == 1, f"{name}: {word}")
    check(word.get("told_by_cm", True), f"{name}: {word}")
    got = word["statuses"].get("work request flushed", 0)
    check(got >= flushed, f"{name}: {got} requests were flushed: {word}")


@case()
def a_pulled_cable_ends_every_connection():
    """Idle ones by keep-alives, others by the user timeout; each without the other one."""
    with Scene() as scene:
        network = start(scene)
        idle, busy = timeouts(KEEP_ALIVE, 0), timeouts(0, USER_TIMEOUT)
        pairs = {
            "idle": Pair(scene, network, *idle, peer=idle),
            "idle, cm": Pair(scene, network, *idle, how="cm", peer=idle),
            "idle, descriptor, uring": Pair(scene, network, *idle, "--uring", how="descriptor"),
            "sending": Pair(scene, network, *busy),
            "sending, cm, uring": Pair(scene, network, *busy, "--uring", "--of-connection",
                                       how="cm"),
            "sending, descriptor": Pair(scene, network, *busy, "--of-connection",
                                        how="descriptor"),
            "reading": Pair(scene, network, *busy),
            "reading, uring": Pair(scene, network, *busy, "--uring"),
            "window closed": Pair(scene, network, *busy, receives=0),
            "window closed, uring": Pair(scene, network, *busy, "--uring", receives=0),
        }
        for name, pair in pairs.items():
            if name.startswith("reading"):
                pair.server.freeze()  # TCP acknowledges the request, and no response comes
                pair.do("read")
            if name.startswith("window"):
                pair.do("flood")
        time.sleep(2)  # until all of that is acknowledged
        pull(network)
        for name, pair in pairs.items():
            if name.startswith("sending"):
                pair.do("send")
        for name, pair in pairs.items():
            flushed = {"reading": 1, "window": 10}.get(name.split(",")[0].split()[0], 0)
            check_ended(name, pair.client, flushed)
        for name in ("idle", "idle, cm"):
            check_ended(f"{name}: peer", pairs[name].server, 1)


@case()
def an_interface_that_is_down_ends_connections():
    """A packet that finds no way out of the host brings no answer, either."""
    with Scene() as scene:
        network = start(scene)
        both = timeouts(KEEP_ALIVE, USER_TIMEOUT)
        pairs = [Pair(scene, network, *both) for _ in range(2)]
        time.sleep(1)  # until the last start-up is acknowledged
        network.hosts[0].command("ip", "link", "set", DEVICE, "down")
        pairs[0].do("send")
        for name, pair in zip(("sending", "idle"), pairs):
            check_ended(name, pair.client, 0)


@case()
def a_peer_that_does_not_read_stays_connected():
    """Its TCP answers, whatever its program does, and takes up again where it was."""
    with Scene() as scene:
        network = start(scene)
        both = timeouts(KEEP_ALIVE, USER_TIMEOUT)
        pairs = {
            "held": Pair(scene, network, *both, receives=0, peer=timeouts(ENOUGH, ENOUGH)),
            "held, uring": Pair(scene, network, *both, "--uring", receives=0),
            "stopped": Pair(scene, network, *both, receives=64),
            "stopped, uring": Pair(scene, network, *both, "--uring", receives=64),
            "reading": Pair(scene, network, *both),
            "idle": Pair(scene, network, *both),
        }
        posted = {}
        for name, pair in pairs.items():
            check(pair.attributes["keep_alive"] == KEEP_ALIVE, pair.attributes)
            check(pair.attributes["user_timeout"] == USER_TIMEOUT, pair.attributes)
            if "held" not in name:
                pair.server.freeze()
            what = {"reading": "read", "idle": None}.get(name, "flood")
            if what:
                posted[name] = pair.do(what)["posted"]
        for name, pair in pairs.items():
            pair.client.tell(f"wait {3 * USER_TIMEOUT}\n")
        for name, pair in pairs.items():
            word = pair.client.word("waited")
            check("event" not in word and word["state"] == "rts", f"{name}: {word}")
            check(word["timeouts"] == 0 and set(word["statuses"]) <= {"success"}, f"{name}: {word}")
            posted[name] = posted.get(name, 0) - sum(word["statuses"].values())
        for name, pair in pairs.items():
            if "held" in name:
                continue
            pair.server.thaw()
            pair.do(f"complete {posted[name]}")


@case()
def a_cable_pulled_for_a_moment_ends_nothing():
    with Scene() as scene:
        network = start(scene)
        pair = Pair(scene, network, *timeouts(20, 20), receives=64)
        pair.do("send")
        pull(network)
        pair.do("send")
        time.sleep(2)
        network.middle.set("net/ipv4/ip_forward", 1)
        pair.do("complete 2")


if __name__ == "__main__":
    sys.exit(main())
