#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attacks on reliable datagrams by a host that is off the path. Called with the name of one case;
--list names all. In each the attacker uses what it can guess or learn by itself; where the control
gives it what only the two ends can know, the same datagrams have their effect."""
import contextlib
import sys

from scene import Scene, case, check, main, wait_until
import foreign_wire as wire
from attacker import Capture, meet, random_number
from foreign_names import first_sequence
from foreign_partner import pattern
from foreign_reliable import ReliableQueuePair

EVIL = b"EVIL"
WINDOW = 64


def get_acquainted(honest, victim):
    """One Send makes the association."""
    victim.must("receive", 0, 100)
    honest.must("fill", 0, 65536, 7)
    honest.must("send", victim.name, 0, 100)
    honest.wait("send", "success")
    victim.wait("recv", "success", 100)


def learn(attacker, partner):
    """(incarnation, epoch) that a queue pair shows the attacker in an association of its own."""
    pair = ReliableQueuePair(attacker.bound())
    pair.open(partner.address)
    return pair.peer_incarnation, pair.peer_epoch


def guesses(here, there):
    """Names of both ends, and a number that `here` may have sent, of an association that is like
    those of the attacker."""
    for epoch in (here[1] - 1, here[1], here[1] + 1, 1, 2):
        for peer_epoch in (there[1] - 1, there[1], there[1] + 1, 1, 2):
            ends = [(incarnation, number % 2 ** 32 or 1) for incarnation, number in
                    ((here[0], epoch), (there[0], peer_epoch))]
            first = first_sequence(*ends)
            for number in range(first, first + 4):
                yield *ends, number % 2 ** 32


def forged(kind, here, there, flags=0, **fields):
    """A datagram of the end `here` to the end `there`."""
    header = wire.Reliable(kind, epoch=here[1], peer_epoch=there[1], peer_incarnation=there[0],
                           **fields)
    return wire.datagram(wire.RD, flags, here[0], header.body())


def evil_data(here, there, number):
    segment = wire.Segment(wire.SEND, msn=random_number(4), payload=EVIL)
    return forged(wire.DATA, here, there, window=WINDOW, sequence=number,
                  acknowledged=(first_sequence(there, here) - 1) % 2 ** 32,
                  content=segment.body())


def acknowledgement(here, there, number):
    """Of the number that the other end sent."""
    return forged(wire.ACKNOWLEDGEMENT, here, there, window=WINDOW, acknowledged=number)


def reset(here, there, number):
    """For the number that the other end sent; it says that this end has restarted."""
    return forged(wire.RESET, (bytes(4 * [0x5A]), here[1]), there, sequence=number)


def true_names(capture, honest, victim):
    """Both ends of the association, and the number of the last datagram that was delivered, as the
    honest host was told."""
    header, incarnation = capture.reliable(victim.address, honest.address)[-1]
    return ((header.peer_incarnation, header.peer_epoch), (incarnation, header.epoch),
            header.acknowledged)


def attack(attacker, datagrams, source, to):
    """Datagrams that come as if from `source`. None of them is of any association."""
    before = to.counter("drop_rd_association")
    attacker.flood([(octets, source.address) for octets in datagrams], to)
    to.wait_for("drop_rd_association", before + len(datagrams))


@contextlib.contextmanager
def send_that_waits():
    """The honest host's second Send waits for a receive of the victim's. With it the guesses of
    an attacker that knows what both show others."""
    with Scene() as scene:
        honest, victim, attacker, network = meet(scene, "rd")
        capture = Capture(network.hosts[0])
        get_acquainted(honest, victim)
        honest.must("send", victim.name, 100, 100)
        victim.wait_for("rd_held", 1)
        known = list(guesses(learn(attacker, honest), learn(attacker, victim)))
        yield honest, victim, attacker, capture, known


@case()
def forged_data_and_acknowledgements():
    with send_that_waits() as (honest, victim, attacker, capture, known):
        attack(attacker, [evil_data(*guess) for guess in known], honest, victim)
        attack(attacker, [acknowledgement(to, by, number) for by, to, number in known], victim,
               honest)
        honest.check_nothing_completed()
        for _ in range(2):
            victim.must("receive", 0, 100)
        victim.wait("recv", "success", 100)
        honest.wait("send", "success")
        check(victim.contents(0, 100) == pattern(200, 7)[100:], "other bytes")
        victim.check_nothing_completed()
        honest.must("send", victim.name, 0, 100)  # for the other receive
        honest.wait("send", "success")
        victim.wait("recv", "success", 100)
        control_of_data_and_acknowledgements(attacker, honest, victim, capture)


def control_of_data_and_acknowledgements(attacker, honest, victim, capture):
    """The honest host is told that a Send was delivered for which there is no receive yet."""
    here, there, number = true_names(capture, honest, victim)
    next_numbers = [(number + i) % 2 ** 32 for i in (1, 2)]
    honest.must("send", victim.name, 0, 100)
    victim.wait_for("rd_held", 2)
    attacker.forge(acknowledgement(there, here, next_numbers[0]), victim.address, honest.address)
    honest.wait("send", "success")
    victim.must("receive", 0, 100)
    victim.wait("recv", "success", 100)
    victim.must("receive", 100, 100)
    attacker.forge(evil_data(here, there, next_numbers[1]), honest.address, victim.address)
    victim.wait("recv", "success", len(EVIL))
    check(victim.contents(100, len(EVIL)) == EVIL, "other bytes")


@case()
def forged_resets():
    with send_that_waits() as (honest, victim, attacker, capture, known):
        attack(attacker, [reset(to, by, number) for by, to, number in known], victim, honest)
        honest.check_nothing_completed()
        victim.must("receive", 0, 100)
        victim.wait("recv", "success", 100)
        honest.wait("send", "success")
        # The control.
        honest.must("send", victim.name, 200, 100)
        victim.wait_for("rd_held", 2)
        here, there, number = true_names(capture, honest, victim)
        attacker.forge(reset(there, here, (number + 1) % 2 ** 32), victim.address, honest.address)
        honest.wait("send", "peer-was-restarted")


@case()
def forged_challenges_while_it_opens():
    """The victim of this one is the host that opens; the other one answers late."""
    with Scene() as scene:
        opener, peer, attacker, network = meet(scene, "rd")
        capture = Capture(network.hosts[1])
        peer.must("receive", 0, 100)
        peer.program.freeze()
        opener.must("send", peer.name, 0, 100)

        def challenge(nonce=None):
            content = wire.challenge(random_number(8) if nonce is None else nonce, EVIL * 4)
            octets = wire.datagram(wire.CONTROL, 0, EVIL, wire.control(wire.CHALLENGE, content))
            attacker.forge(octets, peer.address, opener.address)

        def opens():
            return [header for header, _ in capture.reliable(opener.address, peer.address)]

        def attack():
            for _ in range(16):
                challenge()

        attack()
        opener.wait_for("drop_control", 16)
        check(all(header.content[8:] == bytes(16) for header in opens()), "a cookie was taken")
        # The control: the opener takes the cookie, as far as it goes.
        challenge(int.from_bytes(opens()[-1].content[:8], "big"))
        wait_until(lambda: any(header.content[8:] == EVIL * 4 for header in opens()),
                   "the right nonce is not taken")
        peer.program.thaw()
        opener.wait_while(attack, "send", "success")
        peer.wait("recv", "success", 100)


def begin_and_fall_silent(attacker, address, victim):
    """A peer's first segment of a Send; whether the victim took it, and holds a receive for it."""
    peer = ReliableQueuePair(attacker.bound(address=address))
    peer.open(victim.address)
    sequence = peer.send_data(wire.Segment(wire.SEND, last=False, msn=1, payload=EVIL))
    peer.step_until(lambda: not peer.unacknowledged or sequence in peer.named_early)
    return not peer.unacknowledged


@case()
def peers_that_begin_and_fall_silent():
    """They hold half of the receives at most. Those come back in time, and then it is not
    the turn of their like, though these have waited longer."""
    with Scene() as scene:
        honest, victim, attacker, network = meet(scene, "rd")
        get_acquainted(honest, victim)
        for i in range(8):
            victim.must("receive", 4000 * i, 4000)
        held = [begin_and_fall_silent(attacker, address, victim)
                for address in attacker.add_addresses(2, network.hosts[1]) for _ in range(12)]
        check(held == (2 * [True] + 10 * [False]) * 2, held)
        for i in range(20):
            honest.must("send", victim.name, i, 100)
            honest.wait("send", "success")
            victim.wait("recv", "success", 100)
            victim.must("receive", 0, 4000)
        honest.must("send", victim.name, 0, 3000)
        victim.wait("recv", "success", 3000, milliseconds=50_000)
        honest.wait("send", "success")


if __name__ == "__main__":
    sys.exit(main())
