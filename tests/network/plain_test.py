#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The networks that the other tests run on, with plain sockets: packets are lost, late and held up
as asked. Called with the name of one case; --list names all."""
import math
import os
import socket
import sys
import time

from scene import DEVICE, Router, Scene, Switch, case, check, main
from tcp_stream import TcpStream, rate_between

COUNT = 10_000
SIZE = 1200
UDP_SEGMENT = 103
SO_RCVBUFFORCE = 33


def pair(network):
    """Sockets for datagrams from the first host to the second."""
    sender, receiver = (host.socket(socket.SOCK_DGRAM) for host in network.hosts[:2])
    receiver.bind((network.hosts[1].address, 5000))
    receiver.setblocking(False)
    hold_all(receiver)
    sender.connect((network.hosts[1].address, 5000))
    return sender, receiver


def hold_all(receiver):
    """Room for all that a case sends, where that is allowed: a switch that had to wait sends what it
    has in a burst."""
    for option in (SO_RCVBUFFORCE, socket.SO_RCVBUF):
        try:
            return receiver.setsockopt(socket.SOL_SOCKET, option, 4 * COUNT * SIZE)
        except PermissionError:
            continue


def take_all(receiver, taken):
    try:
        while True:
            taken.append(int.from_bytes(receiver.recv(4096)[:4], "big"))
    except BlockingIOError:
        pass


def settle(receiver, taken):
    """Takes what is still under way: until nothing has come for a while."""
    before = -1
    while len(taken) != before:
        before = len(taken)
        time.sleep(0.2)
        take_all(receiver, taken)


def send_numbers(network, count=COUNT):
    """Datagrams with the numbers 0 to count-1; the numbers in the order in which they came."""
    taken = []
    sender, receiver = pair(network)
    for number in range(count):
        sender.send(number.to_bytes(4, "big") * (SIZE // 4))
        if number % 20 == 19:
            time.sleep(0.0002)
            take_all(receiver, taken)
    settle(receiver, taken)
    sender.close()
    receiver.close()
    return taken


def check_share(lost, count, probability):
    """So many of so many, give or take six standard deviations."""
    expected = count * probability
    slack = 6 * math.sqrt(expected * (1 - probability))
    check(abs(lost - expected) <= slack, f"{lost} of {count} were lost, not {expected} +- {slack}")


@case((0,), (5,), (20,))
def switch_drops_percent(percent):
    with Scene() as scene:
        network = Switch(scene, loss=percent / 100)
        taken = send_numbers(network)
        figures = network.figures()[1]
        print(figures)
        check(taken == sorted(set(taken)), "the order changed")
        check(figures["lost"] == COUNT - len(taken) and figures["refused"] == 0, figures)
        check_share(COUNT - len(taken), COUNT, percent / 100)


@case()
def same_seed_drops_the_same():
    runs = []
    for seed in (3, 3, 4):
        with Scene() as scene:
            runs.append(send_numbers(Switch(scene, loss=0.05, seed=seed), 2000))
    check(runs[0] == runs[1], "the same seed dropped other packets")
    check(runs[0] != runs[2], "another seed dropped the same packets")


@case()
def switch_reorders():
    with Scene() as scene:
        network = Switch(scene, reorder=0.02, lateness=2000)
        taken = send_numbers(network)
        figures = network.figures()[1]
        overtaken = sum(later < earlier for earlier, later in zip(taken, taken[1:]))
        print(figures, overtaken)
        check(sorted(taken) == list(range(COUNT)), "datagrams are missing")
        check_share(figures["late"], COUNT, 0.02)
        check(overtaken >= 20, f"only {overtaken} were overtaken")


@case()
def tcp_reaches_the_rate_and_no_more():
    with Scene() as scene:
        stream = TcpStream(Switch(scene, rate=100_000_000, delay=2500, queue=100))
        begin = time.monotonic() + 1
        time.sleep(3.2)
        rate = rate_between(stream.stop(), begin, begin + 2)
        print(rate)
        check(75 <= rate <= 101, f"TCP got {rate} Mbit/s of 100")


@case()
def router_drops_single_packets():
    """Of trains as well: offloads are off."""
    with Scene() as scene:
        network = Router(scene)
        network.drop(50)
        taken = []
        sender, receiver = pair(network)
        sender.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, SIZE)
        for _ in range(COUNT // 10):
            sender.send(bytes(10 * SIZE))
            time.sleep(0.0002)
            take_all(receiver, taken)
        settle(receiver, taken)
        counted = network.counted()
        print(counted, len(taken))
        check(counted["passed"] == (len(taken), len(taken) * (SIZE + 28)), counted)
        check(counted["lost"][0] == COUNT - len(taken), counted)
        check_share(COUNT - len(taken), COUNT, 0.05)


def open_spaces():
    links = []
    for name in os.listdir("/proc/self/fd"):
        try:
            links.append(os.readlink(f"/proc/self/fd/{name}"))
        except FileNotFoundError:
            pass  # that of the listing itself
    return [link for link in links if link.startswith("net:")]


@case()
def nothing_is_left_behind():
    """Neither in this namespace nor of the processes, even if a case fails."""
    def seen():
        return sorted(name for _, name in socket.if_nameindex())

    before, process = seen(), None
    try:
        with Scene() as scene:
            process = Switch(scene).program.process
            check(seen() == before, f"{DEVICE} is in the wrong namespace")
            raise AssertionError("as a case may")
    except AssertionError as error:
        check(str(error) == "as a case may", error)
    check(process.poll() is not None, "the switch still runs")
    check(seen() == before, f"left behind: {set(seen()) - set(before)}")
    check(not open_spaces(), "a namespace is still open")


if __name__ == "__main__":
    sys.exit(main())
