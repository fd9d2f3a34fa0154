#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""UD queue pairs of the library and of foreign_peer.py, which was written from docs/wire-format.md alone,
with each other. Called with the name of one case; --list names all."""
import dataclasses
import pathlib
import re
import sys

import foreign_wire as wire
from foreign_partner import Partner, pattern
from foreign_peer import QueuePair
from harness import case, check, main

INVALID_STAG, NO_BUFFER = (0x11, 0), (0x12, 2)
NO_READ_ACCESS = (0x01, 2)


def meet():
    partner = Partner("ud")
    foreign = QueuePair()
    return partner, foreign, f"127.0.0.1:{foreign.port}"


@case()
def examples_of_the_documentation():
    """Each is a datagram that can be read, with a right CRC."""
    document = pathlib.Path(__file__).parents[2] / "docs" / "wire-format.md"
    examples = [block for block in document.read_text().split("```")[1::2] if "version 2, class" in block]
    kinds = []
    for example in examples:
        octets = bytes.fromhex("".join(re.match(r"\s*(([0-9a-f]{2} )+)", line + " ").group(1)
                                       for line in example.strip().splitlines()))
        kind, flags, _, body = wire.open_datagram(octets)
        kinds.append(kind)
        if kind == wire.UD:
            wire.read_segment(flags, body)
        elif kind == wire.RD:
            wire.read_reliable(body)
    check({*kinds} == {wire.UD, wire.RD, wire.CONTROL} and len(kinds) == 9, kinds)


@case()
def sends_to_the_library():
    partner, foreign, _ = meet()
    for size in (0, 1, 999, 1000, 5000):
        partner.must("receive", 0, 8000)
        foreign.send(pattern(size, 3), partner.address, immediate=7, solicited=True, size=1000)
        partner.wait("recv", "success", size, 1, 7)
        check(partner.contents(0, size) == pattern(size, 3), size)


@case()
def sends_of_the_library():
    partner, foreign, to = meet()
    partner.must("fill", 0, 5000, 9)
    partner.must("send", to, 0, 5000, 77)
    partner.wait("send", "success")
    came, offset = b"", 0
    while offset < 5000:
        segment, source = foreign.hear()
        check(source == partner.address, source)
        check((segment.opcode, segment.offset, segment.word) == (wire.SEND, offset, 0), segment)
        check(segment.immediate == 77 and not segment.solicited, segment)
        offset += len(segment.payload)
        check(segment.last == (offset == 5000), segment)
        came += segment.payload
    check(came == pattern(5000, 9), "other bytes")


@case()
def records_to_the_library():
    partner, foreign, _ = meet()
    for size in (0, 1, 1000, 5500):
        for segment in reversed(foreign.record_segments(pattern(size, 5), partner.stag, 300)):
            foreign.send_segment(segment, partner.address)
        whole = [f"0+{size}"] if size else []
        words = partner.wait("recv_write_record", "success", size, 0, "none", 300, size)
        check(words[7:] == whole, words)
        check(partner.contents(300, size) == pattern(size, 5), size)


@case()
def records_with_losses_to_the_library():
    partner, foreign, _ = meet()
    partner.must("fill", 0, 5000, 0)
    segments = foreign.record_segments(pattern(5000, 5), partner.stag, 0, immediate=2 ** 64 - 1,
                                       solicited=True)
    for lost in (3, 0):
        del segments[lost]
    for segment in segments:
        foreign.send_segment(segment, partner.address)
    words = partner.wait("recv_write_record", "success", 5000, 1, 2 ** 64 - 1, 0, 3000)
    check(words[7:] == ["1000+2000", "4000+1000"], words)
    untouched, written = pattern(5000, 0), pattern(5000, 5)
    check(partner.contents(0, 5000) == untouched[:1000] + written[1000:3000] +
          untouched[3000:4000] + written[4000:], "other bytes")


@case()
def records_of_the_library():
    partner, foreign, to = meet()
    partner.must("fill", 0, 10_000, 1)
    partner.must("write_record", to, 0x11223344, 2 ** 40, 0, 10_000, 5)
    partner.wait("write_record", "success")
    came, msns = bytearray(10_000), set()
    ended = False
    while not ended:
        segment, _ = foreign.hear()
        check(segment.opcode == wire.WRITE_RECORD and segment.stag == 0x11223344, segment)
        check(segment.tagged_offset - segment.offset == 2 ** 40, segment)
        check((segment.message_length, segment.immediate, segment.solicited) == (10_000, 5, True),
              segment)
        end = segment.offset + len(segment.payload)
        ended = segment.last
        check(ended == (end == 10_000), segment)
        came[segment.offset:end] = segment.payload
        msns.add(segment.msn)
    check(bytes(came) == pattern(10_000, 1) and len(msns) == 1, msns)
    partner.must("write_record", to, 1, 2, 0, 0)
    empty, _ = foreign.hear()
    check((empty.last, empty.tagged_offset, empty.offset, empty.message_length, empty.payload) ==
          (True, 2, 0, 0, b""), empty)
    check({empty.msn} == {(msn + 1) % 2 ** 32 for msn in msns}, (empty, msns))


@case()
def reads_of_the_library_s_memory():
    """The first is challenged, but not those that cost no more than they bring."""
    partner, foreign, _ = meet()
    partner.must("fill", 0, 400_000, 11)
    came, challenges = foreign.read(partner.stag, 0, 0, partner.address)
    check((came, challenges) == (b"", 0), (came, challenges))
    came, challenges = foreign.read(partner.stag, 5, 32, partner.address)
    check((came, challenges) == (pattern(37, 11)[5:], 0), (came, challenges))
    came, challenges = foreign.read(partner.stag, 5, 33, partner.address)
    check((came, challenges) == (pattern(38, 11)[5:], 1), (came, challenges))
    came, challenges = foreign.read(partner.stag, 1, 100_000, partner.address)
    check((came, challenges) == (pattern(100_001, 11)[1:], 0), challenges)


def next_request(foreign, partner):
    request, source = foreign.hear()
    check(source == partner.address and request.opcode == wire.READ_REQUEST, request)
    check(request.last and request.offset == 0 and request.payload == b"", request)
    return request


@case()
def reads_by_the_library():
    """From a target that challenges, of more than one request may ask for."""
    partner, foreign, to = meet()
    size = wire.MOST_TO_READ + 5000
    memory = pattern(size, 13)
    partner.must("read", to, 0xABCD, 100, 0, size, 5000, 0)
    echoed, challenged, sinks = None, set(), set()
    answered = 0
    while answered < size:
        what, _ = foreign.hear()
        if isinstance(what, tuple):
            check(what == (wire.ECHO, echoed), what)
            continue
        check(what.opcode == wire.READ_REQUEST and what.source[0] == 0xABCD, what)
        check(what.read_length <= wire.MOST_TO_READ , what)
        if not challenged:
            challenged.add(what.msn)
            echoed = wire.challenge(what.sink[1], bytes(range(16)))
            foreign.send_control(wire.CHALLENGE, echoed, partner.address)
            continue
        begin = what.source[1] - 100
        sinks.add(what.sink)
        # Large segments, so that the partner's socket has room for all.
        for segment in reversed(foreign.response_segments(
                what, memory[begin:begin + what.read_length], size=30_000)):
            foreign.send_segment(segment, partner.address)
        answered += what.read_length
    words = partner.wait("rdma_read", "success")
    check(int(words[6]) == size, words)
    for each in zip(*sinks):
        check(len(set(each)) == 2, sinks)  # neither STag nor offset comes twice
    check(partner.contents(0, size) == memory, "other bytes")


@case()
def gaps_are_asked_for_again_by_the_library():
    partner, foreign, to = meet()
    partner.must("read", to, 1, 0, 0, 5000, 2000, 1)
    first = next_request(foreign, partner)
    segments = foreign.response_segments(first, pattern(5000, 2))
    for segment in segments[:2] + segments[3:]:
        foreign.send_segment(segment, partner.address)
    again = next_request(foreign, partner)
    check((again.source, again.read_length) == ((1, 2000), 1000), again)
    check(again.sink[0] != first.sink[0] and again.msn != first.msn, again)
    foreign.send_segment(segments[2], partner.address)  # to the STag of before: too late
    foreign.send_segment(foreign.response_segments(again, pattern(3000, 2)[2000:])[0],
                         partner.address)
    partner.wait("rdma_read", "success")
    check(partner.contents(0, 5000) == pattern(5000, 2), "other bytes")
    check(partner.do("counter", "drop_response") == "1", "the late segment was not dropped")


@case()
def reads_that_time_out_tell_what_came():
    partner, foreign, to = meet()
    partner.must("read", to, 1, 0, 0, 5000, 2000, 0)
    request = next_request(foreign, partner)
    for at in (4, 1):
        foreign.send_segment(foreign.response_segments(request, pattern(5000, 2))[at],
                             partner.address)
    words = partner.wait("rdma_read", "timed-out")
    check(words[6:] == ["2000", "1000+1000", "4000+1000"], words)


@case()
def a_refusal_ends_the_library_s_read():
    partner, foreign, to = meet()
    partner.must("read", to, 1, 0, 0, 5000, 5000, 0)
    request = next_request(foreign, partner)
    foreign.send_error(NO_READ_ACCESS, request, partner.address)
    partner.wait("rdma_read", "remote-access-error")


@case()
def a_forged_error_ends_no_read_of_the_library():
    """Neither the nonce nor the MSN of the request alone are enough."""
    partner, foreign, to = meet()
    partner.must("read", to, 1, 0, 0, 10, 0, 0)
    request = next_request(foreign, partner)
    for forged in (dataclasses.replace(request, word=request.word ^ 1),
                   dataclasses.replace(request, msn=request.msn ^ 1)):
        foreign.send_error(NO_READ_ACCESS, forged, partner.address)
    for segment in foreign.response_segments(request, pattern(10, 2)):
        foreign.send_segment(segment, partner.address)
    partner.wait("rdma_read", "success")


@case()
def a_forged_challenge_is_ignored_by_the_library():
    """It does not repeat the Data Sink TO."""
    partner, foreign, to = meet()
    partner.must("read", to, 1, 0, 0, 10, 0, 0)
    request = next_request(foreign, partner)
    for i in range(20):
        foreign.send_control(wire.CHALLENGE, wire.challenge(request.sink[1] ^ 1 << i, bytes(16)),
                             partner.address)
    right = wire.challenge(request.sink[1], bytes(range(16)))
    foreign.send_control(wire.CHALLENGE, right, partner.address)
    what, _ = foreign.hear()
    check(what == (wire.ECHO, right), what)
    check(next_request(foreign, partner) == request, "not the same request again")
    for segment in foreign.response_segments(request, pattern(10, 2)):
        foreign.send_segment(segment, partner.address)
    partner.wait("rdma_read", "success")
    check(partner.do("counter", "drop_control") == "20", "not all were dropped")


@case()
def each_peer_is_shown_another_incarnation():
    partner, foreign, to = meet()
    other = QueuePair()
    shown = []
    for peer in (foreign, foreign, other):
        partner.must("send", f"127.0.0.1:{peer.port}", 0, 1)
        shown.append(wire.open_datagram(peer.socket.recv(65536))[2])
    check(shown[0] == shown[1] != shown[2], shown)


@case()
def the_library_reports_errors():
    """With as much of the cause as is no longer than it."""
    partner, foreign, _ = meet()

    def error_about(segment):
        foreign.send_segment(segment, partner.address)
        (kind, content), source = foreign.hear()
        check(kind == wire.ERROR and source == partner.address, kind)
        return wire.read_error(content)

    stranger = partner.stag ^ 0x5A5A5A5A
    long, = foreign.record_segments(bytes(10), stranger, 7)
    code, told = error_about(long)
    check(code == INVALID_STAG and told.headers() == long.headers(), (code, told))
    short, = foreign.record_segments(bytes(9), stranger, 7)
    code, told = error_about(short)
    check(code == INVALID_STAG and told.tagged_offset == 7 and told.message_length == 0, told)
    bare = wire.Segment(wire.SEND, msn=5, payload=bytes(9))
    check(error_about(bare) == (NO_BUFFER, None), "headers")
    bare.msn, bare.payload = 6, bytes(10)
    code, told = error_about(bare)
    check(code == NO_BUFFER and told.msn == 6, (code, told))
    request = wire.Segment(wire.READ_REQUEST, word=0x600DF00D, msn=8, read_length=9,
                           source=(stranger, 0))
    code, told = error_about(request)
    check(code == (0x01, 0) and told.read_length == 0, (code, told))
    check((told.msn, told.word) == (8, 0x600DF00D), told)


@case()
def errors_are_told_to_the_library_s_application():
    partner, foreign, to = meet()
    partner.must("write_record", to, 0x11223344, 0, 0, 10)
    partner.wait("write_record", "success")
    segment, _ = foreign.hear()
    foreign.send_error(INVALID_STAG, segment, partner.address)
    for _ in range(1000):
        told = partner.do("error")
        if told != "nothing":
            break
        partner.do("wait", 10)
    check(told == f"1 1 1 0 12 {segment.msn}", told)


if __name__ == "__main__":
    sys.exit(main())
