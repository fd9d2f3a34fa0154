# SPDX-License-Identifier: Apache-2.0
"""Reads a capture's TCP connections and writes them anew, one FPDU to a segment.

tshark loses its place in an iWARP connection whose FPDUs do not end where TCP segments end, and
where a pair of ports is used again. So each stream is put together here (what was sent twice or out
of order included) and cut after each FPDU, by its length field alone; tshark then checks every one.
Only what Ethernet, IPv4 and pcap need is here.
"""
import dataclasses
import struct

REQUEST, REPLY = b"MPA ID Req Frame", b"MPA ID Rep Frame"
MARKERS = 0x80


@dataclasses.dataclass
class Stream:
    """One direction: what was sent, by its offset from the start."""
    start: int = None  # sequence number of the first byte
    chunks: list = dataclasses.field(default_factory=list)
    problems: list = dataclasses.field(default_factory=list)

    def add(self, sequence, payload):
        if self.start is None:
            self.start = sequence
        offset = (sequence - self.start + (1 << 31)) % (1 << 32) - (1 << 31)
        self.chunks.append((offset, payload))

    def bytes(self):
        """The stream as far as it is whole."""
        whole = bytearray()
        self.problems.clear()
        for offset, payload in sorted(self.chunks, key=lambda chunk: chunk[0]):
            if offset < 0:
                continue
            if offset > len(whole):
                self.problems.append(f"a hole in the capture at {len(whole)}")
                break
            if offset + len(payload) > len(whole):
                whole += payload[len(whole) - offset:]
        return bytes(whole)


@dataclasses.dataclass
class Pair:
    """A connection: the initiator's stream and the responder's."""
    ports: tuple
    streams: tuple = dataclasses.field(default_factory=lambda: (Stream(), Stream()))
    frames: tuple = ()
    problems: list = dataclasses.field(default_factory=list)


def packets(path):
    with open(path, "rb") as file:
        data = file.read()
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    at = 24
    while at + 16 <= len(data):
        length = struct.unpack_from(order + "I", data, at + 8)[0]
        yield data[at + 16:at + 16 + length]
        at += 16 + length


def tcp_segments(path):
    """(source, target, flags, sequence number, payload); source and target are address and port."""
    for packet in packets(path):
        if packet[12:14] != b"\x08\x00" or packet[23] != 6:
            continue
        ip = 14
        tcp = ip + 4 * (packet[ip] & 15)
        end = ip + struct.unpack_from(">H", packet, ip + 2)[0]
        source_port, target_port, sequence = struct.unpack_from(">HHI", packet, tcp)
        header = 4 * (packet[tcp + 12] >> 4)
        yield ((packet[ip + 12:ip + 16], source_port), (packet[ip + 16:ip + 20], target_port),
               packet[tcp + 13], sequence, packet[tcp + header:end])


def tcp_connections(path):
    """In the order in which they began."""
    found, now = [], {}
    for source, target, flags, sequence, payload in tcp_segments(path):
        syn, ack = flags & 2, flags & 16
        if syn and not ack:
            known = now.get((source, target))
            if known is None or known.streams[0].start != (sequence + 1) % (1 << 32):
                pair = Pair((source[1], target[1]))
                now[source, target] = pair
                found.append(pair)
                pair.streams[0].start = (sequence + 1) % (1 << 32)
            continue
        pair, side = now.get((source, target)), 0
        if pair is None:
            pair, side = now.get((target, source)), 1
        if pair is None:
            continue
        if syn:
            pair.streams[side].start = (sequence + 1) % (1 << 32)
        elif payload:
            pair.streams[side].add(sequence, payload)
    return found


def cut(stream, key, may_be_cut, problems):
    """A stream's frames: MPA's start-up, then FPDUs."""
    data = stream.bytes()
    if data[:16] != key:
        problems.append(f"does not begin with {key.decode()!r}: {data[:16].hex()}")
        return ()
    if data[16] & MARKERS and not data[16] & 0x20:
        problems.append("markers, which cannot be cut here")
        return ()
    at = 20 + struct.unpack_from(">H", data, 18)[0]
    frames = [data[:at]]
    while at < len(data):
        if at + 2 > len(data):
            break
        ulpdu = struct.unpack_from(">H", data, at)[0]
        whole = (2 + ulpdu + 3) // 4 * 4 + 4
        if at + whole > len(data):
            break
        frames.append(data[at:at + whole])
        at += whole
    if at < len(data) and not may_be_cut:
        problems.append(f"{len(data) - at} bytes at the end are no whole FPDU")
    return tuple(frames)


def iwarp_connections(path, may_be_cut=False):
    """Those that begin with an MPA Request, cut into frames. A process that dies may leave a part of
    an FPDU behind: `may_be_cut`."""
    found = []
    for pair in tcp_connections(path):
        if not pair.streams[0].bytes().startswith(REQUEST):
            continue
        pair.frames = tuple(
            cut(stream, key, may_be_cut, pair.problems) if stream.chunks else ()
            for stream, key in zip(pair.streams, (REQUEST, REPLY)))
        for stream in pair.streams:
            pair.problems += [] if may_be_cut else stream.problems
        found.append(pair)
    return found


def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class Writer:
    def __init__(self, file):
        self._file = file
        self._time = 0
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, 1))

    def segment(self, ports, to_responder, flags, sequence, acknowledged, payload=b""):
        source, target = ports if to_responder else ports[::-1]
        addresses = [bytes((10, 0, 2, 2)), bytes((10, 0, 2, 15))]
        if not to_responder:
            addresses.reverse()
        tcp = struct.pack(">HHIIBBHHH", source, target, sequence % (1 << 32),
                          acknowledged % (1 << 32), 5 << 4, flags, 65535, 0, 0)
        # 0 stands for a length that 16 bits do not hold.
        length = 40 + len(payload)
        ip = struct.pack(">BBHHHBBH", 0x45, 0, length if length < 65536 else 0, 0, 0x4000, 64, 6, 0)
        ip += addresses[0] + addresses[1]
        ip = ip[:10] + struct.pack(">H", checksum(ip)) + ip[12:]
        packet = bytes(12) + b"\x08\x00" + ip + tcp + payload
        self._time += 1
        self._file.write(struct.pack("<IIII", self._time // 1000000, self._time % 1000000,
                                     len(packet), len(packet)) + packet)

    def connection(self, ports, frames):
        at = [1, 1]
        self.segment(ports, True, 2, 0, 0)
        self.segment(ports, False, 18, 0, 1)
        self.segment(ports, True, 16, 1, 1)
        # The request, the reply, then each side's FPDUs; how the sides alternated does not matter.
        turns = [(0, frames[0][:1]), (1, frames[1][:1]), (0, frames[0][1:]), (1, frames[1][1:])]
        for side, part in turns:
            for frame in part:
                self.segment(ports, side == 0, 24, at[side], at[1 - side], frame)
                at[side] += len(frame)


def write(path, pairs):
    """Each connection between ports of its own, which belong to no protocol: initiators from 50000 on,
    to port 7174."""
    with open(path, "wb") as file:
        writer = Writer(file)
        for index, pair in enumerate(pairs):
            writer.connection((50000 + index, 7174), pair.frames)
