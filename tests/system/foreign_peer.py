# SPDX-License-Identifier: Apache-2.0
"""A second implementation of UD queue pairs, written from docs/wire-format.md without the library, and
with it the server's end of the measuring tools: a peer whose losses are known."""
import json
import os
import select
import socket

from foreign_names import Identity
from foreign_wire import (CHALLENGE, CONTROL, ECHO, ERROR, MOST_TO_READ, READ_REQUEST, READ_RESPONSE,
                          SEND, SEND_SOLICITED, UD, WRITE_RECORD, Segment, control, datagram, error,
                          open_datagram, read_segment)

PATIENCE = 60  # seconds


def pieces(length, size):
    """(offset, length) of the segments of a message."""
    return [(at, min(size, length - at)) for at in range(0, length, size)] or [(0, 0)]


class QueuePair:
    """A UD queue pair. Nothing of it works by itself: its user says what it sends and takes."""

    def __init__(self, bound=None):
        """With a UDP socket that is bound, or one of its own at 127.0.0.1."""
        self.socket = bound or socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        if bound is None:
            self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.identity = Identity()
        self.msns = {kind: int.from_bytes(os.urandom(4), "big")
                     for kind in (SEND, READ_REQUEST, WRITE_RECORD)}

    def next_msn(self, kind):
        msn = self.msns[kind]
        self.msns[kind] = (msn + 1) % 2 ** 32
        return msn

    # --- One datagram.

    def send_segment(self, segment, to):
        octets = datagram(UD, segment.flags(), self.identity.incarnation(to), segment.body())
        self.socket.sendto(octets, to)
        return len(octets)

    def send_control(self, kind, content, to):
        self.socket.sendto(datagram(CONTROL, 0, self.identity.incarnation(to), control(kind, content)),
                           to)

    def send_error(self, code, segment, to):
        self.send_control(ERROR, error(code, segment), to)

    def hear(self, patience=PATIENCE):
        """(segment or (type, content) of a control message, source) of the next datagram; None if none
        comes."""
        if not select.select([self.socket], [], [], patience)[0]:
            return None
        octets, source = self.socket.recvfrom(65536)
        kind, flags, _, body = open_datagram(octets)
        if kind == UD:
            return read_segment(flags, body), source
        assert kind == CONTROL and flags == 0 and body[1:4] == bytes(3), octets.hex()
        return (body[0], body[4:]), source

    # --- Sends.

    def send(self, payload, to, immediate=None, solicited=False, size=65000):
        msn = self.next_msn(SEND)
        for at, length in pieces(len(payload), size):
            self.send_segment(
                Segment(SEND_SOLICITED if solicited else SEND, msn=msn, offset=at,
                        last=at + length == len(payload), immediate=immediate, solicited=solicited,
                        payload=payload[at:at + length]), to)

    def receive(self):
        """A message of one segment, and its source."""
        segment, source = self.hear()
        assert (segment.opcode, segment.last, segment.offset) == (SEND, True, 0), segment
        assert (segment.word, segment.immediate) == (0, None), segment
        return segment.payload, source

    # --- Write-Records.

    def record_segments(self, payload, stag, base, size=1000, immediate=None, solicited=False):
        msn = self.next_msn(WRITE_RECORD)
        return [Segment(WRITE_RECORD, msn=msn, offset=at, stag=stag, tagged_offset=base + at,
                        message_length=len(payload), last=at + length == len(payload),
                        immediate=immediate, solicited=solicited, payload=payload[at:at + length])
                for at, length in pieces(len(payload), size)]

    # --- Reads of others' memory.

    def read(self, stag, offset, length, to):
        """What stands there, and how many Challenges came first."""
        assert length <= MOST_TO_READ
        nonce, sink = (int.from_bytes(os.urandom(4), "big") for _ in range(2))
        base = int.from_bytes(os.urandom(8), "big") % (2 ** 64 - MOST_TO_READ)
        request = Segment(READ_REQUEST, word=nonce, msn=self.next_msn(READ_REQUEST),
                          read_length=length, sink=(sink, base), source=(stag, offset))
        asked = self.send_segment(request, to)
        challenges, came, missing = 0, bytearray(length), {(0, length)}
        while missing:
            what, source = self.hear()
            assert source == to, source
            if isinstance(what, tuple):
                kind, content = what
                assert kind == CHALLENGE and len(content) == 24, what
                assert content[:8] == base.to_bytes(8, "big"), "of another request"
                assert 12 + 4 + len(content) <= asked, "the Challenge is longer than the request"
                challenges += 1
                self.send_control(ECHO, content, to)
                self.send_segment(request, to)
                continue
            assert (what.opcode, what.stag) == (READ_RESPONSE, sink), what
            at = what.tagged_offset - base
            end = at + len(what.payload)
            assert 0 <= at and what.last == (end == length), what
            came[at:end] = what.payload
            missing = {part for begin, stop in missing
                       for part in ((begin, min(stop, at)), (max(begin, end), stop))
                       if part[0] < part[1]}
        return bytes(came), challenges

    # --- Others' Reads.

    def response_segments(self, request, payload, size=1000):
        stag, offset = request.sink
        return [Segment(READ_RESPONSE, stag=stag, tagged_offset=offset + at,
                        last=at + length == len(payload), payload=payload[at:at + length])
                for at, length in pieces(len(payload), size)]


class Server:
    """One run of one row. on_message(number, payload, source, queue_pair) sees what arrives; result(word)
    answers what the client says when it has sent what it had to."""

    def __init__(self, on_message, result):
        self.on_message = on_message
        self.result = result
        self.row = None
        self.granted = {}  # more words of what the client may use
        self.done = None
        self.begun = False
        self.measured = False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]

    def say(self, **word):
        self.peer.sendall(json.dumps(word).encode() + b"\n")

    def hear(self):
        while b"\n" not in self.heard:
            chunk = self.peer.recv(65536)
            if not chunk:
                return None
            self.heard += chunk
        line, self.heard = self.heard.split(b"\n", 1)
        return json.loads(line)

    def run(self):
        """Until the client is gone."""
        self.peer, _ = self.listener.accept()
        self.heard = b""
        with self.peer, self.listener:
            self.peer.settimeout(PATIENCE)
            assert self.hear()["type"] == "hello"
            self.say(type="welcome", clients=1, client=0)
            self.say(type="start")
            self.say(type="buffer", bytes=1 << 20)
            self.row = self.hear()
            queue_pair = QueuePair()
            self.say(type="ready", port=queue_pair.port, **self.granted)
            while self.step(queue_pair):
                pass

    def step(self, queue_pair):
        ready, _, _ = select.select([queue_pair.socket, self.peer], [], [], PATIENCE)
        assert ready, "nothing came"
        if queue_pair.socket in ready:
            self.take_message(queue_pair)
            return True
        word = self.hear()
        # Bytes that came with it in one read do not show in select().
        while word is not None:
            self.take(word)
            if b"\n" not in self.heard:
                return True
            word = self.hear()
        return False

    def take_message(self, queue_pair):
        payload, source = queue_pair.receive()
        number = int.from_bytes(payload[:4], "little")
        self.on_message(number, payload, source, queue_pair)

    def take(self, word):
        """What the client says in a row of diwarp-bandwidth (begun, sent, skip, done) or of
        diwarp-pingpong (measure, stop, done)."""
        spent = {"type": "spent", "user_us": 1, "system_us": 1, "overflowed": 0, "zerocopy_sends": 0}
        kind = word["type"]
        if kind == "measure":
            self.say(type="measuring")
        if kind == "begun":
            self.measured = self.begun  # the first time it is the warm-up
            self.begun = True
            self.say(type="go")
        if kind == "skip":
            self.say(type="skipped", flow=word["flow"])
        if kind == "stop":
            self.say(**spent)
        if kind == "why":
            self.say(type="hints", hints=[])
        if kind == "done":
            self.done = word["rows"][0]
        answer = self.result(word)
        if answer:
            self.say(**answer)
        if kind == "sent" and self.measured:
            self.say(**spent)
