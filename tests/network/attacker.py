# SPDX-License-Identifier: Apache-2.0
"""A host that attacks others: it forges source addresses, and sees nothing that is not sent to it.
And what the tests of attacks need besides: queue pairs of the library, and what came to a host."""
import os
import select
import socket
import struct

import scene as network
from foreign_partner import Partner
from foreign_wire import RD, open_datagram, read_reliable
from harness import check, wait_until
from scene import DEVICE, Switch

IP_HEADER = struct.Struct(">BBHHHBBH4s4s")
UDP_HEADER = struct.Struct(">HHHH")
BATCH = 100  # datagrams that fit into any socket's buffer
STATION = Switch.station(3)  # the attacker's


def packet(octets, source, to):
    """An IP packet with a datagram in it. The kernel adds length, identification and checksum."""
    ip = IP_HEADER.pack(0x45, 0, 0, 0, 0, 64, socket.IPPROTO_UDP, 0, socket.inet_aton(source[0]),
                        socket.inet_aton(to[0]))
    return ip + UDP_HEADER.pack(source[1], to[1], UDP_HEADER.size + len(octets), 0) + octets


class Attacker:
    """It is off the path of all others."""

    def __init__(self, space):
        self.space = space
        self.raw = space.socket(socket.SOCK_RAW, protocol=socket.IPPROTO_RAW)

    def forge(self, octets, source, to):
        self.raw.sendto(packet(octets, source, to), to)

    def flood(self, forgeries, victim):
        """(octets, source) of each. They come as fast as the victim takes them."""
        for at in range(0, len(forgeries), BATCH):
            batch = forgeries[at:at + BATCH]
            before = victim.counter("rx_datagrams")
            for octets, source in batch:
                self.forge(octets, source, victim.address)
            victim.wait_for("rx_datagrams", before + len(batch))

    def bound(self, kind=socket.SOCK_DGRAM, address=None):
        """A socket at an address of its own."""
        opened = self.space.socket(kind)
        opened.bind((address or self.space.address, 0))
        return opened

    def add_addresses(self, count, victim):
        """Further addresses of its own, which the victim can answer at once."""
        added = [f"{network.PREFIX}{200 + number}" for number in range(count)]
        for address in added:
            self.space.command("ip", "address", "add", f"{address}/24", "dev", DEVICE)
            victim.command("ip", "neighbour", "replace", address, "lladdr", STATION, "dev", DEVICE,
                           "nud", "permanent")
        return added


class HostPartner(Partner):
    """datagram_partner in a namespace."""

    def __init__(self, scene, space, kind, *options):
        self.program = scene.run(space, "../system/datagram_partner", kind, space.address, *options)
        address, stag = self.program.line().split()
        host, port = address.split(":")
        self.name, self.address, self.stag = address, (host, int(port)), int(stag)

    def ask(self, *words):
        self.program.tell(" ".join(map(str, words)) + "\n")

    def do(self, *words):
        self.ask(*words)
        return self.program.line()

    def wait_while(self, attack, *expected):
        """As wait(), with an attack in the meantime."""
        self.ask("wait", 30_000)
        for _ in range(8):
            attack()
            select.select([self.program.process.stdout], [], [], 0.02)
        words = self.program.line().split()
        check(words[:len(expected)] == list(map(str, expected)), f"{words}, not {expected}")

    def counter(self, name):
        return int(self.do("counter", name))

    def wait_for(self, name, least):
        """Until a counter is so high."""
        wait_until(lambda: self.counter(name) >= least,
                   f"{name} does not become {least} at {self.name}")

    def check_nothing_completed(self):
        said = self.do("wait", 0)
        check(said == "nothing", f"{self.name}: {said}")


class Capture:
    """What comes to a host over UDP, from when this is made. Honest hosts and the tests' controls
    have one; the attacker has none there."""

    def __init__(self, space):
        self.raw = space.socket(socket.SOCK_RAW, protocol=socket.IPPROTO_UDP)
        self.raw.setblocking(False)
        self.heard = []

    def read(self):
        while select.select([self.raw], [], [], 0)[0]:
            octets, (host, _) = self.raw.recvfrom(65536)
            at = (octets[0] & 15) * 4
            source, port, _, _ = UDP_HEADER.unpack_from(octets, at)
            self.heard.append(((host, source), port, octets[at + UDP_HEADER.size:]))

    def datagrams(self, source, to):
        """What came so far, as open_datagram() gives it."""
        self.read()
        return [open_datagram(octets) for sender, port, octets in self.heard
                if sender == source and port == to[1]]

    def reliable(self, source, to):
        """(RD header, incarnation) of those of class RD."""
        return [(read_reliable(body), incarnation)
                for kind, _, incarnation, body in self.datagrams(source, to) if kind == RD]


def meet(scene, kind, *options):
    """(honest, victim, attacker, network): two queue pairs that know no more than each other's
    addresses, and a third host."""
    switched = Switch(scene, count=3)
    honest = HostPartner(scene, switched.hosts[0], kind)
    victim = HostPartner(scene, switched.hosts[1], kind, *options)
    return honest, victim, Attacker(switched.hosts[2]), switched


def random_number(octets):
    return int.from_bytes(os.urandom(octets), "big")
