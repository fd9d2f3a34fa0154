# SPDX-License-Identifier: Apache-2.0
"""A second implementation of RD queue pairs with one peer, written from docs/wire-format.md without the
library: correct, slow, and told by its user what to lose."""
import os
import time

import foreign_wire as wire
from foreign_peer import PATIENCE, QueuePair

WINDOW = 64


class ReliableQueuePair(QueuePair):
    """hear() gives what arrives as it is; the methods here keep the association."""

    def __init__(self):
        super().__init__()
        self.to = None
        self.forget()
        self.epochs = 0
        self.lose = lambda datagram: False  # of what comes
        self.challenges = 0
        self.resets_sent = 0

    def forget(self):
        self.epoch = self.peer_epoch = 0
        self.peer_incarnation = bytes(4)
        self.unacknowledged = {}  # sequence: (flags, Reliable)
        self.next_sequence = 1
        self.acknowledged = 0  # of what the peer sent
        self.early = {}
        self.delivered = []  # Reliables of kind DATA, SKIP and FAILURE, with `segment` where there is one
        self.refusals = []
        self.resets = []
        self.named_early = set()

    def restart(self):
        """A queue pair that was here before has gone; this one knows nothing."""
        self.forget()
        self.incarnation = os.urandom(4)
        self.epochs = 0

    # --- One datagram.

    def send_reliable(self, header, flags=0):
        self.socket.sendto(wire.datagram(wire.RD, flags, self.incarnation, header.body()), self.to)

    def header(self, kind, **fields):
        return wire.Reliable(kind, window=0 if kind == wire.RESET else WINDOW, epoch=self.epoch,
                             peer_epoch=self.peer_epoch, peer_incarnation=self.peer_incarnation,
                             acknowledged=self.acknowledged, **fields)

    def hear_datagram(self, patience):
        """(class, flags, incarnation, body) of the next datagram that is not to be lost, or None."""
        deadline = time.monotonic() + patience
        while True:
            self.socket.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                octets, source = self.socket.recvfrom(65536)
            except TimeoutError:
                return None
            kind, flags, incarnation, body = wire.open_datagram(octets)
            if self.lose((kind, body)):
                continue
            assert self.to in (None, source), source
            self.to = source
            return kind, flags, incarnation, body

    # --- The association.

    def open(self, to):
        """Opens one, and says how often it was challenged."""
        self.to = to
        self.epochs += 1
        self.epoch = self.epochs
        opening = wire.Reliable(wire.OPEN, window=WINDOW, epoch=self.epoch, content=bytes(16))
        self.send_reliable(opening)
        self.step_until(lambda: self.peer_epoch != 0, opening)
        return self.challenges

    def take_challenge(self, incarnation, cookie, opening):
        assert opening is not None and len(cookie) == 16
        self.challenges += 1
        opening.peer_incarnation, opening.content = incarnation, cookie
        self.send_reliable(opening)

    def take_open(self, header, incarnation):
        if header.peer_incarnation != self.incarnation or header.content != self.cookie(incarnation):
            assert header.content in (bytes(16), self.cookie(incarnation)), header
            self.challenges += 1
            self.send_control(wire.CHALLENGE, self.cookie(incarnation), self.to)
            return
        if (incarnation, header.epoch) != (self.peer_incarnation, self.peer_epoch):
            self.forget()
            self.epochs += 1
            self.epoch, self.peer_epoch = self.epochs, header.epoch
            self.peer_incarnation = incarnation
        self.acknowledge()

    def cookie(self, incarnation):
        return b"a cookie for" + incarnation

    # --- Data.

    def send_data(self, segment):
        self.sequence_up(wire.DATA, segment.flags(), segment.body())

    def sequence_up(self, kind, flags, content):
        header = self.header(kind, sequence=self.next_sequence, content=content)
        self.unacknowledged[self.next_sequence] = (flags, header)
        self.next_sequence += 1
        self.send_reliable(header, flags)

    def skip(self, sequence):
        """What was refused is sent as a skip from then on."""
        self.unacknowledged[sequence] = (0, self.header(wire.SKIP, sequence=sequence))

    def send_again(self):
        for flags, header in list(self.unacknowledged.values()):
            header.acknowledged = self.acknowledged
            self.send_reliable(header, flags)

    def acknowledge(self):
        self.send_reliable(self.header(wire.ACKNOWLEDGEMENT,
                                       content=wire.map_of(self.acknowledged, self.early)))

    # --- What comes.

    def step_until(self, condition, opening=None, patience=PATIENCE):
        deadline = time.monotonic() + patience
        while not condition():
            assert time.monotonic() < deadline, "it does not happen"
            heard = self.hear_datagram(0.3)
            if heard is not None:
                self.take(*heard, opening)
            elif opening is not None:
                self.send_reliable(opening)
            else:
                self.send_again()

    def take(self, kind, flags, incarnation, body, opening=None):
        if kind == wire.CONTROL:
            assert body[:4] == bytes((wire.CHALLENGE, 0, 0, 0)), body.hex()
            return self.take_challenge(incarnation, body[4:], opening)
        assert kind == wire.RD, kind
        header = wire.read_reliable(body)
        assert flags == 0 or header.kind == wire.DATA, flags
        if header.kind == wire.OPEN:
            return self.take_open(header, incarnation)
        if header.kind == wire.RESET:
            return self.resets.append((header, incarnation))
        names = (incarnation, header.epoch, header.peer_epoch, header.peer_incarnation)
        if opening is not None and self.peer_epoch == 0:
            assert header.kind == wire.ACKNOWLEDGEMENT, header
            self.peer_incarnation, self.peer_epoch = incarnation, header.epoch
        if names != (self.peer_incarnation, self.peer_epoch, self.epoch, self.incarnation):
            return self.answer_unknown(header, incarnation)
        return self.take_ours(header, flags)

    def answer_unknown(self, header, incarnation):
        if header.kind in (wire.DATA, wire.SKIP, wire.FAILURE, wire.PROBE):
            self.resets_sent += 1
            self.send_reliable(wire.Reliable(wire.RESET, epoch=header.peer_epoch,
                                             peer_epoch=header.epoch, peer_incarnation=incarnation))

    def take_ours(self, header, flags):
        for sequence in [s for s in self.unacknowledged if s <= header.acknowledged]:
            del self.unacknowledged[sequence]
        if header.kind == wire.ACKNOWLEDGEMENT:
            self.named_early |= wire.in_map(header.acknowledged, header.content)
        elif header.kind == wire.REFUSAL:
            assert header.sequence == header.acknowledged + 1, header
            self.refusals.append((header.sequence, tuple(header.content[:2])))
        elif header.kind == wire.PROBE:
            self.acknowledge()
        elif header.kind in (wire.DATA, wire.SKIP, wire.FAILURE):
            self.take_sequenced(header, flags)

    def take_sequenced(self, header, flags):
        assert header.sequence <= self.acknowledged + WINDOW, "outside of the window"
        if header.sequence > self.acknowledged:
            self.early[header.sequence] = (header, flags)
        while self.acknowledged + 1 in self.early:
            self.acknowledged += 1
            header, flags = self.early.pop(self.acknowledged)
            header.segment = None
            if header.kind == wire.DATA:
                header.segment = wire.read_segment(flags, header.content)
            self.delivered.append(header)
        self.acknowledge()

    def segments(self):
        """Those that were delivered since the last call."""
        taken, self.delivered = self.delivered, []
        return [header.segment for header in taken if header.segment is not None]
