#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""RD queue pairs of the library and of foreign_reliable.py, which was written from docs/wire-format.md
alone, with each other. Called with the name of one case; --list names all."""
import sys

import foreign_wire as wire
from foreign_names import first_sequence, siphash
from foreign_partner import Partner, pattern
from foreign_reliable import ReliableQueuePair
from harness import case, check, main, wait_until

INVALID_STAG, NO_BUFFER = (0x11, 0), (0x12, 2)
NO_READ_ACCESS = (0x01, 2)


def meet():
    partner = Partner("rd")
    foreign = ReliableQueuePair()
    return partner, foreign, f"127.0.0.1:{foreign.port}"


def meet_with_a_send():
    """The same, and the library has sent something, so that there is an association."""
    partner, foreign, to = meet()
    partner.must("send", to, 0, 10)
    foreign.step_until(lambda: foreign.delivered)
    partner.wait("send", "success")
    return partner, foreign, to


def send(payload, msn=1, **fields):
    return wire.Segment(wire.SEND, msn=msn, payload=payload, **fields)


@case()
def sends_to_the_library():
    """After a Challenge, in order though they go out backwards and twice."""
    partner, foreign, _ = meet()
    for i in range(20):
        partner.must("receive", 1000 * i, 1000)
    check(foreign.open(partner.address) == 1, "not one Challenge")
    real, foreign.send_reliable = foreign.send_reliable, lambda *datagram: None
    for i in range(20):
        foreign.send_data(send(pattern(100 + i, i), msn=i, immediate=i))
    foreign.send_reliable = real
    for flags, header in 2 * list(reversed(foreign.unacknowledged.values())):
        foreign.send_reliable(header, flags)
    foreign.step_until(lambda: not foreign.unacknowledged)
    for i in range(20):
        partner.wait("recv", "success", 100 + i, 0, i)
        check(partner.contents(1000 * i, 100 + i) == pattern(100 + i, i), i)
    check(partner.do("wait", 0) == "nothing", "one came twice")
    check(foreign.named_early, "nothing was told to be early")


@case()
def a_send_waits_for_a_receive():
    partner, foreign, _ = meet()
    foreign.open(partner.address)
    sequence = foreign.send_data(send(b"one"))
    foreign.step_until(lambda: sequence in foreign.named_early)
    check(sequence in foreign.unacknowledged, "it was delivered to nobody")
    partner.must("receive", 0, 10)
    foreign.step_until(lambda: not foreign.unacknowledged)
    partner.wait("recv", "success", 3)


@case()
def messages_of_the_library():
    """Every fifth datagram is lost at first; all arrive once, in order."""
    partner, foreign, to = meet()
    partner.must("fill", 0, 200_000, 3)
    lost = set()

    def lose(datagram):
        kind, body = datagram
        if kind != wire.RD or body[0] != wire.DATA:
            return False
        sequence = wire.read_reliable(body).sequence
        again = sequence in lost
        lost.add(sequence)
        return sequence % 5 == 0 and not again

    foreign.lose = lose
    for i in range(10):
        partner.must("send", to, 100 * i, 3000 + i, i)
    partner.must("write_record", to, 0x1234, 5000, 0, 20_000, 99)
    foreign.step_until(lambda: any(header.segment and header.segment.opcode == wire.WRITE_RECORD and
                                   header.segment.last for header in foreign.delivered))
    segments = foreign.segments()
    for i in range(10):
        message = b""
        while True:
            segment = segments.pop(0)
            check((segment.opcode, segment.immediate, segment.offset) == (wire.SEND, i, len(message)),
                  segment)
            message += segment.payload
            if segment.last:
                break
        check(message == pattern(200_000, 3)[100 * i:100 * i + 3000 + i], i)
    check(b"".join(segment.payload for segment in segments) == pattern(20_000, 3), "other bytes")
    check(all(segment.tagged_offset - segment.offset == 5000 and segment.message_length == 20_000
              for segment in segments), segments)
    check(any(sequence % 5 == 0 for sequence in lost), "nothing was lost")
    for i in range(10):
        partner.wait("send", "success")
    partner.wait("write_record", "success")


@case()
def records_to_the_library():
    partner, foreign, _ = meet()
    foreign.open(partner.address)
    for segment in foreign.record_segments(pattern(5500, 5), partner.stag, 300, immediate=8):
        foreign.send_data(segment)
    foreign.step_until(lambda: not foreign.unacknowledged)
    words = partner.wait("recv_write_record", "success", 5500, 0, 8, 300, 5500)
    check(words[7:] == ["0+5500"], words)
    check(partner.contents(300, 5500) == pattern(5500, 5), "other bytes")


@case()
def what_is_refused_is_skipped():
    partner, foreign, _ = meet()
    foreign.open(partner.address)
    partner.must("receive", 0, 10)
    wrong, = foreign.record_segments(bytes(10), partner.stag ^ 0x5A5A5A5A, 0)
    sequence = foreign.send_data(wrong)
    foreign.send_data(send(b"behind it"))
    foreign.step_until(lambda: foreign.refusals)
    check(foreign.refusals[0] == (sequence, INVALID_STAG), foreign.refusals)
    foreign.skip(sequence, wire.name_of(wrong))
    foreign.step_until(lambda: not foreign.unacknowledged)
    partner.wait("recv", "success", 9)
    check(partner.do("error").startswith("0 1 1 0 12 "), "not in the error queue")


@case()
def reads_of_the_library_s_memory():
    partner, foreign, _ = meet()
    partner.must("fill", 0, 60_000, 11)
    foreign.open(partner.address)
    for i, length in enumerate((0, 1, 50_000)):
        foreign.send_data(wire.Segment(wire.READ_REQUEST, msn=i, read_length=length, sink=(70 + i, 1000),
                                       source=(partner.stag, 7)))
    for i, length in enumerate((0, 1, 50_000)):
        came, ended = b"", False
        while not ended:
            foreign.step_until(lambda: foreign.delivered)
            header = foreign.delivered.pop(0)
            segment = header.segment
            check((segment.opcode, segment.stag) == (wire.READ_RESPONSE, 70 + i), segment)
            check(segment.tagged_offset == 1000 + len(came), segment)
            came += segment.payload
            ended = segment.last
        check(came == pattern(60_000, 11)[7:7 + length], i)


@case()
def reads_by_the_library():
    partner, foreign, to = meet()
    memory = pattern(30_000, 4)
    partner.must("read", to, 5, 6, 0, 30_000, 0, 0)
    foreign.step_until(lambda: foreign.delivered)
    request, = foreign.segments()
    check((request.opcode, request.source, request.read_length) == (wire.READ_REQUEST, (5, 6), 30_000),
          request)
    for segment in foreign.response_segments(request, memory):
        foreign.send_data(segment)
    foreign.step_until(lambda: not foreign.unacknowledged)
    partner.wait("rdma_read", "success")
    check(partner.contents(0, 30_000) == memory, "other bytes")
    partner.must("read", to, 5, 6, 0, 10, 0, 0)
    foreign.step_until(lambda: foreign.delivered)
    refused, = foreign.segments()
    foreign.sequence_up(wire.FAILURE, 0,
                        wire.failure_of(refused.sink[0], NO_READ_ACCESS))
    foreign.step_until(lambda: not foreign.unacknowledged)
    partner.wait("rdma_read", "remote-access-error")


@case()
def a_restarted_peer_is_a_new_one():
    partner, foreign, to = meet_with_a_send()
    foreign.restart()
    partner.must("send", to, 0, 20)
    foreign.step_until(lambda: foreign.resets_sent)
    partner.wait("send", "peer-was-restarted")
    partner.must("send", to, 0, 30)
    foreign.step_until(lambda: foreign.delivered)
    check([len(segment.payload) for segment in foreign.segments()] == [30], "not the new one alone")
    partner.wait("send", "success")


@case()
def first_sequence_numbers():
    """Each end's follow from the names of both, and differ from one association to the next."""
    key = [int.from_bytes(bytes(range(at, at + 8)), "little") for at in (0, 8)]
    check(siphash(*key, bytes(range(15))) == 0xA129CA6149BE45E5, "no SipHash-2-4")
    check(first_sequence((bytes.fromhex("a1b2c3d4"), 3), (bytes.fromhex("00000002"), 2)) == 0x9B2B8096,
          "not the example of the documentation")
    partner, foreign, to = meet()
    firsts = []
    for _ in range(3):
        foreign.restart()
        partner.must("receive", 0, 10)
        foreign.open(partner.address)
        here, there = (foreign.own(), foreign.epoch), (foreign.peer_incarnation, foreign.peer_epoch)
        check(foreign.send_data(send(b"one")) == first_sequence(here, there), "not mine")
        partner.wait("recv", "success")
        partner.must("send", to, 0, 10)
        foreign.step_until(lambda: foreign.delivered)
        first = foreign.delivered.pop()
        check(first.sequence == first_sequence(there, here), first)
        partner.wait("send", "success")
        firsts += [first_sequence(here, there), first_sequence(there, here)]
    check(len(set(firsts)) == 6, firsts)


@case()
def epochs_are_counted_from_an_unguessable_number():
    partner, foreign, to = meet()
    epochs = []
    for _ in range(2):
        foreign.forget()
        foreign.open(partner.address)
        epochs.append(foreign.peer_epoch)
    check(wire.before(*epochs) and not wire.before(2 ** 16, epochs[1] - epochs[0]), epochs)
    check(min(epochs) > 100, epochs)  # which a random start misses once in 40 million runs


@case()
def a_skip_of_one_message_leaves_another_alone():
    partner, foreign, _ = meet()
    foreign.open(partner.address)
    partner.must("receive", 0, 100)
    parts = [send(b"half ", last=False), send(b"a Send", offset=5)]
    others = [(wire.RESPONSES, 77), (wire.REQUESTS, 1), (wire.RECORDS, 1), (wire.SENDS, 2)]
    foreign.send_data(parts[0])
    for name in others:
        foreign.sequence_up(wire.SKIP, 0, wire.skip_of(*name))
    foreign.send_data(parts[1])
    foreign.step_until(lambda: not foreign.unacknowledged)
    partner.wait("recv", "success", 11)
    check(partner.contents(0, 11) == b"half a Send", "other bytes")


@case()
def a_skip_voids_the_rest_of_its_message():
    """And the receive that the message had found is there for the next one."""
    partner, foreign, _ = meet()
    foreign.open(partner.address)
    partner.must("receive", 0, 100)
    foreign.send_data(send(b"this will ", last=False))
    foreign.sequence_up(wire.SKIP, 0, wire.skip_of(wire.SENDS, 1))
    foreign.send_data(send(b"never end", offset=10))
    foreign.send_data(send(b"the next", msn=2))
    foreign.step_until(lambda: not foreign.unacknowledged)
    partner.wait("recv", "success", 8)
    check(partner.contents(0, 8) == b"the next" and not foreign.refusals, foreign.refusals)


@case()
def the_library_names_the_message_that_it_skips():
    """One that was refused, to its end, and no other."""
    partner, foreign, to = meet()
    partner.must("fill", 0, 200_000, 1)
    foreign.refuse = lambda header: NO_BUFFER if header.segment.opcode == wire.SEND else None
    partner.must("send", to, 0, 200_000)
    partner.must("write_record", to, 0x1234, 0, 0, 100)
    foreign.step_until(lambda: any(header.segment for header in foreign.delivered))
    partner.wait("send", "remote-operation-error")
    partner.wait("write_record", "success")
    *skips, record = foreign.delivered
    check(len(skips) > 1 and all(header.kind == wire.SKIP for header in skips), skips)
    names = {header.content for header in skips}
    check(len(names) == 1 and names.pop()[:4] == bytes((wire.SENDS, 0, 0, 0)), names)
    check(record.segment.payload == pattern(100, 1), record)
    foreign.refuse = lambda header: NO_READ_ACCESS if header.segment.opcode == wire.READ_REQUEST else None
    foreign.delivered = []
    partner.must("read", to, 5, 6, 0, 30_000, 0, 0)
    foreign.step_until(lambda: foreign.delivered)
    partner.wait("rdma_read", "remote-access-error")
    check(foreign.delivered[0].content[0] == wire.REQUESTS, foreign.delivered)


def open_and_ask(partner, foreign, stag, *asked):
    """Opens, and asks for these (sink STag, length)."""
    foreign.open(partner.address)
    for sink, length in asked:
        foreign.send_data(wire.Segment(wire.READ_REQUEST, msn=sink, read_length=length, sink=(sink, 0),
                                       source=(stag, 0)))


@case()
def a_failure_of_the_library_is_a_fresh_datagram():
    """All of the response but its beginning is lost, and then its region goes: skips stand for it, none of
    them for another message, and the failure comes last, under a number of its own."""
    partner, foreign, _ = meet()
    stag = int(partner.do("lend"))
    had_data = set()

    def lose(datagram):
        kind, body = datagram
        if kind != wire.RD or body[0] != wire.DATA:
            return False
        header = wire.read_reliable(body)
        segment = wire.read_segment(0, header.content)
        if segment.stag == 70:
            had_data.add(header.sequence)
        return segment.stag == 70 and segment.tagged_offset != 0

    foreign.lose = lose
    open_and_ask(partner, foreign, stag, (70, 250_000), (71, 0))
    foreign.step_until(lambda: len(had_data) > 2)
    partner.must("withdraw")
    foreign.step_until(lambda: any(header.kind == wire.FAILURE for header in foreign.delivered))
    delivered, foreign.delivered = foreign.delivered, []
    skips = [header for header in delivered if header.kind == wire.SKIP]
    check(skips and {header.content for header in skips} == {wire.skip_of(wire.RESPONSES, 70)}, skips)
    failure, = [header for header in delivered if header.kind == wire.FAILURE]
    check(failure.content == wire.failure_of(70, (0x01, 0)), failure)
    check(failure.sequence not in had_data, "a number that stood for data stands for the failure")
    of_70 = [header for header in delivered if header.segment is None or header.segment.stag == 70]
    check(of_70[-1] is failure, "something of the response came after its failure")


@case()
def a_failure_after_response_data_ends_the_library_s_read():
    """Even after the response to a later request; and both places come back."""
    partner, foreign, to = meet()
    for _ in range(20):
        for _ in range(2):
            partner.must("read", to, 5, 6, 0, 3000, 0, 0)
        foreign.step_until(lambda: len(foreign.delivered) == 2)
        first, second = foreign.segments()
        check(first.sink[0] != second.sink[0] and first.sink[1] == second.sink[1] == 0, (first, second))
        foreign.send_data(foreign.response_segments(first, pattern(3000, 1))[0])
        foreign.sequence_up(wire.SKIP, 0, wire.skip_of(wire.RESPONSES, first.sink[0]))
        foreign.send_data(foreign.response_segments(first, pattern(3000, 1))[2])
        for segment in foreign.response_segments(second, pattern(3000, 2)):
            foreign.send_data(segment)
        foreign.sequence_up(wire.FAILURE, 0, wire.failure_of(first.sink[0], NO_READ_ACCESS))
        foreign.step_until(lambda: not foreign.unacknowledged)
        ended = sorted(partner.do("wait", 10_000).split()[1] for _ in range(2))
        check(ended == ["remote-access-error", "success"], ended)
    check(partner.contents(0, 3000) == pattern(3000, 2), "other bytes")


def dropped(partner):
    return int(partner.do("counter", "drop_rd_association"))


def reset(foreign, sequence):
    """The foreign queue pair answers a datagram with this number as if it had lost the association
    just after it had delivered something."""
    foreign.send_reliable(wire.Reliable(
        wire.RESET, flags=wire.BROKEN, epoch=foreign.epoch, peer_epoch=foreign.peer_epoch,
        peer_incarnation=foreign.peer_incarnation, sequence=sequence))


def send_without_acknowledgement(partner, foreign, to, length):
    """The library sends this many bytes. The segment, and its number."""
    foreign.step_until(lambda: foreign.peer_epoch != 0)
    foreign.delivered, foreign.acknowledge = [], lambda: None
    partner.must("send", to, 0, length)
    foreign.step_until(lambda: foreign.delivered)
    del foreign.acknowledge
    header, = foreign.delivered
    return header.segment, header.sequence


def associate_anew(foreign):
    """The library opens another association, as it has work under way."""
    former = foreign.peer_epoch
    foreign.step_until(lambda: foreign.peer_epoch not in (0, former))


@case()
def a_reset_without_the_right_number_is_ignored():
    partner, foreign, to = meet_with_a_send()
    _, last = send_without_acknowledgement(partner, foreign, to, 20)
    before = dropped(partner)
    for distance in (1, 2, 1000, 2 ** 31, 2 ** 32 - 2 ** 20):
        reset(foreign, (last + distance) % 2 ** 32)
    wait_until(lambda: dropped(partner) == before + 5, "not all were dropped")
    reset(foreign, last)
    foreign.forget()  # the association, so that what still comes in it is not taken,
    foreign.known = None  # and what was delivered
    associate_anew(foreign)
    partner.wait("send", "peer-was-restarted")


@case()
def a_send_is_repeated_to_a_peer_that_remembers():
    """With the MSN that it had, by which the peer knows that it was delivered."""
    partner, foreign, to = meet_with_a_send()
    first, number = send_without_acknowledgement(partner, foreign, to, 20)
    reset(foreign, number)
    associate_anew(foreign)
    foreign.step_until(lambda: foreign.delivered)
    again, = foreign.segments()
    check((again.msn, again.payload) == (first.msn, first.payload), (first, again))
    partner.wait("send", "success")


@case()
def the_library_remembers_what_it_delivered():
    """It says so in the next association, and delivers a Send that is repeated there no second time."""
    partner, foreign, _ = meet()
    for i in range(3):
        partner.must("receive", 100 * i, 100)
    foreign.open(partner.address)
    foreign.send_data(send(b"first", msn=5))
    foreign.step_until(lambda: not foreign.unacknowledged)
    check(foreign.peer_flags == 0, "there was no association before")
    partner.wait("recv", "success", 5)
    foreign.forget()
    foreign.open(partner.address)
    foreign.send_data(send(b"first", msn=5))
    foreign.send_data(send(b"second", msn=6))
    foreign.step_until(lambda: not foreign.unacknowledged)
    check(foreign.peer_flags == wire.REMEMBERS, "it does not say that it remembers")
    partner.wait("recv", "success", 6)
    check(partner.do("wait", 0) == "nothing", "one came twice")


def hear_open(foreign):
    """An open, and its sender's incarnation."""
    while True:
        kind, _, incarnation, body = foreign.hear_datagram(60)
        header = wire.read_reliable(body)
        check(kind == wire.RD and header.kind == wire.OPEN, header)
        return header, incarnation


@case()
def a_forged_challenge_is_ignored_by_the_library():
    """It does not repeat the nonce of the open, and the library neither counts nor answers it."""
    partner, foreign, to = meet()
    partner.must("send", to, 0, 10)
    header, _ = hear_open(foreign)
    check(header.content[:8] != bytes(8) and header.content[8:] == bytes(16), header)
    for i in range(20):
        foreign.send_control(wire.CHALLENGE, bytes(7) + bytes((i,)) + bytes(range(16)), foreign.to)
    wait_until(lambda: partner.do("counter", "drop_control") == "20", "not all were dropped")
    check(partner.do("wait", 0) == "nothing", "it gave up")
    foreign.step_until(lambda: foreign.delivered)
    partner.wait("send", "success")


@case()
def nothing_is_accepted_before_a_challenge():
    """By one who knows the epoch of the open, and the incarnation that the library shows."""
    partner, foreign, to = meet()
    partner.must("send", to, 0, 10)
    header, incarnation = hear_open(foreign)
    before = dropped(partner)
    for kind, content in ((wire.ACKNOWLEDGEMENT, b""), (wire.REFUSAL, bytes(4)), (wire.PROBE, b"")):
        foreign.send_reliable(wire.Reliable(kind, window=100, epoch=1, peer_epoch=header.epoch,
                                            peer_incarnation=incarnation, content=content))
    wait_until(lambda: dropped(partner) == before + 3, "not all were dropped")
    check(partner.do("wait", 0) == "nothing", "it was taken for an acknowledgement")
    foreign.step_until(lambda: foreign.delivered)
    partner.wait("send", "success")


@case()
def data_without_an_association_are_answered_by_a_reset():
    partner, foreign, _ = meet()
    foreign.to, foreign.epoch, foreign.peer_epoch = partner.address, 9, 4
    foreign.peer_incarnation = b"abcd"
    foreign.next_sequence = 0xFFFFFFFF
    foreign.send_data(send(b"out of nothing"))
    foreign.step_until(lambda: foreign.resets)
    header, _ = foreign.resets[0]
    check((header.epoch, header.peer_epoch, header.sequence) == (4, 9, 0xFFFFFFFF), header)
    check(header.peer_incarnation == foreign.own() and header.flags == 0, header)


if __name__ == "__main__":
    sys.exit(main())
