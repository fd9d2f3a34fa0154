#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the dissector makes of datagrams together: messages, Reads, associations, and notes on what is
missing. The datagrams are those of the second implementation. Called with the name of one case; --list names
all."""
import struct
import sys

from dissect import ALICE, BOB, PORT, SOUND, capture, check, check_sound, notes, rows
import foreign_wire as wire
from foreign_names import first_sequence
from harness import case, main

NAMES = {ALICE: bytes((0, 0, 0, 1)), BOB: bytes((0, 0, 0, 2))}
EPOCHS = {ALICE: 3, BOB: 2}


def datagram(source, destination, segment):
    return source, destination, wire.datagram(wire.UD, segment.flags(), NAMES[source], segment.body())


def control(source, destination, kind, content):
    return source, destination, wire.datagram(wire.CONTROL, 0, NAMES[source], wire.control(kind, content))


def send(msn, payload, at=0, last=True, **more):
    return datagram(ALICE, BOB, wire.Segment(wire.SEND, msn=msn, offset=at, last=last, payload=payload, **more))


def record(msn, payload, at, length, stag=5, **more):
    return datagram(ALICE, BOB, wire.Segment(
        wire.WRITE_RECORD, msn=msn, offset=at, last=at + len(payload) == length, stag=stag,
        tagged_offset=1000 + at, message_length=length, payload=payload, **more))


def request(size, sink=(7, 0x1234), msn=1, nonce=9):
    return datagram(ALICE, BOB, wire.Segment(wire.READ_REQUEST, word=nonce, msn=msn, sink=sink, read_length=size,
                                             source=(5, 0)))


def response(payload, at, last, sink=(7, 0x1234)):
    return datagram(BOB, ALICE, wire.Segment(wire.READ_RESPONSE, last=last, stag=sink[0],
                                             tagged_offset=sink[1] + at, payload=payload))


def first(source, destination):
    return first_sequence((NAMES[source], EPOCHS[source]), (NAMES[destination], EPOCHS[destination]))


def reliable(source, kind, number=None, acknowledged=0, segment=None, content=b"", **more):
    """Numbers count from 1; a number of None is 0 on the wire."""
    destination = BOB if source == ALICE else ALICE
    header = wire.Reliable(
        kind, window=64, epoch=EPOCHS[source], peer_epoch=EPOCHS[destination],
        peer_incarnation=NAMES[destination],
        sequence=0 if number is None else (first(source, destination) + number - 1) % 2 ** 32,
        acknowledged=(first(destination, source) + acknowledged - 1) % 2 ** 32,
        content=segment.body() if segment else content)
    for name, value in more.items():
        setattr(header, name, value)
    octets = wire.datagram(wire.RD, segment.flags() if segment else 0, NAMES[source], header.body())
    return source, destination, octets


def data(number, payload=b"x", acknowledged=0, source=ALICE, **more):
    segment = wire.Segment(wire.SEND, msn=more.pop("msn", number), payload=payload, **more)
    return reliable(source, wire.DATA, number, acknowledged, segment)


def check_notes(datagrams, wanted, *options):
    """The notes of each frame, with two passes."""
    seen = notes(capture("notes.pcap", datagrams), "-2", *options)
    check(seen == wanted, f"{seen}, not {wanted}")


def check_field(datagrams, name, wanted, *options):
    """A field of each frame, with two passes; None where it has none."""
    seen = [row.get(f"diwarp.{name}") for row in
            rows(capture("fields.pcap", datagrams), ("frame.number", f"diwarp.{name}"), "-2", *options)]
    check(seen == wanted, f"{name}: {seen}, not {wanted}")


# --- Messages over UD.

@case()
def a_send_in_order_is_reassembled():
    packets = [send(1, b"abc", last=False), send(1, b"de", 3, last=False), send(1, b"fgh", 5)]
    check_notes(packets, [set()] * 3)
    check_field(packets, "message.data", [None, None, b"abcdefgh".hex()])
    check_field(packets, "message.length", ["8"] * 3)
    check_field(packets, "message.first_frame", ["1"] * 3)
    check_field(packets, "message.complete_frame", ["3"] * 3)
    check_field(packets, "message.frame", [None, None, "1,2,3"])


@case()
def a_record_out_of_order_is_reassembled():
    packets = [record(1, b"ef", 4, 6), record(1, b"ab", 0, 6), record(1, b"cd", 2, 6)]
    check_notes(packets, [{"gap"}, set(), set()])
    check_field(packets, "message.data", [None, None, b"abcdef".hex()])


@case()
def a_lost_segment_is_a_gap_and_leaves_the_message_incomplete():
    packets = [send(1, b"abc", last=False), send(1, b"fgh", 5), send(2, b"x")]
    check_notes(packets, [set(), {"gap", "incomplete"}, set()])
    check_notes([record(1, b"ab", 0, 6), record(1, b"cd", 2, 6)], [set(), {"incomplete"}])
    check_notes([send(1, b"abc", last=False)], [{"incomplete"}])


@case()
def duplicates_and_contradictions():
    check_notes([send(1, b"abc"), send(1, b"abc")], [set(), {"duplicate"}])
    check_notes([record(1, b"abcd", 0, 8), record(1, b"cdef", 2, 8), record(1, b"efgh", 4, 8)],
                [set(), {"contradiction"}, set()])
    check_notes([record(1, b"ab", 0, 4), record(1, b"cd", 2, 4, stag=6)], [set(), {"contradiction"}])
    check_notes([send(1, b"ab", last=False), send(1, b"cd", 2, immediate=3)], [set(), {"contradiction"}])


@case()
def an_msn_that_is_not_there():
    packets = [send(2 ** 32 - 1, b"a"), send(0, b"b"), send(3, b"c"), record(9, b"x", 0, 1), send(2, b"late"),
               send(4, b"d")]
    check_notes(packets, [set(), set(), {"msn_gap"}, set(), set(), set()])


@case()
def empty_messages_are_whole():
    check_notes([send(1, b""), record(1, b"", 0, 0)], [set(), set()])
    check_field([send(1, b""), record(1, b"", 0, 0)], "message.complete_frame", ["1", "2"])


@case()
def more_ranges_than_a_receiver_has():
    packets = [record(1, b"x", 2 * i, 1000) for i in range(260)]
    seen = notes(capture("ranges.pcap", packets))
    check([number for number, of in enumerate(seen) if "forgotten" in of] == [256, 257, 258, 259], seen)


@case()
def payload_beyond_the_bound_is_not_kept():
    """The message is followed all the same."""
    packets = [record(1, bytes(1000), 0, 2000), record(1, bytes(1000), 1000, 2000)]
    for kept, data_of in (("1", [None, bytes(2000).hex()]), ("0", [None, None])):
        check_field(packets, "message.data", data_of, "-o", f"diwarp.megabytes:{kept}")
        check_field(packets, "message.complete_frame", ["2", "2"], "-o", f"diwarp.megabytes:{kept}")


@case()
def the_oldest_is_forgotten_where_a_table_is_full():
    packets = [record(msn, b"ab", 0, 4) for msn in (1, 2, 3)] + [record(msn, b"cd", 2, 4) for msn in (1, 2, 3)]
    whole = [None, None, "6", None, None, "6"]
    check_field(packets, "message.complete_frame", whole[:2] + [None] * 4, "-o", "diwarp.entries:1")
    check_field(packets, "message.complete_frame", ["4", "5", "6"] * 2)
    check_field(packets, "message.first_frame", [None] * 6, "-o", "diwarp.reassemble:FALSE")


# --- Reads, and control messages.

@case()
def a_read_is_matched_and_reassembled():
    packets = [request(5), response(b"abc", 0, False), response(b"de", 3, True)]
    check_notes(packets, [set()] * 3)
    check_field(packets, "read.response_frame", ["2", None, None])
    check_field(packets, "read.request_frame", [None, "1", "1"])
    check_field(packets, "read.time", [None, "0.001", "0.002"])
    check_field(packets, "message.data", [None, None, b"abcde".hex()])


@case()
def a_sink_that_wraps_in_its_low_half():
    sink = (7, 0xFFFFFFFE)
    packets = [request(5, sink), response(b"abc", 0, False, sink), response(b"de", 3, True, sink)]
    check_notes(packets, [set()] * 3)
    check_field(packets, "message.complete_frame", ["3"] * 3)


@case()
def reads_without_an_answer_and_answers_without_a_read():
    check_notes([request(5)], [{"unanswered"}])
    check_notes([response(b"abc", 0, False)], [{"unmatched"}])
    check_notes([request(5), response(b"abcdef", 0, True)], [{"unanswered"}, {"unmatched"}])
    check_notes([request(5), response(b"abc", 0, True)], [set(), {"contradiction", "incomplete"}])
    check_notes([request(5), response(b"de", 3, True)], [set(), {"gap", "incomplete"}])


@case()
def a_challenge_its_echo_and_the_read_again():
    cookie = bytes(range(16))
    proof = wire.challenge(0x1234, cookie)
    packets = [request(5), control(BOB, ALICE, wire.CHALLENGE, proof), control(ALICE, BOB, wire.ECHO, proof),
               request(5), response(b"abcde", 0, True)]
    check_notes(packets, [set()] * 5)
    check_field(packets, "about_frame", [None, "1", "2", None, None])
    check_field(packets, "read.request_frame", [None, None, None, None, "4"])
    other = wire.challenge(0x1235, bytes(16))
    check_notes([request(5), control(BOB, ALICE, wire.CHALLENGE, other), control(BOB, ALICE, wire.ECHO, other)],
                [{"unanswered"}, {"unmatched"}, {"unmatched"}])


@case()
def an_error_names_what_it_is_about():
    def error(code, of):
        return control(BOB, ALICE, wire.ERROR, wire.error(code, of))
    sent = wire.Segment(wire.SEND, msn=4, payload=b"x")
    written = wire.Segment(wire.WRITE_RECORD, msn=4, message_length=1, payload=b"x")
    asked = wire.Segment(wire.READ_REQUEST, word=9, msn=1, sink=(7, 0x1234), read_length=5, source=(5, 0))
    packets = [datagram(ALICE, BOB, segment) for segment in (sent, written, asked)]
    packets += [error((0x12, 2), sent), error((0x11, 0), written), error((0x01, 2), asked)]
    check_field(packets, "about_frame", [None, None, None, "1", "2", "3"])
    check_notes(packets, [set(), set(), {"unanswered"}] + [{"reported"}] * 3)
    check_field(packets, "error.layer", [None, None, None, "1", "1", "0"])


# --- Reliable datagrams.

@case()
def numbers_and_what_acknowledges_them():
    packets = [data(1), data(2), data(3), reliable(BOB, wire.ACKNOWLEDGEMENT, acknowledged=2),
               reliable(BOB, wire.ACKNOWLEDGEMENT, acknowledged=3)]
    check_notes(packets, [set()] * 5)
    check_field(packets, "rd.relative", ["1", "2", "3", None, None])
    check_field(packets, "rd.acknowledged_in", ["4", "4", "5", None, None])
    check_field(packets, "rd.acknowledged_frame", [None, None, None, "2", "3"])
    check_field(packets, "rd.newly", ["0", "0", "0", "2", "1"])
    check_sound(rows(capture("sound.pcap", packets), SOUND))


@case()
def a_lost_number_shows_as_a_gap_in_the_map_and_sent_again():
    early = wire.map_of(1, {3, 4})
    packets = [data(1), data(3), data(4), reliable(BOB, wire.ACKNOWLEDGEMENT, acknowledged=1, content=early),
               data(2), data(3), reliable(BOB, wire.ACKNOWLEDGEMENT, acknowledged=4)]
    check_notes(packets, [set(), {"sequence_gap"}, set(), {"map_gap"}, set(), {"sent_again", "duplicate"}, set()])
    check_field(packets, "rd.early", [None, None, None, "3,4", None, None, None])
    check_field(packets, "rd.shown_in", [None, "4", "4", None, None, "4", None])
    check_field(packets, "rd.sent_before", [None] * 5 + ["2", None])
    check_field(packets, "rd.acknowledged_in", ["4", "7", "7", None, "7", "7", None])


@case()
def a_message_of_several_numbers_is_reassembled():
    packets = [data(1, b"ab", msn=5, last=False), data(3, b"ef", msn=5, offset=4),
               data(2, b"cd", msn=5, offset=2, last=False)]
    check_notes(packets, [set(), {"sequence_gap"}, set()])
    check_field(packets, "message.data", [None, None, b"abcdef".hex()])


@case()
def an_open_its_challenge_and_what_follows():
    nonce, cookie = bytes(range(8)), bytes(range(1, 17))

    def opening(content, peer):
        header = wire.Reliable(wire.OPEN, window=64, epoch=EPOCHS[ALICE], peer_incarnation=peer, content=content)
        return ALICE, BOB, wire.datagram(wire.RD, 0, NAMES[ALICE], header.body())
    packets = [opening(nonce + bytes(16), bytes(4)), control(BOB, ALICE, wire.CHALLENGE, nonce + cookie),
               opening(nonce + cookie, NAMES[BOB]), reliable(BOB, wire.ACKNOWLEDGEMENT), data(1)]
    check_sound(rows(capture("open.pcap", packets), SOUND))
    check_field(packets, "about_frame", [None, "1", "2", None, None])
    check_field(packets, "rd.relative_acknowledged", [None, None, None, "0", "0"])


@case()
def refusals_skips_failures_and_resets():
    refusal = reliable(BOB, wire.REFUSAL, acknowledged=0, content=bytes((0x11, 0, 0, 0)),
                       sequence=first(ALICE, BOB))
    skip = reliable(ALICE, wire.SKIP, 1, content=wire.skip_of(wire.SENDS, 1))
    failure = reliable(BOB, wire.FAILURE, 1, acknowledged=1, content=wire.failure_of(7, (1, 2)))
    header = wire.Reliable(wire.RESET, epoch=EPOCHS[BOB], peer_epoch=EPOCHS[ALICE], peer_incarnation=NAMES[ALICE],
                           sequence=(first(ALICE, BOB) + 1) % 2 ** 32)
    reset = (BOB, ALICE, wire.datagram(wire.RD, 0, struct.pack(">I", 99), header.body()))
    packets = [data(1), refusal, skip, failure, data(2), reset]
    check_notes(packets, [set(), {"reported"}, {"sent_again"}, {"reported"}, set(), {"reset"}])
    check_field(packets, "about_frame", [None, "1", None, None, None, "5"])
    check_field(packets, "rd.relative", ["1", "1", "1", "1", "2", "2"])


@case()
def reads_over_rd():
    asked = wire.Segment(wire.READ_REQUEST, msn=1, sink=(7, 0), read_length=4, source=(5, 0))
    answers = [wire.Segment(wire.READ_RESPONSE, stag=7, tagged_offset=at, last=at == 2, payload=b"ab")
               for at in (0, 2)]
    packets = [reliable(ALICE, wire.DATA, 1, segment=asked),
               *(reliable(BOB, wire.DATA, number + 1, 1, answer) for number, answer in enumerate(answers)),
               reliable(ALICE, wire.ACKNOWLEDGEMENT, acknowledged=2)]
    check_sound(rows(capture("reads.pcap", packets), SOUND))
    check_field(packets, "read.request_frame", [None, "1", "1", None])
    check_field(packets, "message.data", [None, None, b"abab".hex(), None])


@case()
def what_waits_and_what_has_no_incarnation():
    waits = reliable(BOB, wire.ACKNOWLEDGEMENT, flags=wire.WAITS)
    source, destination, octets = send(1, b"x")
    zero = octets[:4] + bytes(4) + octets[8:-4]
    check_notes([waits, (source, destination, zero + struct.pack("<I", wire.crc32c(zero)))],
                [{"waits"}, {"zero_incarnation"}])


@case()
def two_sources_do_not_mix():
    other = ("10.0.0.3", PORT)
    one, two = send(1, b"abc", last=False), send(1, b"def", 3)
    packets = [one, (other, BOB, two[2])]
    check_notes(packets, [{"incomplete"}, {"gap", "incomplete"}])


if __name__ == "__main__":
    sys.exit(main())
