# SPDX-License-Identifier: Apache-2.0
"""The server's end of the measuring tools, written from docs/wire-format.md without the library: a
peer whose losses are known, and a second implementation of UD Sends of one segment."""
import json
import os
import select
import socket
import struct

PATIENCE = 60  # seconds


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


class QueuePair:
    """A UD queue pair that sends and receives messages of one segment."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.incarnation = os.urandom(4)
        self.msn = int.from_bytes(os.urandom(4), "big")

    def send(self, payload, to):
        ddp = struct.pack(">BBIIII", 0x41, 0x43, 0, 0, self.msn, 0)
        datagram = b"\x10\x00\x00\x00" + self.incarnation + ddp + payload
        self.socket.sendto(datagram + struct.pack("<I", crc32c(datagram)), to)
        self.msn = (self.msn + 1) % 2 ** 32

    def receive(self):
        """A message and its source. Everything but incarnation, MSN and payload is known."""
        datagram, source = self.socket.recvfrom(65536)
        body, crc = datagram[:-4], struct.unpack("<I", datagram[-4:])[0]
        assert crc == crc32c(body), datagram
        assert body[:4] == b"\x10\x00\x00\x00", datagram
        control, opcode, q_key, queue, _, offset = struct.unpack(">BBIIII", body[8:26])
        assert (control, opcode, q_key, queue, offset) == (0x41, 0x43, 0, 0, 0), datagram
        return body[26:], source


class Server:
    """One run of one row. on_message(number, payload, source, queue_pair) sees what arrives; result(word)
    answers what the client says when it has sent what it had to."""

    def __init__(self, on_message, result):
        self.on_message = on_message
        self.result = result
        self.row = None
        self.done = None
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
            self.say(type="welcome")
            self.say(type="buffer", bytes=1 << 20)
            self.row = self.hear()
            queue_pair = QueuePair()
            self.say(type="ready", port=queue_pair.port)
            while self.step(queue_pair):
                pass

    def step(self, queue_pair):
        ready, _, _ = select.select([queue_pair.socket, self.peer], [], [], PATIENCE)
        assert ready, "nothing came"
        if queue_pair.socket in ready:
            payload, source = queue_pair.receive()
            number = int.from_bytes(payload[:4], "little")
            self.on_message(number, payload, source, queue_pair)
            return True
        word = self.hear()
        # What came with it in one read does not show in select().
        while word is not None:
            self.take(word)
            if b"\n" not in self.heard:
                return True
            word = self.hear()
        return False

    def take(self, word):
        if word["type"] == "done":
            self.done = word["row"]
        answer = self.result(word)
        if answer:
            self.say(**answer)
