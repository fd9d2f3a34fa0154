# SPDX-License-Identifier: Apache-2.0
"""A second implementation of RD queue pairs with one peer, written from docs/wire-format.md without the
library: correct, slow, and told by its user what to lose."""
import os
import time

import foreign_wire as wire
from foreign_names import Identity, first_sequence
from foreign_peer import PATIENCE, QueuePair

WINDOW = 64


class ReliableQueuePair(QueuePair):
    """hear() gives what arrives as it is; the methods here keep the association."""

    def __init__(self, bound=None):
        super().__init__(bound)
        self.to = None
        self.known = None  # the peer's incarnation, of which more than an open came in an association
        self.forget()
        self.lose = lambda datagram: False  # of what comes
        self.refuse = lambda header: None  # or a code, of data that are next
        self.challenges = 0
        self.resets_sent = 0

    def forget(self):
        """The association; the messages delivered in it are still known."""
        self.remembers = False
        self.epoch = self.peer_epoch = 0
        self.peer_incarnation = bytes(4)
        self.unacknowledged = {}  # sequence: (flags, Reliable)
        self.next_sequence = 0
        self.acknowledged = 0  # of what the peer sent
        self.early = {}  # sequence: (Reliable, flags)
        self.refusing = None  # the code, while the next datagram is refused
        self.delivered = []  # Reliables of kind DATA, SKIP and FAILURE, with `segment` where there is one
        self.refusals = []
        self.resets = []
        self.named_early = set()
        self.peer_flags = 0  # of the RD header that came last in this association

    def restart(self):
        """A queue pair that was here before has gone; this one knows nothing."""
        self.forget()
        self.known = None
        self.identity = Identity()

    def own(self):
        """The incarnation that the peer is shown."""
        return self.identity.incarnation(self.to)

    def begin(self, incarnation, peer_epoch):
        """The association is there: both know all four names."""
        self.peer_incarnation, self.peer_epoch = incarnation, peer_epoch
        self.remembers = self.known == incarnation
        here, there = (self.own(), self.epoch), (incarnation, peer_epoch)
        self.next_sequence = first_sequence(here, there)
        self.acknowledged = (first_sequence(there, here) - 1) % 2 ** 32

    # --- One datagram.

    def send_reliable(self, header, flags=0):
        self.socket.sendto(wire.datagram(wire.RD, flags, self.own(), header.body()), self.to)

    def header(self, kind, **fields):
        return wire.Reliable(kind, flags=wire.REMEMBERS if self.remembers else 0, window=WINDOW,
                             epoch=self.epoch, peer_epoch=self.peer_epoch,
                             peer_incarnation=self.peer_incarnation, acknowledged=self.acknowledged,
                             **fields)

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
        self.epoch = self.identity.next_epoch(to)
        opening = wire.Reliable(wire.OPEN, window=WINDOW, epoch=self.epoch,
                                content=os.urandom(8) + bytes(16))
        self.send_reliable(opening)
        self.step_until(lambda: self.peer_epoch != 0, opening)
        return self.challenges

    def take_challenge(self, incarnation, content, opening):
        assert opening is not None and len(content) == 24
        assert content[:8] == opening.content[:8], "it does not repeat the nonce"
        self.challenges += 1
        opening.peer_incarnation, opening.content = incarnation, content
        opening.flags = wire.REMEMBERS if self.known == incarnation else 0
        self.send_reliable(opening)

    def take_open(self, header, incarnation):
        nonce, cookie = header.content[:8], header.content[8:]
        if header.peer_incarnation != self.own() or cookie != self.cookie(incarnation):
            assert cookie in (bytes(16), self.cookie(incarnation)), header
            self.challenges += 1
            self.send_control(wire.CHALLENGE, nonce + self.cookie(incarnation), self.to)
            return
        if (incarnation, header.epoch) != (self.peer_incarnation, self.peer_epoch):
            self.forget()
            self.epoch = self.identity.next_epoch(self.to)
            self.begin(incarnation, header.epoch)
        self.acknowledge()

    def cookie(self, incarnation):
        return b"a cookie for" + incarnation

    # --- Data.

    def send_data(self, segment):
        return self.sequence_up(wire.DATA, segment.flags(), segment.body())

    def sequence_up(self, kind, flags, content):
        header = self.header(kind, sequence=self.next_sequence, content=content)
        self.unacknowledged[self.next_sequence] = (flags, header)
        self.next_sequence = (self.next_sequence + 1) % 2 ** 32
        self.send_reliable(header, flags)
        return header.sequence

    def skip(self, sequence, name):
        """A message that was refused, or is given up, is sent as a skip from then on."""
        self.unacknowledged[sequence] = (0, self.header(wire.SKIP, sequence=sequence,
                                                        content=wire.skip_of(*name)))

    def send_again(self):
        for flags, header in list(self.unacknowledged.values()):
            header.acknowledged = self.acknowledged
            self.send_reliable(header, flags)

    def acknowledge(self):
        if self.refusing is not None:
            return self.send_reliable(self.header(
                wire.REFUSAL, sequence=(self.acknowledged + 1) % 2 ** 32,
                content=bytes(self.refusing) + bytes(2)))
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
        if opening is not None and self.peer_epoch == 0 and header.peer_epoch == self.epoch:
            assert incarnation == opening.peer_incarnation, header
            self.begin(incarnation, header.epoch)
        if names != (self.peer_incarnation, self.peer_epoch, self.epoch, self.own()):
            return self.answer_unknown(header, incarnation)
        self.known, self.peer_flags = incarnation, header.flags
        return self.take_ours(header, flags)

    def answer_unknown(self, header, incarnation):
        if header.kind in (wire.DATA, wire.SKIP, wire.FAILURE, wire.PROBE):
            self.resets_sent += 1
            self.send_reliable(wire.Reliable(wire.RESET, epoch=header.peer_epoch,
                                             peer_epoch=header.epoch, peer_incarnation=incarnation,
                                             sequence=header.sequence))

    def take_ours(self, header, flags):
        for sequence in list(self.unacknowledged):
            if not wire.before(header.acknowledged, sequence):
                del self.unacknowledged[sequence]
        if header.kind == wire.ACKNOWLEDGEMENT:
            self.named_early |= wire.in_map(header.acknowledged, header.content)
        elif header.kind == wire.REFUSAL:
            assert header.sequence == (header.acknowledged + 1) % 2 ** 32, header
            self.refusals.append((header.sequence, tuple(header.content[:2])))
        elif header.kind == wire.PROBE:
            assert not wire.before(header.sequence, self.acknowledged), header
            self.acknowledge()
        elif header.kind in (wire.DATA, wire.SKIP, wire.FAILURE):
            self.take_sequenced(header, flags)

    def take_sequenced(self, header, flags):
        ahead = header.sequence - self.acknowledged
        assert wire.before(ahead, WINDOW + 1), "outside of the window"
        if wire.before(0, ahead):
            self.early[header.sequence] = (header, flags)
        while self.deliver_next():
            self.acknowledged = (self.acknowledged + 1) % 2 ** 32
        self.acknowledge()

    def deliver_next(self):
        header, flags = self.early.pop((self.acknowledged + 1) % 2 ** 32, (None, 0))
        if header is None:
            return False
        header.segment = wire.read_segment(flags, header.content) if header.kind == wire.DATA else None
        if header.segment is not None and self.refusing is None:
            self.refusing = self.refuse(header)
        if header.segment is not None and self.refusing is not None:
            return False
        self.refusing = None
        self.delivered.append(header)
        return True

    def segments(self):
        """Those that were delivered since the last call."""
        taken, self.delivered = self.delivered, []
        return [header.segment for header in taken if header.segment is not None]
