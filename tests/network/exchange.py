# SPDX-License-Identifier: Apache-2.0
"""Exchanges between two peers, and what may come of them."""
import math
import struct
import time
import types

from scene import check

IP_UDP = 28  # bytes of IPv4 and UDP headers
# Of a datagram of a Write-Record with immediate data (docs/wire-format.md): prefix, immediate,
# tagged header, extension, CRC.
RECORD_OVERHEAD = 8 + 8 + 14 + 12 + 4
RATE = 40_000_000  # bytes a second, halved for a retry; a busy machine's switch can carry it
PROBLEMS = ("general", "drop_late", "drop_contradiction", "drop_crc", "drop_stag", "drop_bounds",
            "drop_access", "drop_sources_full", "drop_no_context", "rx_overflow", "tx_errors")


class Layout:
    """Where messages of these sizes, in turn, lie in a region: as Layout of peer/endpoint.h."""

    def __init__(self, sizes, count, gap=64):
        self.sizes, self.count, self.gap = sizes, count, gap
        self.messages, offset = [], 0
        for number in range(count):
            self.messages.append((offset, sizes[number % len(sizes)]))
            offset += sizes[number % len(sizes)] + gap
        self.region = sum(size + gap for size in sizes) * math.ceil(count / len(sizes))

    def options(self):
        return ["--sizes", ",".join(map(str, self.sizes)), "--count", self.count, "--gap", self.gap,
                "--region", self.region]


def remote_options(ready):
    return ["--destination", ready["address"], "--stag", ready["stag"], "--base", ready["base"]]


def start_target(scene, host, region, *options):
    target = scene.peer(host, "target", "--address", host.address, "--region", region, *options)
    return target, target.word("ready")


def finish(target):
    """What the target tells: messages, and its last word."""
    *messages, last = target.words()
    return messages, types.SimpleNamespace(**last)


def check_counters(counters, allowed=()):
    for name in PROBLEMS:
        check(name in allowed or counters.get(name, 0) == 0, f"{name}: {counters}")


def check_all_sent(sent, count):
    check(sent["statuses"] == {"success": count} and sent["in_order"], sent)


def send(scene, network, layout, *options, target_options=(), switch=None):
    """Sends the messages from the first host to the second. (sent, messages, the target's end)"""
    target, ready = start_target(scene, network.hosts[1], layout.region, *target_options)
    source = scene.peer(network.hosts[0], "source", "--address", network.hosts[0].address,
                        *remote_options(ready), *layout.options(), *options)
    sent = source.word("sent")
    source.end()
    messages, end = finish(target)
    check_all_sent(sent, layout.count)
    return sent, messages, end


def merged(ranges):
    """Ordered, and joined where they touch."""
    result = []
    for offset, length in sorted(ranges):
        if result and offset <= sum(result[-1]):
            result[-1][1] = max(sum(result[-1]), offset + length) - result[-1][0]
        elif length:
            result.append([offset, length])
    return result


RECORD_HEADER = struct.Struct("!BBHI Q BBIQ III")


def record_segment(length, head):
    """(message's tagged offset, length, offset of the segment, its length) of a logged datagram, if
    it is one of a Write-Record with immediate data."""
    fields = RECORD_HEADER.unpack_from(head)
    version, flags, opcode = fields[0], fields[1], fields[6] & 15
    if version != 0x20 or not flags & 1 or opcode != 12:
        return None
    offset, message_offset, message_length = fields[8], fields[10], fields[11]
    return offset - message_offset, message_length, message_offset, length - RECORD_OVERHEAD


def arrivals(log, port, base):
    """{offset in the region: the ranges that the switch let through} of each Write-Record of which
    anything did."""
    found = {}
    for way_out, fate, length, head in log:
        segment = record_segment(length, head) if way_out == port else None
        if segment and fate in ("passed", "late"):
            found.setdefault(segment[0] - base, []).append(segment[2:])
    return {offset: merged(ranges) for offset, ranges in found.items()}


def attempts(count, attempt):
    """Calls attempt(number) until it succeeds: for what another program's load may spoil, as when a
    receiver waits for a processor until its buffer overflows."""
    for number in range(count):
        try:
            return attempt(number)
        except AssertionError as error:
            if number == count - 1:
                raise
            print(f"attempt {number + 1}: {error}")
            time.sleep(1)
