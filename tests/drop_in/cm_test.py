#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs of rdmacm-utils over the drop-ins, both ends under diwarp-run."""
import errno
import random
import re
import socket
import struct
import sys
import time

from programs import (RELIABLE, free_port, is_bound, is_listening, main, over, own_address,
                      own_address6, pair, program, run)  # this first: it finds the harness
from facts import fails, works
import foreign_peer
from foreign_wire import SEND, Segment
from harness import PATIENCE, Skipped, case, check, wait_until

UDADDY_PORT = 7174  # it has no option for it


def in_group(group, members):
    """Whether sockets of this host are in an IPv4 group so many times."""
    wanted = "".join(f"{int(part):02X}" for part in reversed(group.split(".")))
    with open("/proc/net/igmp") as lines:
        rows = [line.split() for line in lines]
    return any(row[0] == wanted and int(row[1]) >= members for row in rows)


# --- The programs of rdmacm-utils.

def rping(address, *options):
    port = free_port()
    common = ("-a", address, "-p", port, "-V", "-C", 1000, "-S", 4096, *options)
    pair(("rping", "-s", *common), ("rping", "-c", *common), port)


@works("rping", "rdmacm-utils", "all of it, contents verified; IPv4, IPv6, loopback; a "
       "persistent server whose clients are killed", "`rping -s -a IP -V -C 1000 -S 4096`, `-c`")
@case()
def rping_verifies():
    rping(own_address())


@case()
def rping_on_loopback():
    rping("127.0.0.1")


@case()
def rping_over_ipv6():
    rping(own_address6())


@case(("serving",), ("connecting",), ("both",))
def rping_leads_its_own_queue_pair(role):
    address, port = own_address(), free_port()
    common = ("-a", address, "-p", port, "-V", "-C", 10)
    own = {"serving": (True, False), "connecting": (False, True), "both": (True, True)}[role]
    server, client = (("-q",) if wanted else () for wanted in own)
    pair(("rping", "-s", *server, *common), ("rping", "-c", *client, *common), port)


@case()
def rping_serves_both_families_on_all_addresses():
    for address in (own_address(), own_address6()):
        port = free_port()
        common = ("-p", port, "-V", "-C", 10)
        pair(("rping", "-s", "-a", "::", *common), ("rping", "-c", "-a", address, *common), port)


@case()
def no_crc_within_a_host_but_on_request():
    for run, told in (((), "CRC off"), (("--crc",), "CRC on")):
        port = free_port()
        common = ("-a", own_address(), "-p", port, "-C", 1)
        server = over("rping", "-s", *common)
        wait_until(lambda: is_listening(port), "rping does not listen")
        client = over("rping", "-c", *common, run=("--log", "info", *run))
        client.end(0)
        server.end(0)
        check(told in client.errors(), client.errors())


@case()
def rping_serves_several_clients():
    """A persistent server, of whose clients one is killed; it runs until it is stopped."""
    address, port = own_address(), free_port()
    server = over("rping", "-s", "-P", "-a", address, "-p", port)
    wait_until(lambda: is_listening(port), "rping does not listen")
    for _ in range(3):
        endless = over("rping", "-c", "-a", address, "-p", port)
        clients = [over("rping", "-c", "-a", address, "-p", port, "-V", "-C", 50)
                   for _ in range(7)]
        for client in clients:
            client.end(0)
        endless.kill()
    check(server.process.poll() is None, f"the server ended: {server.errors()}")
    server.kill()


@works("rdma_server, rdma_client", "rdmacm-utils", "all", "`rdma_client -s IP`")
@case()
def rdma_server_and_client():
    port = free_port()
    pair(("rdma_server", "-p", port), ("rdma_client", "-s", own_address(), "-p", port), port)


@works("rdma_xserver, rdma_xclient", "rdmacm-utils", "`-c r`; XRC is refused", "`rdma_xclient -s "
       "IP -c r`")
@case()
def rdma_xserver_and_xclient():
    port = free_port()
    pair(("rdma_xserver", "-p", port, "-c", "r"),
         ("rdma_xclient", "-s", own_address(), "-p", port, "-c", "r"), port)


@case()
def rdma_xserver_is_refused_xrc_in_words():
    told = run("rdma_xserver", "-p", free_port(), "-c", "x", status=255)
    check("XRC" in told.stderr, told.stdout + told.stderr)


@works("ucmatose", "rdmacm-utils", "also with migration (`-m`)", "`ucmatose -s IP -c 4 -C 100 -S "
       "4096`")
@case(("plain",), ("migrating",))
def ucmatose(how):
    address, port = own_address(), free_port()
    common = ("-p", port, "-c", 4, "-C", 100, "-S", 4096, *(("-m",) if how == "migrating" else ()))
    pair(("ucmatose", "-b", address, *common), ("ucmatose", "-s", address, *common), port)


@works("cmtime", "rdmacm-utils", "the client ends, the server runs on", "`cmtime -s IP -c 100`")
@case()
def cmtime():
    """The server runs until it is stopped."""
    address, port = own_address(), free_port()
    server = over("cmtime", "-b", address, "-p", port, "-c", 100)
    wait_until(lambda: is_listening(port), "cmtime does not listen")
    over("cmtime", "-s", address, "-p", port, "-c", 100).end(0)
    server.kill()


# --- UD with the connection manager.

def need_free_udp_port(port):
    if is_bound(port):
        raise Skipped(f"another program has UDP port {port}, which udaddy cannot choose")


@works("udaddy", "rdmacm-utils", "messages both ways; one service and four; with `--ud "
       "reliable`; IPv4, IPv6", "`udaddy -s IP -C 100 -S 1000`")
@case(("plain", 1), ("plain", 4), ("reliable", 4))
def udaddy(how, services):
    """Messages both ways, with immediate data and address handles from completions. Reliable ones may
    be more than a socket's buffer has room for."""
    need_free_udp_port(UDADDY_PORT)
    address = own_address()
    common = ("-c", services, "-C", 500 if how == "reliable" else 100, "-S", 1000)
    pair(("udaddy", "-b", address, *common), ("udaddy", "-s", address, *common), UDADDY_PORT,
         ready=is_bound, run=RELIABLE if how == "reliable" else ())


RESOLVE_KEY, MESSAGE_KEY = 0x72736c76, 0x01234567
REQUEST_BYTES = 280


def resolve_request(number):
    return struct.pack(">IBBBBQII", 0x64775544, 1, 1, 0, 0, number, 0, 0).ljust(REQUEST_BYTES, b"\0")


class Requester(foreign_peer.QueuePair):
    """Resolves a UD service by itself, and sends to the queue pair that the service names."""

    def __init__(self, address):
        bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        bound.bind((address, 0))
        super().__init__(bound)

    def say(self, payload, to, q_key, immediate=None):
        self.send_segment(Segment(SEND, msn=self.next_msn(SEND), word=q_key, last=True,
                                  immediate=immediate, payload=payload), to)

    def ask(self, number, to):
        """The answer to a request, which is repeated until it comes."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            self.say(resolve_request(number), to, RESOLVE_KEY)
            heard = self.hear(1)
            if heard:
                return heard[0].payload
        raise AssertionError("the service does not answer")


@case()
def udaddy_survives_noise():
    """Bytes that are no request are dropped and counted, and get no answer. A request that comes again
    gets its answer again, which is shorter, and the program is asked once: it waits for one peer."""
    need_free_udp_port(UDADDY_PORT)
    address = own_address()
    service = (address, UDADDY_PORT)
    server = over("udaddy", "-b", address, "-C", 5, "-S", 100, run=("--counters",))
    wait_until(lambda: is_bound(UDADDY_PORT), "udaddy does not listen")
    requester = Requester(address)
    noise = random.Random(17)
    for length in range(0, REQUEST_BYTES, 3):
        requester.socket.sendto(noise.randbytes(length), service)
        requester.say(noise.randbytes(length), service, RESOLVE_KEY)
        requester.say(resolve_request(1)[:length], service, RESOLVE_KEY)
    heard = requester.hear(0.2)
    check(heard is None, f"noise was answered: {heard}")
    answer = requester.ask(99, service)
    check(len(answer) <= REQUEST_BYTES and requester.ask(99, service) == answer, answer.hex())
    magic, _, kind, status, _, number, queue_pair, q_key = struct.unpack(">IBBBBQII", answer[:24])
    check((magic, kind, status, number, q_key) == (0x64775544, 2, 0, 99, MESSAGE_KEY), answer.hex())
    for _ in range(5):
        requester.say(bytes(100), (address, queue_pair), MESSAGE_KEY, immediate=requester.port)
    for _ in range(5):
        check(len(requester.hear()[0].payload) == 100, "another reply")
    told = server.end(0)
    check(re.search(r"ud_resolve_malformed \d\d\d", told), told)
    check("ud_resolve_repeated" in told, told)


@case()
def udaddy_finds_nobody():
    """The client is told at once: its status is that of the event, -ECONNREFUSED."""
    program("udaddy")
    need_free_udp_port(UDADDY_PORT)
    client = over("udaddy", "-s", own_address())
    client.end(256 - errno.ECONNREFUSED)
    check("RDMA_CM_EVENT_UNREACHABLE" in client.output, client.output)


@works("mckey", "rdmacm-utils", "several members on one host", "`mckey -m 239.1.1.1 -b IP`, `-s`")
@case(("one",), ("two",))
def mckey(members):
    """A group of the case's own. Members that receive run until they got all; the sender gives them
    three seconds."""
    program("mckey")
    group = "239." + ".".join(str(random.randrange(1, 255)) for _ in range(3))
    common = ("-m", group, "-b", own_address())
    hearing = [over("mckey", *common) for _ in range(2 if members == "two" else 1)]
    wait_until(lambda: in_group(group, len(hearing)), "mckey does not join")
    over("mckey", *common, "-s").end(0)
    for member in hearing:
        member.end(0)


fails("rstream and the other programs over rsockets", "rdmacm-utils", "rsockets are refused")


if __name__ == "__main__":
    sys.exit(main())
