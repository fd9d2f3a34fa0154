#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tshark with the dissector says about datagrams one by one: golden bytes, generated ones, planted
faults, captures that are cut or hostile. Called with the name of one case; --list names all."""
import random
import re
import struct
import subprocess
import sys

from dissect import (ALICE, BOB, DROPS, PORT, PORTS, ROOT, SOUND, capture, check, check_sound, rows, tshark,
                     where, write_pcap)
from foreign_wire import crc32c
from harness import case, main

COUNT = 10_000


def views(*words):
    """(name, bytes, {field: value}) of each datagram, as the library's decoder sees it."""
    done = subprocess.run([where.views, *map(str, words)], capture_output=True, text=True, check=True)
    made = []
    for line in done.stdout.splitlines():
        name, octets, view = line.split("\t")
        fields = dict(word.split("=", 1) for word in view.split(" "))
        made.append((name, bytes.fromhex(octets), {f"diwarp.{key}": value for key, value in fields.items()}))
    return made


def golden():
    return {name: octets for name, octets, _ in views("golden")}


def sealed(octets):
    """With the CRC that goes with all but the last four bytes."""
    return octets[:-4] + struct.pack("<I", crc32c(octets[:-4]))


def comparable(row, view):
    """Of what tshark says, what the decoder has a word for. It says nothing of headers in an Error that
    are no segment's, of flags of other classes, and of what only the datagrams before can tell."""
    if view["diwarp.verdict"] != "accepted":
        return {key: row.get(key) for key in view}
    untold = {"diwarp.flags.solicited", "diwarp.rd.relative"} - view.keys()
    if "diwarp.error.ddp.opcode" not in view:
        untold |= {key for key in row if key.startswith("diwarp.error.ddp.")}
    return {key: value for key, value in row.items() if key not in untold}


def compare(made, *options):
    """Each field of the decoder's view stands in tshark's, and where the datagram is dropped, tshark
    names the same counter."""
    file = capture("views.pcap", [octets for _, octets, _ in made])
    names = sorted({name for _, _, view in made for name in view})
    seen = rows(file, names, *PORTS, *options)
    check(len(seen) == len(made), f"{len(seen)} frames, not {len(made)}")
    different = [f"{name} {octets.hex()}\n  decoder {view}\n  tshark  {row}"
                 for (name, octets, view), row in zip(made, seen) if comparable(row, view) != view]
    check(not different, f"{len(different)} of {len(made)} differ:\n" + "\n".join(different[:5]))


# --- What is right.

@case()
def golden_bytes_are_seen_as_the_decoder_sees_them():
    made = views("golden")
    check(len(made) == 23, len(made))
    check(all(view["diwarp.verdict"] == "accepted" for _, _, view in made), made)
    compare(made)


@case()
def golden_bytes_have_no_errors():
    names = ("diwarp.verdict", "diwarp.crc.status", "_ws.malformed", *("diwarp.drop_" + drop for drop in DROPS))
    file = capture("golden.pcap", list(golden().values()))
    for row in rows(file, names):
        check(row == {"diwarp.verdict": "accepted", "diwarp.crc.status": "1"}, row)


@case()
def a_golden_record_field_by_field():
    """Written by hand from the comments in tests/wire/golden_datagram.h."""
    wanted = {"diwarp.version": "2", "diwarp.class": "0", "diwarp.flags.immediate": "1",
              "diwarp.flags.solicited": "1", "diwarp.incarnation": str(0xA1B2C3D4),
              "diwarp.immediate": str(0x0102030405060708), "diwarp.ddp.tagged": "1", "diwarp.ddp.last": "0",
              "diwarp.ddp.version": "1", "diwarp.ddp.rdmap_version": "1", "diwarp.ddp.opcode": "12",
              "diwarp.ddp.stag": str(0x11223344), "diwarp.ddp.to": str(0x1008), "diwarp.ddp.msn": str(0xABCDEF),
              "diwarp.ddp.mo": "8", "diwarp.ddp.message_length": "16", "diwarp.payload": "61626364",
              "diwarp.crc": str(0xA1BE7C06)}
    check(rows(capture("record.pcap", [golden()["datagram_record"]]), wanted) == [wanted], wanted)


@case()
def golden_numbers_are_counted_from_the_first():
    names = ("diwarp.rd.relative", "diwarp.rd.relative_acknowledged", "diwarp.rd.early")
    made = golden()
    pairs = [(ALICE, BOB, made["reliable_data"]), (BOB, ALICE, made["reliable_acknowledgement"]),
             (BOB, ALICE, made["reliable_failure"]), (BOB, ALICE, made["reliable_refusal"])]
    relative, acknowledged, early = names
    check(rows(capture("numbers.pcap", pairs), names) == [
        {relative: "9", acknowledged: "4"}, {acknowledged: "6", early: "9,11,71"},
        {relative: "5", acknowledged: "9"}, {relative: "10", acknowledged: "9"}], "they are counted otherwise")


@case()
def examples_of_the_document_are_accepted():
    text = (ROOT / "docs" / "wire-format.md").read_text()
    blocks = [block for block in text.split("```")[1::2] if "version 2, class" in block]
    datagrams = [bytes.fromhex("".join(re.match(r"\s*(([0-9a-f]{2} )+)", line + " ").group(1)
                                       for line in block.strip().splitlines())) for block in blocks]
    crcs = [str(int(re.search(r"CRC, value (0x[0-9a-f]{8})", block).group(1), 16)) for block in blocks]
    seen = rows(capture("examples.pcap", datagrams), ("diwarp.verdict", "diwarp.crc"))
    check(seen == [{"diwarp.verdict": "accepted", "diwarp.crc": crc} for crc in crcs] and len(seen) == 9, seen)


@case((1, 10), (2, 100))
def generated(seed, percent):
    """So many percent of them damaged."""
    made = views("generate", seed, COUNT, percent)
    damaged = sum(name == "damaged" for name, _, _ in made)
    check(len(made) == COUNT and 0.9 * percent * COUNT / 100 <= damaged <= 1.1 * percent * COUNT / 100, damaged)
    check(all(view["diwarp.verdict"] == "accepted" for name, _, view in made if name == "valid"), "not valid")
    compare(made)


# --- Planted faults.

def planted():
    """{what: (datagram, counter)}: golden bytes, each with one fault."""
    made = golden()
    faults = {}

    def plant(name, what, counter, *changes, cut=0, more=b""):
        """changes: (place, byte)."""
        octets = bytearray(made[name])
        for place, value in changes:
            octets[place] = value
        body = bytes(octets[:-4])
        faults[what] = (sealed(body[:len(body) - cut] + more + bytes(4)), counter)

    send = "datagram_send"
    faults["a wrong CRC"] = (made[send][:-1] + bytes((made[send][-1] ^ 1,)), "crc")
    faults["a changed payload"] = (made[send][:28] + b"H" + made[send][29:], "crc")
    faults["eleven bytes"] = (made[send][:11], "truncated")
    plant(send, "version 1", "version", (0, 0x10))
    plant(send, "class 3", "class", (0, 0x23))
    plant(send, "flag 4", "flags", (1, 4))
    plant(send, "reserved bit of the prefix", "reserved", (3, 1))
    plant(send, "reserved bit of the DDP octet", "reserved", (8, 0x45))
    plant(send, "reserved bit of the RDMAP octet", "reserved", (9, 0x53))
    plant(send, "DV 2", "ddp_version", (8, 0x42))
    plant(send, "RV 0", "rdmap_version", (9, 0x03))
    plant(send, "opcode 7", "opcode", (9, 0x47))
    plant(send, "a tagged Send", "opcode", (8, 0xC1))
    plant(send, "queue 2", "queue_number", (17, 2))
    plant(send, "a solicited Send", "flags", (1, 2))
    plant("datagram_solicited", "not solicited", "flags", (1, 0))
    plant("datagram_read_request", "a Read Request with immediate data", "flags", (1, 1), cut=0, more=b"")
    faults["a Read Request with immediate data"] = (
        sealed(b"\x20\x01" + made["datagram_read_request"][2:8] + bytes(8) + made["datagram_read_request"][8:]),
        "flags")
    plant(send, "MO beyond 2^30", "oversized", (22, 0x40))
    for cut in (1, 5, 12 + 17):
        plant("datagram_read_request", f"a Read Request without its last {cut} bytes", "truncated", cut=cut)
    plant(send, "a cut DDP header", "truncated", cut=12 + 1)
    plant("datagram_record", "a cut Write-Record header", "truncated", cut=4 + 1)
    plant("datagram_record", "a cut tagged header", "truncated", cut=4 + 12 + 1)
    plant("datagram_send_immediate", "cut immediate data", "truncated", cut=2 + 18 + 1)
    plant("datagram_record", "L before the end", "contradiction", (16, 0xC1))
    plant("datagram_record", "no L at the end", "contradiction", (41, 0x0C))
    plant("datagram_record", "a payload beyond the message", "oversized", (41, 0x0B))
    plant("datagram_record", "a message beyond 2^30", "oversized", (38, 0x41))
    plant("datagram_record", "TO below MO", "bounds", (28, 0), (29, 7))
    high = [(22 + i, 0xFF) for i in range(7)]
    plant("datagram_record", "a record beyond the last offset", "bounds", *high, (29, 0xF9))
    request_high = [(30 + i, 0xFF) for i in range(5)]
    plant("datagram_read_request", "a sink beyond the last offset", "bounds", *request_high, (35, 0xFC), (36, 0),
          (37, 1))
    response_high = [(14 + i, 0xFF) for i in range(8)]
    plant("datagram_read_response", "a response beyond the last offset", "bounds", *response_high)
    plant("datagram_read_request", "a Read of 262145 bytes", "oversized", (41, 1))
    plant("datagram_read_request", "a Read Request without L", "contradiction", (8, 1))
    plant("datagram_read_request", "a Read Request with MO 1", "oversized", (25, 1))
    plant("datagram_read_request", "a Read Request with a payload", "oversized", more=b"x")
    plant("control_echo", "a control message with a flag", "flags", (1, 1))
    plant("control_echo", "control type 4", "control", (8, 4))
    plant("control_echo", "a reserved byte of a control message", "reserved", (9, 1))
    plant("control_echo", "a cut cookie", "truncated", cut=1)
    plant("control_echo", "a longer cookie", "control", more=b"x")
    plant("control_echo", "a cut type", "truncated", cut=25)
    plant("control_error_bare", "an Error without its fourth byte", "truncated", cut=1)
    plant("control_error_bare", "an Error with M alone", "control", (14, 0x80))
    plant("control_error_bare", "more behind an Error", "control", more=b"x")
    plant("control_error_bare", "a reserved bit of an Error", "reserved", (14, 1))
    plant("control_error_request", "a cut header in an Error", "truncated", cut=1)
    plant("control_error_record", "a cut Write-Record header in an Error", "control", cut=1)
    plant("control_error_record", "a segment shorter than its headers", "control", (17, 0x19))
    plant("control_error_record", "R without anything behind the DDP header", "control", (19, 0x42))
    plant("reliable_probe", "a cut RD header", "rd_header", cut=1)
    plant("reliable_probe", "RD kind 9", "rd_header", (8, 9))
    plant("reliable_probe", "RD kind 0", "rd_header", (8, 0))
    plant("reliable_probe", "a probe that is broken", "rd_header", (9, 1))
    plant("reliable_probe", "a probe with something behind it", "rd_header", more=b"x")
    plant("reliable_probe", "epoch 0", "rd_header", (15, 0))
    plant("reliable_probe", "peer epoch 0", "rd_header", (19, 0))
    plant("reliable_probe", "a probe with immediate data", "flags", (1, 1))
    plant("reliable_open", "an open with a peer epoch", "rd_header", (19, 1))
    plant("reliable_open", "an open that acknowledges", "rd_header", (31, 1))
    plant("reliable_acknowledgement", "half a word of a map", "rd_header", cut=4)
    plant("reliable_acknowledgement", "65 words of a map", "rd_header", more=bytes(63 * 8))
    plant("reliable_acknowledgement", "an acknowledgement with a sequence", "rd_header", (27, 1))
    plant("reliable_reset", "a reset with a window", "rd_header", (11, 1))
    plant("reliable_reset", "a reset that remembers", "rd_header", (9, 2))
    plant("reliable_skip", "a skip of a fifth kind", "rd_header", (32, 5))
    plant("reliable_skip", "a reserved byte of a skip", "rd_header", (33, 1))
    plant("reliable_data", "no data", "rd_header", cut=8 + 18 + 2)
    plant("reliable_data", "DV 3 over RD", "ddp_version", (40, 0x43))
    return faults


@case()
def each_planted_fault_is_marked_as_what_it_is():
    """By the verdict, and by an expert note of the same name, which is an error."""
    faults = planted()
    check(len(faults) > 60, len(faults))
    experts = ["diwarp.drop_" + drop for drop in DROPS]
    seen = rows(capture("planted.pcap", [octets for octets, _ in faults.values()]),
                ["diwarp.verdict", "_ws.expert.severity", "_ws.malformed", *experts], *PORTS)
    check(len(seen) == len(faults), seen)
    for (what, (octets, counter)), row in zip(faults.items(), seen):
        marked = [name for name in experts if name in row]
        check(row.get("diwarp.verdict") == f"drop_{counter}", f"{what}: {octets.hex()}: {row}")
        check(f"diwarp.drop_{counter}" in marked, f"{what}: {marked}")
        check(str(0x800000) in row["_ws.expert.severity"].split(","), f"{what}: {row}")
        check(("_ws.malformed" in row) == ("diwarp.drop_truncated" in row), f"{what}: {row}")


@case()
def offsets_at_the_last_one_are_no_fault():
    made = golden()
    record = bytearray(made["datagram_record"])
    record[22:30] = (2 ** 64 - 8).to_bytes(8, "big")  # 16 bytes from 2^64 - 16 on
    request = bytearray(made["datagram_read_request"])
    request[30:38] = (2 ** 64 - 262144).to_bytes(8, "big")
    response = bytearray(made["datagram_read_response"])
    response[14:22] = (2 ** 64 - 2).to_bytes(8, "big")
    check_sound(rows(capture("last.pcap", [sealed(bytes(octets)) for octets in (record, request, response)]), SOUND))


@case()
def what_must_not_come_to_a_group():
    made = golden()
    group = ("224.1.2.3", PORT)
    names = [name for name in made if not name.startswith(("datagram_send", "datagram_record", "datagram_empty",
                                                           "datagram_solicited"))]
    seen = rows(capture("group.pcap", [(ALICE, group, made[name]) for name in names]), ["diwarp.verdict"])
    check(len(seen) == 15 and all(row == {"diwarp.verdict": "drop_group"} for row in seen), seen)
    check_sound(rows(capture("group.pcap", [(ALICE, group, made[name]) for name in made if name not in names]), SOUND))


# --- Which datagrams are diwarp's.

def protocols(file, *options):
    return [row.get("diwarp.verdict") for row in rows(file, ("frame.number", "diwarp.verdict"), *options)]


@case()
def a_right_crc_tells_and_a_wrong_one_is_marked_behind_it():
    right = golden()["datagram_send"]
    wrong = right[:-1] + bytes((right[-1] ^ 1,))
    file = capture("found.pcap", [wrong, right, wrong, (BOB, ALICE, wrong), (BOB, ("10.0.0.9", 99), wrong)])
    check(protocols(file) == [None, "accepted", "drop_crc", "drop_crc", None], protocols(file))
    off = ("-o", "diwarp.heuristic:FALSE")
    check(protocols(file, *off) == [None] * 5, "it is found in spite of the preference")
    check(protocols(file, *off, *PORTS) == ["drop_crc", "accepted", "drop_crc", "drop_crc", "drop_crc"], "by port")
    check(protocols(file, "-d", f"udp.port=={PORT},diwarp")[0] == "drop_crc", "Decode As")


@case()
def crcs_need_not_be_checked():
    right = golden()["datagram_send"]
    wrong = right[:-1] + bytes((right[-1] ^ 1,))
    seen = rows(capture("unchecked.pcap", [wrong]), ("diwarp.verdict", "diwarp.crc.status"), *PORTS, "-o",
                "diwarp.check_crc:FALSE")
    check(seen == [{"diwarp.verdict": "accepted", "diwarp.crc.status": "2"}], seen)


@case()
def other_protocols_are_left_alone():
    chance = random.Random(1)
    noise = [chance.randbytes(chance.randrange(1, 200)) for _ in range(2000)]
    check(protocols(capture("noise.pcap", noise)) == [None] * 2000, "noise is taken for diwarp's")


# --- Captures that are cut or hostile. tshark() fails at any error of Lua's.

def look_at_everything(file, *options):
    """Twice, with every tree, as the window does when one scrolls."""
    tshark("-r", file, "-2", "-V", *PORTS, *options)
    tshark("-r", file, *PORTS, *options)


@case()
def every_cut_of_a_capture():
    """Of each golden datagram the first bytes alone are in the capture: 28 are IP and UDP."""
    packets, cuts, wanted = [], [], []
    for octets in golden().values():
        for length in range(1, len(octets) + 1):
            packets.append(octets)
            cuts.append(28 + length)
            wanted.append("accepted" if length == len(octets) else "capture_cut")
    file = capture("cut.pcap", packets, cut=cuts)
    verdicts = protocols(file, "-2", *PORTS)
    check(verdicts == wanted, [(packet.hex(), cut, verdict) for packet, cut, verdict, right
                               in zip(packets, cuts, verdicts, wanted) if verdict != right][:5])
    look_at_everything(file)


@case()
def every_cut_of_a_datagram():
    """With and without a CRC that goes with it."""
    cuts = [octets[:length] for octets in golden().values() for length in range(1, len(octets))]
    cuts += [sealed(cut) for cut in cuts if len(cut) >= 12]
    look_at_everything(capture("cuts.pcap", cuts))


@case()
def random_bytes():
    chance = random.Random(2)
    packets = [chance.randbytes(chance.randrange(0, 120)) for _ in range(1000)]
    look_at_everything(capture("random.pcap", packets))


@case((3,), (4,))
def random_bytes_behind_a_right_prefix_with_a_right_crc(seed):
    chance = random.Random(seed)
    packets = [sealed(bytes((0x20 | chance.randrange(3), chance.randrange(4), 0, 0)) +
                      chance.randbytes(chance.randrange(4, 120)) + bytes(4)) for _ in range(1000)]
    look_at_everything(capture("prefix.pcap", packets))


@case((5, 262144), (6, 70))
def mutated_datagrams_both_ways(seed, cut):
    """Between few ends with few numbers, so that the tracker connects what does not belong together."""
    chance = random.Random(seed)
    made = list(golden().values())
    packets = []
    for _ in range(1000):
        octets = bytearray(chance.choice(made))
        for _ in range(chance.randrange(4)):
            octets[chance.randrange(4, len(octets) - 4)] = chance.choice((0, 1, 2, 0x7F, 0x80, 0xFF))
        ends = chance.choice(((ALICE, BOB), (BOB, ALICE), (ALICE, ALICE)))
        packets.append((*ends, sealed(bytes(octets))))
    look_at_everything(capture("mutated.pcap", packets, cut=cut))


@case()
def tables_with_room_for_nothing():
    made = [octets for _, octets, _ in views("generate", 7, 200, 20)]
    packets = [(ALICE, BOB, octets) if number % 2 else (BOB, ALICE, octets) for number, octets in enumerate(made)]
    file = capture("small.pcap", packets)
    nothing, little = ([f"diwarp.{name}:{count}" for name in ("entries", "frames", "megabytes")]
                       for count in (0, 3))
    for preferences in (nothing, little, nothing[2:], ["diwarp.reassemble:FALSE"]):
        tshark("-r", file, "-2", "-V", *PORTS, *(word for text in preferences for word in ("-o", text)))


@case()
def udp_lengths_that_lie():
    """The UDP header announces fewer or more bytes than there are."""
    packet = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 0, 0, 0, 64, 17, 0, bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2)))
    packets = []
    for octets in golden().values():
        for length in (0, 7, 8, 9, 20, 8 + len(octets), 9 + len(octets), 65535):
            udp = struct.pack(">HHHH", PORT, PORT, length, 0) + octets
            packets.append(packet[:2] + struct.pack(">H", 20 + len(udp)) + packet[4:] + udp)
    look_at_everything(write_pcap("lengths.pcap", packets))


if __name__ == "__main__":
    sys.exit(main())
