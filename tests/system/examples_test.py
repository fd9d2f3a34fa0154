#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/ as a reader runs them. Called with the name of one case; --list names
all."""
import os
import re
import socket
import struct
import subprocess
import sys
import time

from foreign_wire import crc32c
from harness import PATIENCE, Process, Skipped, case, check, example, main, path

# What each prints. Those that need no order among their lines are looked at by their cases below.
OUTPUTS = {
    "ud_hello": r"20 bytes from 127\.0\.0\.1:\d+: hello over datagrams\n",
    "rc_hello": (r'server: "alice" asks for a connection\n'
                 r'server: got "hello, how are you\?"\n'
                 r'client: "bob" answers "well, thank you"\n'),
    "rdma_write": r'server: 25 bytes were written: "written without a receive"\n',
    "datagram_read_cache": (r"(version \d+: \d+ primes\n)*version 10: 9592 primes\n"
                            r"\d+ checks of 8 bytes, \d+ fetches of 1024 bytes\n"),
}


def start(name, *arguments, before=()):
    return subprocess.run([*before, example(name), *map(str, arguments)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=PATIENCE)


def output_of(name, *arguments):
    done = start(name, *arguments)
    check(done.returncode == 0 and not done.stderr, f"{done}")
    return done.stdout


def check_refusal(done, name, *parts):
    """Status 1, and one sentence on standard error that names the program."""
    lines = done.stderr.splitlines()
    check(done.returncode == 1 and len(lines) == 1 and lines[0].startswith(f"{name}: "), f"{done}")
    for part in parts:
        check(part in lines[0], f"{part!r} is not in {lines[0]!r}")


@case(*[(name,) for name in OUTPUTS])
def shows_its_subject(name):
    output = output_of(name)
    check(re.fullmatch(OUTPUTS[name], output), output)


@case(*[(name,) for name in (*OUTPUTS, "reconfigure", "multicast_feed")])
def refuses_arguments(name):
    check_refusal(start(name, "more"), name, "it takes no arguments")


@case(*[(name,) for name in (*OUTPUTS, "write_record_stream", "reconfigure", "multicast_feed")])
def tells_of_output_that_is_not_taken(name):
    with open("/dev/full", "w") as full:
        done = subprocess.run([example(name)], stdin=subprocess.DEVNULL, stdout=full,
                              stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
    check_refusal(done, name, "standard output cannot be written")


def frames_of(output):
    """The bytes that came of each frame, and the gaps that were concealed in all."""
    *frames, last = output.splitlines()
    came = [int(re.fullmatch(rf"frame {number}: (\d+) of 64000 bytes came", line).group(1))
            for number, line in enumerate(frames)]
    check(len(came) == 30, output)
    share, gaps = re.fullmatch(r"(\d+) % of all bytes came; (\d+) gaps were concealed", last).groups()
    check(int(share) == 100 * sum(came) // (30 * 64000), output)
    return came, int(gaps)


@case()
def write_record_stream_conceals_gaps():
    """The chance that 10 % take none of 1,350 datagrams, or all of a frame, is below 1 in 10^40."""
    came, gaps = frames_of(output_of("write_record_stream", 10))
    check(gaps > 0 and sum(came) < 30 * 64000 and max(came) > 0, came)


@case()
def write_record_stream_has_gaps_only_where_bytes_are_missing():
    """The host itself may lose some."""
    came, gaps = frames_of(output_of("write_record_stream", 0))
    check((gaps == 0) == (sum(came) == 30 * 64000), f"{came} {gaps}")


@case()
def write_record_stream_loses_little_by_default():
    came, _ = frames_of(output_of("write_record_stream"))
    check(sum(came) > 0, came)


@case()
def write_record_stream_refuses_arguments():
    for wrong in ("x", "-1", "91", "2.5", "", "99999999999999999999"):
        check_refusal(start("write_record_stream", wrong), "write_record_stream",
                      "is no number from 0 to 90")
    check_refusal(start("write_record_stream", 1, 2), "write_record_stream", "usage:")


@case()
def reconfigure_has_one_winner_whom_all_know():
    lines = output_of("reconfigure").splitlines()
    winners = [number for number in range(1, 6)
               if f"balancer {number} reconfigures the node" in lines]
    check(len(winners) == 1, lines)
    rest = [f"balancer {number}: balancer {winners[0]} was first" for number in range(1, 6)
            if number != winners[0]]
    check(sorted(lines) == sorted([f"balancer {winners[0]} reconfigures the node", *rest]), lines)


@case()
def multicast_feed_comes_to_each_subscriber():
    """All of it, unless the host lost some, which the subscriber then says."""
    output = output_of("multicast_feed")
    for number in (1, 2, 3):
        ticks = [(int(tick), int(price)) for tick, price in re.findall(
            rf"^subscriber {number}: tick (\d+), price (\d+)$", output, re.MULTILINE)]
        check(ticks == [(tick, price_at(tick)) for tick, _ in ticks] and ticks, output)
        gaps = output.count(f"subscriber {number}: a gap\n")
        check([tick for tick, _ in ticks] == list(range(10)) or gaps or ticks[-1][0] < 9, output)


def price_at(tick):
    return 100 + tick * tick % 7


def start_receiver():
    """A receiver with an empty folder, and where it listens."""
    os.mkdir(path("folder"))
    receiver = Process("file_transfer", "receive", "127.0.0.1", path("folder"),
                       file=example("file_transfer"))
    return receiver, receiver.wait_for(r"listening at (\S+)\n").group(1)


def check_receiver_fails(receiver, *parts):
    """It ends with a sentence, and has left nothing in its folder or beside it."""
    errors = receiver.end(1)
    check(errors.startswith("file_transfer: ") and len(errors.splitlines()) == 1, errors)
    for part in parts:
        check(part in errors, f"{part!r} is not in {errors!r}")
    check(os.listdir(path("folder")) == [], os.listdir(path("folder")))


@case(*[(size,) for size in (0, 1, 65536, 5_000_001)])
def file_transfer_takes_a_file(size):
    content = (bytes(range(251)) * (size // 251 + 1))[:size]
    with open(path("some file-1.bin"), "wb") as file:
        file.write(content)
    receiver, address = start_receiver()
    output = output_of("file_transfer", "send", address, path("some file-1.bin"))
    receiver.end(0)
    check(output.endswith("some file-1.bin was taken\n"), output)
    check(size == 0 or "\n100 %\n" in output, output)  # a carriage return reads as a new line
    check(f"some file-1.bin: {size} bytes" in receiver.output, receiver.output)
    with open(path("folder/some file-1.bin"), "rb") as file:
        check(file.read() == content, "the file differs")


@case()
def file_transfer_replaces_no_file():
    receiver, address = start_receiver()
    for name in ("notes", "folder/notes"):
        with open(path(name), "w") as file:
            file.write(name)
    check_refusal(start("file_transfer", "send", address, path("notes")), "file_transfer",
                  "the receiver says no", "File exists")
    check("File exists" in receiver.end(1), receiver.errors())
    with open(path("folder/notes")) as file:
        check(file.read() == "folder/notes", "the file was replaced")


@case()
def file_transfer_tells_the_sender_of_a_full_disk():
    """A folder of 64 KiB, in a mount namespace of its own."""
    if subprocess.run(("unshare", "--mount", "true"), capture_output=True,
                      check=False).returncode != 0:
        raise Skipped("no mount namespaces here")
    os.mkdir(path("folder"))
    program = f"mount -t tmpfs -o size=64k none {path('folder')} && exec {example('file_transfer')}"
    receiver = Process("receiver", "--mount", "sh", "-c",
                       f"{program} receive 127.0.0.1 {path('folder')}", file="/usr/bin/unshare")
    address = receiver.wait_for(r"listening at (\S+)\n").group(1)
    with open(path("large"), "wb") as file:
        file.write(bytes(4_000_000))
    check_refusal(start("file_transfer", "send", address, path("large")), "file_transfer",
                  "the receiver says", "No space left")
    check("No space left" in receiver.end(1), receiver.errors())


@case()
def file_transfer_gives_a_file_its_name_at_the_end():
    receiver, address = start_receiver()
    sender = Sender(address, b"5 name")
    sender.send(b"he")
    deadline = time.monotonic() + PATIENCE
    while os.listdir(path("folder")) != ["name.part"] and time.monotonic() < deadline:
        time.sleep(0.01)
    receiver.kill()
    check(os.listdir(path("folder")) == ["name.part"], os.listdir(path("folder")))
    sender.stream.close()


@case()
def file_transfer_refuses_arguments():
    for wrong in ((), ("send",), ("send", "127.0.0.1:1"), ("take", "127.0.0.1", "."),
                  ("send", "127.0.0.1:1", "a", "b")):
        check_refusal(start("file_transfer", *wrong), "file_transfer", "usage:")
    check_refusal(start("file_transfer", "send", "nowhere", __file__), "file_transfer",
                  "not an address")
    check_refusal(start("file_transfer", "send", "127.0.0.1:1", path("none")), "file_transfer",
                  "No such file")
    check_refusal(start("file_transfer", "receive", "127.0.0.1", path("none")), "file_transfer",
                  "is no folder")


class Sender:
    """A peer of its own: MPA of revision 1 (RFC 5044), DDP and RDMAP."""

    def __init__(self, address, offer):
        host, port = address.rsplit(":", 1)
        self.stream = socket.create_connection((host, int(port)), timeout=PATIENCE)
        self.stream.sendall(b"MPA ID Req Frame" + struct.pack(">BBH", 0x40, 1, len(offer)) + offer)
        reply = self.receive(20)
        self.rejected = bool(reply[16] & 0x20)
        self.words = self.receive(struct.unpack(">H", reply[18:])[0])
        self.msn = 0

    def receive(self, length):
        octets = b""
        while len(octets) < length:
            chunk = self.stream.recv(length - len(octets))
            check(chunk, "the receiver closed the connection")
            octets += chunk
        return octets

    def send(self, payload):
        """A Send of one FPDU."""
        self.msn += 1
        ulpdu = struct.pack(">BBIIII", 0x41, 0x43, 0, 0, self.msn, 0) + payload
        fpdu = struct.pack(">H", len(ulpdu)) + ulpdu
        fpdu += bytes(-len(fpdu) % 4)
        self.stream.sendall(fpdu + struct.pack("<I", crc32c(fpdu)))


@case()
def file_transfer_takes_a_file_of_a_foreign_peer():
    """The control of the cases below: their frames are well-formed."""
    receiver, address = start_receiver()
    sender = Sender(address, b"5 name")
    check(not sender.rejected, sender.words)
    sender.send(b"he")
    sender.send(b"llo")
    sender.send(str(crc32c(b"hello")).encode())
    check(b"taken" in sender.receive(2 + 18 + 5), "no receipt")
    sender.stream.close()
    receiver.end(0)
    with open(path("folder/name")) as file:
        check(file.read() == "hello", "the file differs")


OFFERS = {"climbing": b"5 ../name", "absolute": b"5 /tmp/name", "inner": b"5 inner/name", "dot": b"5 .",
          "dots": b"5 ..", "hidden": b"5 .profile", "option": b"5 -rf", "escape": b"5 a\x1b[2J",
          "zero": b"5 a\0b", "no_name": b"5 ", "only_size": b"5", "nothing": b"", "no_size": b" name",
          "negative": b"-1 name", "huge": b"99999999999999999999 name",
          "large": b"1099511627777 name", "long_name": b"5 " + b"n" * 256}


@case(*[(name,) for name in OFFERS])
def file_transfer_refuses_hostile_offers(name):
    receiver, address = start_receiver()
    before = sorted(os.listdir(path(".")))
    sender = Sender(address, OFFERS[name])
    check(sender.rejected and sender.words, f"{OFFERS[name]} was accepted")
    check_receiver_fails(receiver, "no file may be called" if b"5 " in OFFERS[name] else "no number"
                         if name != "only_size" else "")
    check(sorted(os.listdir(path("."))) == before, "there is a new file")


SENDS = {"wrong_checksum": ((b"hello", b"1"), "the checksum is wrong"),
         "checksum_without_digits": ((b"hello", b"\x1b[2J"), "the checksum is wrong"),
         "more_than_offered": ((b"hello!",), "something else than it offered"),
         "empty_chunk": ((b"he", b""), "something else than it offered"),
         "cut_off": ((b"he",), ""),  # it may be cut before or after it is accepted
         "cut_off_before_the_checksum": ((b"hello",), "")}


@case(*[(name,) for name in SENDS])
def file_transfer_keeps_no_wrong_file(name):
    receiver, address = start_receiver()
    chunks, words = SENDS[name]
    sender = Sender(address, b"5 name")
    check(not sender.rejected, sender.words)
    for chunk in chunks:
        sender.send(chunk)
    if name.startswith("cut_off"):
        sender.stream.close()
    check_receiver_fails(receiver, words)


# One over RC stands for all: the server waits 20 s for a client that cannot come.
@case(*[(name,) for name in ("ud_hello", "rc_hello", "write_record_stream", "datagram_read_cache",
                             "multicast_feed")])
def ends_where_loopback_is_down(name):
    """In a network namespace of its own, whose interface lo is down."""
    alone = ("unshare", "--user", "--map-root-user", "--net")
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode != 0:
        raise Skipped("no network namespaces here")
    check_refusal(start(name, before=alone), name)


if __name__ == "__main__":
    sys.exit(main())
