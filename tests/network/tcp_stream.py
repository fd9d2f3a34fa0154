# SPDX-License-Identifier: Apache-2.0
"""A TCP stream through a network, with plain sockets: what others are compared with."""
import socket
import threading
import time

from scene import Skipped, check

SAMPLE = 0.1  # seconds
CONGESTION = b"cubic"  # that of RFC 9438, whatever the system's default


class TcpStream:
    """As many bytes as TCP carries from the first host to the second, until stop()."""

    def __init__(self, network, port=5001):
        listener = network.hosts[1].socket(socket.SOCK_STREAM)
        listener.bind((network.hosts[1].address, port))
        listener.listen()
        self.sender = network.hosts[0].socket(socket.SOCK_STREAM)
        try:
            self.sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, CONGESTION)
        except OSError as error:
            raise Skipped(f"TCP cannot use {CONGESTION.decode()} here ({error})")
        self.sender.connect((network.hosts[1].address, port))
        self.receiver, _ = listener.accept()
        listener.close()
        self.bytes, self.samples, self.ending = 0, [], threading.Event()
        self.threads = [threading.Thread(target=run, daemon=True)
                        for run in (self.send, self.take, self.sample)]
        for thread in self.threads:
            thread.start()

    def send(self):
        chunk = bytes(1 << 16)
        try:
            while True:
                self.sender.sendall(chunk)
        except OSError:
            pass

    def take(self):
        buffer = bytearray(1 << 18)
        try:
            while taken := self.receiver.recv_into(buffer):
                self.bytes += taken
        except OSError:
            pass

    def sample(self):
        while not self.ending.wait(SAMPLE):
            self.samples.append((time.monotonic(), self.bytes))

    def stop(self):
        """The samples: (time, bytes so far) at the receiver."""
        self.ending.set()
        for end in (self.sender, self.receiver):
            end.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join(10)
        self.sender.close()
        self.receiver.close()
        return self.samples


def rate_between(samples, begin, end):
    """Mbit/s in that time, from samples that lie about SAMPLE apart."""
    inside = [sample for sample in samples if begin <= sample[0] <= end]
    check(len(inside) > (end - begin) / SAMPLE * 0.4, f"{len(inside)} samples in {end - begin} s")
    (first, before), (last, after) = inside[0], inside[-1]
    return (after - before) * 8e-6 / (last - first)
