# SPDX-License-Identifier: Apache-2.0
"""The names that queue pairs over datagrams go by, made as docs/wire-format.md says without the
library."""
import os

WORD = 2 ** 64 - 1


def siphash(first, second, message):
    """SipHash-2-4, 64 bits, of a key of two words."""
    v = [first ^ 0x736F6D6570736575, second ^ 0x646F72616E646F6D,
         first ^ 0x6C7967656E657261, second ^ 0x7465646279746573]

    def add(a, b, rotation):
        v[a] = v[a] + v[b] & WORD
        v[b] = (v[b] << rotation | v[b] >> 64 - rotation) & WORD ^ v[a]

    def rounds(count):
        for _ in range(count):
            add(0, 1, 13)
            add(2, 3, 16)
            v[0] = v[0] << 32 & WORD | v[0] >> 32
            add(2, 1, 17)
            add(0, 3, 21)
            v[2] = v[2] << 32 & WORD | v[2] >> 32

    padded = message + bytes(7 - len(message) % 8) + bytes((len(message) % 256,))
    for at in range(0, len(padded), 8):
        word = int.from_bytes(padded[at:at + 8], "little")
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xFF
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def first_sequence(sender, receiver):
    """The number of the first datagram between two ends, each (incarnation as 4 bytes, epoch)."""
    first, second = (int.from_bytes(incarnation, "big") << 32 | epoch
                     for incarnation, epoch in (sender, receiver))
    return siphash(first, second, b"sequence") % 2 ** 32


class Identity:
    """What a queue pair shows each destination, all made of one secret."""

    def __init__(self):
        self.secret = (int.from_bytes(os.urandom(8), "big"), int.from_bytes(os.urandom(8), "big"))
        self.epochs = {}

    def derive(self, purpose, to):
        return siphash(*self.secret, b"%s %s %d" % (purpose, to[0].encode(), to[1])) % 2 ** 32

    def incarnation(self, to):
        return (self.derive(b"incarnation", to) or 1).to_bytes(4, "big")

    def next_epoch(self, to):
        last = self.epochs.get(to, self.derive(b"epoch", to))
        self.epochs[to] = (last + 1) % 2 ** 32 or 1
        return self.epochs[to]
