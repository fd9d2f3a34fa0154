#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attacks on those that listen for connections. Called with the name of one case; --list names
all."""
import errno
import select
import socket
import sys

from scene import Scene, Switch, case, check, main, wait_until
from attacker import Attacker

SILENT = 400  # more than a listener keeps whose request has not come


class SilentConnections:
    """So many connections of some addresses that say nothing. Each that the listener closes is made
    anew."""

    def __init__(self, attacker, addresses, listener):
        self.attacker, self.addresses, self.listener = attacker, addresses, listener
        self.poll = select.poll()
        self.open = {}
        self.made = self.closed = 0

    def connect(self):
        address = self.addresses[self.made % len(self.addresses)]
        opened = self.attacker.bound(socket.SOCK_STREAM, address)
        opened.setblocking(False)
        result = opened.connect_ex(self.listener)
        check(result in (0, errno.EINPROGRESS), errno.errorcode.get(result))
        self.open[opened.fileno()] = opened
        self.poll.register(opened, select.POLLIN)
        self.made += 1

    def refill(self):
        """A few at a time. A listener says nothing, so what can be read is the end."""
        for descriptor, _ in self.poll.poll(0):
            self.poll.unregister(descriptor)
            self.open.pop(descriptor).close()
            self.closed += 1
        for _ in range(min(SILENT - len(self.open), 10)):
            self.connect()

    def close(self):
        for opened in self.open.values():
            opened.close()


def has_said(program):
    return bool(select.select([program.process.stdout], [], [], 0)[0])


@case((1,), (6,))
def silent_connections_of(count):
    """Of so many addresses."""
    with Scene() as scene:
        network = Switch(scene, count=3)
        near, far = network.hosts[:2]
        attacker = Attacker(network.hosts[2])
        server = scene.run(far, "network_stream", "--address", far.address, "--receives", 1)
        listening = server.word("listening")["address"]
        host, port = listening.split(":")
        addresses = attacker.add_addresses(count, far)
        silent = SilentConnections(attacker, addresses, (host, int(port)))
        wait_until(lambda: silent.refill() or silent.closed > SILENT, "none gives way")
        client = scene.run(near, "network_stream", "--address", near.address, "--connect",
                           listening)
        wait_until(lambda: silent.refill() or has_said(client), "nobody can connect")
        client.word("connected")
        server.word("connected")
        silent.close()
        client.tell("send\n")
        client.word("send")
        client.tell("complete 1\n")
        client.word("complete")


if __name__ == "__main__":
    sys.exit(main())
