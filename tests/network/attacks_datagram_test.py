#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attacks on unreliable datagrams by a host that is off the path. Called with the name of one case;
--list names all. In each the attacker uses what it can guess or learn by itself; where the control
gives it what only others can know, the same datagrams have their effect."""
import sys

from scene import PATIENCE, PREFIX, Scene, case, check, main, wait_until
import foreign_wire as wire
from attacker import Capture, HostPartner, meet, random_number
from foreign_partner import pattern
from foreign_peer import QueuePair

EVIL = b"EVIL"
FAR_AHEAD = 0x20000000


def pass_send(honest, victim, length):
    """A Send between honest queue pairs arrives."""
    victim.must("receive", 0, length)
    honest.must("send", victim.name, 0, length)
    honest.wait("send", "success")
    victim.wait("recv", "success", length)


def send_of(incarnation, **fields):
    segment = wire.Segment(wire.SEND, **fields)
    return wire.datagram(wire.UD, segment.flags(), incarnation, segment.body())


def last_send(capture, honest, victim):
    """(incarnation, MSN) of what the honest host sent last."""
    _, flags, incarnation, body = capture.datagrams(honest.address, victim.address)[-1]
    return incarnation, wire.read_segment(flags, body).msn


def learn_incarnation(attacker, partner):
    """What a queue pair shows the attacker, in an Error about a Write-Record to nowhere."""
    pair = QueuePair(attacker.bound())
    pair.send_segment(wire.Segment(wire.WRITE_RECORD, msn=1, stag=0x100, message_length=1,
                                   payload=b"?"), partner.address)
    pair.socket.settimeout(PATIENCE)
    octets, source = pair.socket.recvfrom(65536)
    kind, _, incarnation, body = wire.open_datagram(octets)
    check((kind, body[0], source) == (wire.CONTROL, wire.ERROR, partner.address), octets.hex())
    return incarnation


@case()
def forged_challenges_while_it_reads():
    """The victim of this one is the host that reads; the other one answers late."""
    with Scene() as scene:
        reader, target, attacker, network = meet(scene, "ud")
        capture = Capture(network.hosts[1])
        target.must("fill", 0, 1000, 3)
        target.program.freeze()
        reader.must("read", target.name, target.stag, 0, 0, 1000, 30_000, 0)

        def challenge(nonce=None):
            content = wire.challenge(random_number(8) if nonce is None else nonce, EVIL * 4)
            octets = wire.datagram(wire.CONTROL, 0, EVIL, wire.control(wire.CHALLENGE, content))
            attacker.forge(octets, target.address, reader.address)

        def attack():
            for _ in range(16):
                challenge()

        def heard(kind):
            return [body for found, _, _, body in capture.datagrams(reader.address, target.address)
                    if found == kind]

        attack()
        reader.wait_for("drop_control", 16)
        check(len(heard(wire.UD)) == 1 and not heard(wire.CONTROL), capture.heard)
        # The control: with the right nonce the reader sends the cookie back.
        challenge(wire.read_segment(0, heard(wire.UD)[0]).sink[1])
        wait_until(lambda: any(body.endswith(EVIL * 4) for body in heard(wire.CONTROL)),
                   "the right nonce is not taken")
        target.program.thaw()
        reader.wait_while(attack, "rdma_read", "success", 1000)
        check(reader.contents(0, 1000) == pattern(1000, 3), "other bytes")


@case()
def refused_sends_far_ahead():
    """More of them than a receiver remembers of one source, each longer than the receive."""
    with Scene() as scene:
        honest, victim, attacker, network = meet(scene, "ud")
        capture = Capture(network.hosts[1])
        pass_send(honest, victim, 16)
        true_incarnation, msn = last_send(capture, honest, victim)
        learnt = learn_incarnation(attacker, honest)
        check(learnt != true_incarnation, "the attacker was shown what the victim is shown")
        for incarnation in (learnt, true_incarnation):
            victim.must("receive", 0, 16)
            attacker.flood([(send_of(incarnation, msn=(msn + FAR_AHEAD + 2 * i) % 2 ** 32,
                                     payload=bytes(17)), honest.address) for i in range(1100)],
                           victim)
            honest.must("send", victim.name, 0, 16)
            honest.wait("send", "success")
            victim.wait("recv", "success", 16)
        victim.wait_for("drop_receive_too_small", 2200)
        # The control: the number that the honest host's fourth Send will have is taken.
        for _ in range(2):
            victim.must("receive", 0, 16)
        attacker.forge(send_of(true_incarnation, msn=(msn + 3) % 2 ** 32, payload=EVIL),
                       honest.address, victim.address)
        victim.wait("recv", "success", len(EVIL))
        honest.must("send", victim.name, 0, 16)
        victim.wait_for("drop_late", 1)
        victim.check_nothing_completed()


@case()
def first_segments_of_forged_sources():
    """As many as may be open at a time, and more, over and over."""
    with Scene() as scene:
        honest, victim, attacker, network = meet(scene, "ud")
        pass_send(honest, victim, 100)
        for _ in range(128):
            victim.must("receive", 0, 4000)
        flood = [(send_of(random_number(3).to_bytes(4, "big"), last=False, msn=1, payload=EVIL),
                  (f"{PREFIX}{100 + i % 50}", 5000 + i)) for i in range(80)]
        for i in range(20):
            attacker.flood(flood, victim)
            honest.must("send", victim.name, i, 2000)
            victim.wait("recv", "success", 2000)
            honest.wait("send", "success")
        check(victim.counter("messages_evicted") > 0, "never were as many open as may be")


@case()
def guessed_stags():
    with Scene() as scene:
        honest, victim, attacker, network = meet(scene, "ud")
        honest.must("fill", 0, 65536, 5)
        guesser = QueuePair(attacker.bound())
        source = attacker.space.address, guesser.port

        def guess():
            """Any STag but those of the victim's region, with each key that it can have."""
            stag = random_number(4)
            return stag if stag >> 8 != victim.stag >> 8 else guess()

        def attack():
            segments = [segment for _ in range(75) for segment in (
                guesser.record_segments(EVIL, guess(), 0)[0],
                wire.Segment(wire.READ_REQUEST, msn=random_number(4), read_length=4,
                             source=(guess(), 0)))]
            attacker.flood([(wire.datagram(wire.UD, 0, EVIL, segment.body()), source)
                            for segment in segments], victim)

        wait_until(lambda: attack() or victim.counter("drop_stag_limit") > 0, "nothing limits it")
        check(victim.counter("drop_stag") > 0, "no guess was checked")
        check(victim.contents(0, 65536) == bytes(65536), "something was written")
        honest.must("write_record", victim.name, victim.stag, 100, 0, 5000)
        victim.wait("recv_write_record", "success", 5000)
        honest.wait("write_record", "success")
        check(victim.contents(0, 5200) == bytes(100) + pattern(5000, 5) + bytes(100), "other bytes")
        attack()
        honest.must("read", victim.name, victim.stag, 0, 10_000, 200, 30_000, 0)
        honest.wait("rdma_read", "success", 200)
        # The control: the right STag, and a source that has not guessed.
        segment, = guesser.record_segments(EVIL, victim.stag, 0)
        attacker.forge(wire.datagram(wire.UD, 0, EVIL, segment.body()), honest.address,
                       victim.address)
        victim.wait("recv_write_record", "success", len(EVIL))
        check(victim.contents(0, len(EVIL)) == EVIL, "not written")


@case()
def many_incarnations_of_one_address():
    """The victim remembers 64 sources, 16 of one address. Unproven ones take each other's places,
    and so do those whose Sends arrived."""
    with Scene() as scene:
        honest, victim, attacker, network = meet(scene, "ud", 64)
        capture = Capture(network.hosts[1])
        pass_send(honest, victim, 100)
        incarnation, msn = last_send(capture, honest, victim)
        twice = send_of(incarnation, msn=msn, payload=EVIL)
        source = attacker.bound()
        chosen = [send_of((20753 * i).to_bytes(4, "big"), msn=1, payload=EVIL)
                  for i in range(1, 101)]
        for octets in chosen:
            source.sendto(octets, victim.address)
        victim.wait_for("drop_no_receive", len(chosen))
        for _ in chosen:
            victim.must("receive", 0, 100)
        for octets in chosen + chosen[:1]:  # the first one was forgotten, and so is taken again
            source.sendto(octets, victim.address)
            victim.wait("recv", "success", len(EVIL))
            victim.must("receive", 0, 100)
        attacker.forge(twice, honest.address, victim.address)
        victim.wait_for("drop_late", 1)
        victim.check_nothing_completed()
        for partner in (honest, HostPartner(scene, network.hosts[0], "ud")):
            partner.must("send", victim.name, 0, 100)
            victim.wait("recv", "success", 100)


if __name__ == "__main__":
    sys.exit(main())
