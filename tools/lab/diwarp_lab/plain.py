# SPDX-License-Identifier: Apache-2.0
"""Sockets without diwarp, with the command line of the measuring tools: a program of its own.

    plain.py udp|tcp|count --server ADDRESS:PORT
    plain.py udp|tcp|count --connect ADDRESS:PORT --json - [--seconds S] [--size N] [--packets N]

udp: half round trips of polling ends; tcp: a stream; count: how many numbered datagrams arrive."""
import argparse
import json
import socket
import struct
import sys
import time

KIND_PATIENCE = 30  # seconds without a word from the other end


def split(address):
    host, port = address.rsplit(":", 1)
    return host, int(port)


def percentile(ordered, share):
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def open_socket(kind, address=None):
    made = socket.socket(socket.AF_INET, kind)
    made.settimeout(KIND_PATIENCE)
    if kind == socket.SOCK_DGRAM:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    if address:
        made.bind(address)
    return made


def listen(made):
    if made.type == socket.SOCK_STREAM:
        made.listen()
    host, port = made.getsockname()
    print(f"listening at {host}:{port}", flush=True)


# A client tells a server of datagrams over TCP, on the same port, that it has sent all.

def serve_udp(options):
    with open_socket(socket.SOCK_STREAM, split(options.server)) as control, \
            open_socket(socket.SOCK_DGRAM, control.getsockname()) as data:
        listen(control)
        told, _ = control.accept()
        data.setblocking(False)
        told.setblocking(False)
        turns = 0
        while True:
            try:
                message, source = data.recvfrom(65535)
                data.sendto(message, source)
            except BlockingIOError:
                turns += 1
                if turns % 1000 == 0 and ended(told):
                    return


def ended(told):
    try:
        return not told.recv(1)
    except BlockingIOError:
        return False


def connect_udp(options):
    peer = split(options.connect)
    with open_socket(socket.SOCK_STREAM) as control, open_socket(socket.SOCK_DGRAM) as data:
        control.connect(peer)
        data.connect(peer)
        data.setblocking(False)
        times, lost = [], 0
        end = time.monotonic() + options.seconds
        while (begun := time.perf_counter()) and time.monotonic() < end:
            if answered(data, numbered(len(times) + lost, options.size)):
                times.append((time.perf_counter() - begun) * 5e5)
            else:
                lost += 1
        times.sort()
        return {"size": options.size, "iterations": len(times), "lost": lost,
                "half_rtt_us": {name: percentile(times, share) for name, share in (
                    ("min", 0), ("p50", .5), ("p99", .99), ("max", 1))} if times else {}}


def numbered(number, size):
    """A message with its number, as far as it fits."""
    return struct.pack("!Q", number)[-size:] + bytes(max(size - 8, 0))


def answered(data, message):
    """False if it does not come back within 0.2 s. One of those before it may come late."""
    data.send(message)
    deadline = time.monotonic() + 0.2
    while True:
        try:
            if data.recv(65535) == message:
                return True
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False


def serve_tcp(options):
    with open_socket(socket.SOCK_STREAM, split(options.server)) as listener:
        listen(listener)
        stream, _ = listener.accept()
        stream.settimeout(KIND_PATIENCE)
        buffer, taken = bytearray(1 << 20), 0
        begun = time.monotonic()
        while count := stream.recv_into(buffer):
            taken += count
        stream.sendall(struct.pack("!Qd", taken, time.monotonic() - begun))


def connect_tcp(options):
    with open_socket(socket.SOCK_STREAM) as stream:
        stream.connect(split(options.connect))
        stream.settimeout(KIND_PATIENCE)
        chunk, end = bytes(1 << 18), time.monotonic() + options.seconds
        while time.monotonic() < end:
            stream.sendall(chunk)
        stream.shutdown(socket.SHUT_WR)
        taken, seconds = struct.unpack("!Qd", exactly(stream, 16))
        return {"valid_bytes": taken, "seconds": seconds, "mb_per_s": taken / seconds / 1e6}


def exactly(stream, count):
    data = b""
    while len(data) < count:
        chunk = stream.recv(count - len(data))
        if not chunk:
            raise OSError("the other end is gone")
        data += chunk
    return data


def serve_count(options):
    with open_socket(socket.SOCK_STREAM, split(options.server)) as control, \
            open_socket(socket.SOCK_DGRAM, control.getsockname()) as data:
        listen(control)
        told, _ = control.accept()
        data.settimeout(0.5)
        told.setblocking(False)
        seen = set()
        while True:
            try:
                seen.add(struct.unpack_from("!Q", data.recv(65535))[0])
            except TimeoutError:  # nothing comes any more
                if has_word(told):
                    break
        told.setblocking(True)
        told.sendall(struct.pack("!Q", len(seen)))


def has_word(stream):
    """Whether the other end said something, or is gone."""
    try:
        stream.recv(1)
        return True
    except BlockingIOError:
        return False


def connect_count(options):
    """Paced, so that none is lost for want of a buffer."""
    with open_socket(socket.SOCK_STREAM) as control, open_socket(socket.SOCK_DGRAM) as data:
        control.connect(split(options.connect))
        data.connect(split(options.connect))
        rest, begun = bytes(max(options.size - 8, 0)), time.monotonic()
        for number in range(options.packets):
            if number % 32 == 0:
                wait = begun + number / options.pace - time.monotonic()
                if wait > 0:
                    time.sleep(wait)
            data.send(struct.pack("!Q", number) + rest)
        control.sendall(b".")
        arrived, = struct.unpack("!Q", exactly(control, 8))
        return {"sent": options.packets, "received": arrived, "size": options.size}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("udp", "tcp", "count"))
    parser.add_argument("--server")
    parser.add_argument("--connect")
    parser.add_argument("--json")
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--packets", type=int, default=10000)
    parser.add_argument("--pace", type=float, default=20000, help="packets a second")
    options = parser.parse_args()
    role = "serve" if options.server else "connect"
    try:
        row = globals()[f"{role}_{options.kind}"](options)
    except OSError as error:
        print(f"plain.py {options.kind}: {error}", file=sys.stderr)
        return 1
    if row:
        print(json.dumps([row]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
