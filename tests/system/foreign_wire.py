# SPDX-License-Identifier: Apache-2.0
"""Datagrams of UD queue pairs, written and read from docs/wire-format.md without the library."""
import dataclasses
import struct

VERSION = 2
UD, RD, CONTROL = range(3)
IMMEDIATE, SOLICITED = 1, 2
READ_REQUEST, READ_RESPONSE, SEND, SEND_INVALIDATE, SEND_SOLICITED = 1, 2, 3, 4, 5
WRITE_RECORD = 12
CHALLENGE, ECHO, ERROR = 1, 2, 3
TAGGED = (READ_RESPONSE, WRITE_RECORD)
MOST_TO_READ = 262144  # that one Read Request may ask for


def crc32c_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


TABLE = crc32c_table()


def crc32c(data):
    value = 0xFFFFFFFF
    for byte in data:
        value = (value >> 8) ^ TABLE[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF


@dataclasses.dataclass
class Segment:
    opcode: int
    last: bool = True
    word: int = 0  # Q_Key, the STag to invalidate, or the nonce of a Read Request
    msn: int = 0
    offset: int = 0  # in the message
    stag: int = 0
    tagged_offset: int = 0
    message_length: int = 0
    sink: tuple = (0, 0)  # STag and offset
    read_length: int = 0
    source: tuple = (0, 0)
    immediate: int = None
    solicited: bool = False
    payload: bytes = b""

    def headers(self):
        octets = bytes(((0x80 if self.opcode in TAGGED else 0) | (0x40 if self.last else 0) | 1,
                        0x40 | self.opcode))
        if self.opcode in TAGGED:
            octets += struct.pack(">IQ", self.stag, self.tagged_offset)
        else:
            queue = 1 if self.opcode == READ_REQUEST else 0
            octets += struct.pack(">IIII", self.word, queue, self.msn, self.offset)
        if self.opcode == WRITE_RECORD:
            octets += struct.pack(">III", self.msn, self.offset, self.message_length)
        if self.opcode == READ_REQUEST:
            octets += struct.pack(">IQIIQ", *self.sink, self.read_length, *self.source)
        return octets

    def flags(self):
        return (0 if self.immediate is None else IMMEDIATE) | (SOLICITED if self.solicited else 0)

    def body(self):
        immediate = b"" if self.immediate is None else struct.pack(">Q", self.immediate)
        return immediate + self.headers() + self.payload


def datagram(kind, flags, incarnation, body):
    covered = struct.pack(">BBH", VERSION << 4 | kind, flags, 0) + incarnation + body
    return covered + struct.pack("<I", crc32c(covered))


def control(kind, content):
    return bytes((kind, 0, 0, 0)) + content


def challenge(nonce, cookie):
    """The content of a Challenge or an Echo."""
    return struct.pack(">Q", nonce) + cookie


def error(code, segment):
    """The content of an Error about a segment, with all of its headers."""
    headers = segment.headers()
    included = 0xE0 if segment.opcode in (WRITE_RECORD, READ_REQUEST) else 0xC0
    return bytes(code) + struct.pack(">BBH", included, 0, len(headers) + len(segment.payload)) + headers


def open_datagram(octets):
    """(class, flags, incarnation, body) of a right one."""
    covered, crc = octets[:-4], struct.unpack("<I", octets[-4:])[0]
    assert crc == crc32c(covered), octets.hex()
    first, flags, reserved = struct.unpack(">BBH", covered[:4])
    assert first >> 4 == VERSION and reserved == 0, octets.hex()
    return first & 15, flags, covered[4:8], covered[8:]


def read_segment(flags, body):
    """The segment in the body of a datagram of class UD."""
    assert flags & ~(IMMEDIATE | SOLICITED) == 0, flags
    immediate = None
    if flags & IMMEDIATE:
        immediate, body = struct.unpack(">Q", body[:8])[0], body[8:]
    segment, rest = read_headers(body)
    segment.immediate, segment.solicited = immediate, bool(flags & SOLICITED)
    segment.payload = rest
    return segment


def read_headers(octets):
    """The segment that begins with these headers, and what follows them."""
    assert octets[0] & 0x3F == 1 and octets[1] & 0xF0 == 0x40, octets.hex()
    segment = Segment(octets[1] & 15, last=bool(octets[0] & 0x40))
    tagged = bool(octets[0] & 0x80)
    assert tagged == (segment.opcode in TAGGED), octets.hex()
    if tagged:
        segment.stag, segment.tagged_offset = struct.unpack(">IQ", octets[2:14])
        rest = octets[14:]
    else:
        segment.word, queue, segment.msn, segment.offset = struct.unpack(">IIII", octets[2:18])
        assert queue == (1 if segment.opcode == READ_REQUEST else 0), octets.hex()
        rest = octets[18:]
    if segment.opcode == WRITE_RECORD and rest:
        segment.msn, segment.offset, segment.message_length = struct.unpack(">III", rest[:12])
        rest = rest[12:]
    if segment.opcode == READ_REQUEST and rest:
        sink_stag, sink_offset, segment.read_length, stag, offset = struct.unpack(">IQIIQ", rest[:28])
        segment.sink, segment.source = (sink_stag, sink_offset), (stag, offset)
        rest = rest[28:]
    return segment, rest


def read_error(content):
    """((layer and type, code), the segment as far as it is told or None) of an Error."""
    code, included, reserved = tuple(content[:2]), content[2], content[3]
    assert reserved == 0 and included in (0, 0xC0, 0xE0), content.hex()
    if included == 0:
        assert len(content) == 4, content.hex()
        return code, None
    length, = struct.unpack(">H", content[4:6])
    headers = content[6:]
    assert length >= len(headers), content.hex()
    segment, rest = read_headers(headers)
    assert rest == b"", content.hex()
    assert (len(headers) > (14 if segment.opcode in TAGGED else 18)) == (included == 0xE0), content.hex()
    return code, segment


# --- Reliable datagrams.

DATA, SKIP, FAILURE, ACKNOWLEDGEMENT, PROBE, REFUSAL, OPEN, RESET = range(1, 9)
BROKEN, REMEMBERS, WAITS = 1, 2, 4  # flags of the RD header
SENDS, RECORDS, REQUESTS, RESPONSES = range(1, 5)  # whose message a skip stands for


def skip_of(kind, number):
    return struct.pack(">II", kind << 24, number)


def failure_of(sink, code):
    return struct.pack(">I", sink) + bytes(code) + bytes(2)


def name_of(segment):
    """(kind, number) by which both ends call the message."""
    if segment.opcode == READ_RESPONSE:
        return RESPONSES, segment.stag
    return {WRITE_RECORD: RECORDS, READ_REQUEST: REQUESTS}.get(segment.opcode, SENDS), segment.msn


def before(a, b):
    """Serial number arithmetic (RFC 1982)."""
    return (a - b) % 2 ** 32 >= 2 ** 31


@dataclasses.dataclass
class Reliable:
    """An RD header, and what follows it."""
    kind: int
    flags: int = 0
    window: int = 0
    epoch: int = 0
    peer_epoch: int = 0
    peer_incarnation: bytes = bytes(4)
    sequence: int = 0
    acknowledged: int = 0
    content: bytes = b""

    def body(self):
        return (struct.pack(">BBHII", self.kind, self.flags, self.window, self.epoch, self.peer_epoch) +
                self.peer_incarnation + struct.pack(">II", self.sequence, self.acknowledged) +
                self.content)


def read_reliable(body):
    kind, flags, window, epoch, peer_epoch = struct.unpack(">BBHII", body[:12])
    sequence, acknowledged = struct.unpack(">II", body[16:24])
    may_have = ((BROKEN if kind in (OPEN, RESET) else 0) | (REMEMBERS if kind != RESET else 0) |
                (WAITS if kind == ACKNOWLEDGEMENT else 0))
    assert DATA <= kind <= RESET and flags & ~may_have == 0, body.hex()
    assert epoch != 0 and (peer_epoch == 0) == (kind == OPEN), body.hex()
    assert sequence == 0 or kind not in (ACKNOWLEDGEMENT, OPEN), body.hex()
    assert acknowledged == 0 or kind not in (OPEN, RESET), body.hex()
    return Reliable(kind, flags, window, epoch, peer_epoch, body[12:16], sequence, acknowledged,
                    body[24:])


def map_of(acknowledged, early):
    """The words that tell which datagrams came early."""
    words = [0] * 16
    for sequence in early:
        bit = (sequence - acknowledged - 1) % 2 ** 32
        if bit < 1024:
            words[bit // 64] |= 1 << (63 - bit % 64)
    while words and words[-1] == 0:
        words.pop()
    return struct.pack(f">{len(words)}Q", *words)


def in_map(acknowledged, content):
    """The sequence numbers that a map names."""
    words = struct.unpack(f">{len(content) // 8}Q", content)
    return {(acknowledged + 1 + 64 * i + bit) % 2 ** 32 for i, word in enumerate(words)
            for bit in range(64) if word >> (63 - bit) & 1}
