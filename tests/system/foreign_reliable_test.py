#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""RD queue pairs of the library and of foreign_reliable.py, which was written from docs/wire-format.md
alone, with each other. Called with the name of one case; --list names all."""
import sys

import foreign_wire as wire
from foreign_partner import Partner, pattern
from foreign_reliable import ReliableQueuePair
from harness import case, check, main

INVALID_STAG, NO_BUFFER = (0x11, 0), (0x12, 2)
NO_READ_ACCESS = (0x01, 2)


def meet():
    partner = Partner("rd")
    foreign = ReliableQueuePair()
    return partner, foreign, f"127.0.0.1:{foreign.port}"


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
    partner, foreign, to = meet()
    partner.must("send", to, 0, 10)
    foreign.step_until(lambda: foreign.delivered)
    partner.wait("send", "success")
    foreign.restart()
    partner.must("send", to, 0, 20)
    foreign.step_until(lambda: foreign.resets_sent)
    partner.wait("send", "peer-was-restarted")
    partner.must("send", to, 0, 30)
    foreign.step_until(lambda: foreign.delivered)
    check([len(segment.payload) for segment in foreign.segments()] == [30], "not the new one alone")
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
    check(header.peer_incarnation == foreign.own() and not header.broken, header)


if __name__ == "__main__":
    sys.exit(main())
