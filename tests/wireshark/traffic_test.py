#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Captures of what diwarp's own programs say to each other: the dissector finds nothing wrong, and nothing
missing that was not left out. Called with the name of one case; --list names all.

Each case captures the loopback interface of a network namespace of its own, so nothing else is in it.
Offloads are off there: with them a capture on the sending host has several datagrams in one."""
import os
import pathlib
import shlex
import socket
import subprocess
import sys
import threading

from dissect import (LINKTYPE_ETHERNET, NOTES, ROOT, SOUND, Skipped, check, check_sound, notes_of, path, rows,
                     tshark, write_pcap)
sys.path.insert(0, str(ROOT / "tests" / "network"))
from foreign_partner import Partner, pattern  # noqa: E402
from foreign_peer import QueuePair  # noqa: E402
from foreign_reliable import ReliableQueuePair  # noqa: E402
import foreign_wire as wire  # noqa: E402
from harness import case, main, run  # noqa: E402
from scene import NEW_NET, Router, become_root, call, need_program  # noqa: E402

ALL_PROTOCOLS, OUTGOING = 3, 4
SOL_PACKET, PACKET_STATISTICS = 263, 6
FREE_PORTS = "50000 54000"  # of which Wireshark takes none for another protocol's
RECEIVE_BUFFER_FORCE = 33  # SO_RCVBUFFORCE
OPERATIONS = [(transport, operation) for transport in ("ud", "rd") for operation in ("send", "write-record", "read")]


def enter_namespace():
    """With an MTU as on Ethernet, so that messages take many datagrams."""
    need_program("ip", "ethtool")
    become_root()
    try:
        call("unshare", NEW_NET)
    except OSError as error:
        raise Skipped(f"no network namespace can be made here ({error})")
    subprocess.run(["ip", "link", "set", "lo", "mtu", "1500", "up"], check=True)
    with open("/proc/sys/net/ipv4/ip_local_port_range", "w") as ports:
        ports.write(FREE_PORTS)
    for offload in Router.OFFLOADS:
        subprocess.run(["ethtool", "-K", "lo", offload, "off"], check=True, capture_output=True)


class Capture:
    """What loopback carries while a with-block runs, in file(). All of it: else the block fails."""

    def __enter__(self):
        self.packets = []
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        try:
            self.socket.setsockopt(socket.SOL_SOCKET, RECEIVE_BUFFER_FORCE, 256 << 20)
        except PermissionError:
            pass  # what a user namespace gives has to do
        self.socket.bind(("lo", ALL_PROTOCOLS))
        self.socket.settimeout(0.3)
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.read)
        self.thread.start()
        return self

    def read(self):
        """Until nothing comes any more. Loopback shows each packet twice, as it goes and as it comes."""
        while True:
            try:
                packet, address = self.socket.recvfrom(1 << 17)
            except TimeoutError:
                if self.over.is_set():
                    return
                continue
            if address[2] == OUTGOING and (packet[23] == socket.IPPROTO_UDP or packet[12:14] == b"\x86\xdd"):
                self.packets.append(packet)

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        statistics = self.socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8)
        self.lost = int.from_bytes(statistics[4:8], sys.byteorder)
        self.socket.close()

    def file(self, name="traffic.pcap", keep=lambda number: True):
        check(self.packets, "nothing was captured")
        return write_pcap(name, [packet for number, packet in enumerate(self.packets) if keep(number)],
                          link=LINKTYPE_ETHERNET)


def captured(action):
    """The capture of an action, which is tried again if the capture itself lost something."""
    enter_namespace()
    for _ in range(4):
        with Capture() as of:
            action()
        if of.lost == 0:
            return of
    raise Skipped("this host is too busy for a capture without losses")


FIELDS = {name: "diwarp." + name for name in (
    "class", "ddp.opcode", "message.length", "message.data", "read.request_frame", "read.response_frame", "rd.kind",
    "rd.acknowledged_in", "control.type", "about_frame")}
DATAGRAMS = "udp && !(ip.flags.mf == 1)"  # the last fragment has the whole datagram
# The tools take ports that happen to be free, and some of these are other protocols' for tshark.
FIRST = ("-o", "udp.try_heuristic_first:TRUE")


def look(file):
    """A row of all fields for each datagram, after two passes."""
    seen = rows(file, (*SOUND, *NOTES, *FIELDS.values()), "-2", "-Y", DATAGRAMS, *FIRST)
    check(seen, "nothing was captured")
    return seen


def all_notes(seen):
    return set().union(*map(notes_of, seen))


def check_messages(seen, least):
    """At least so many messages of several segments were put together, each as long as it says."""
    whole = [(int(row[FIELDS["message.length"]]), row[FIELDS["message.data"]]) for row in seen
             if FIELDS["message.data"] in row]
    check(len(whole) >= least, f"{len(whole)} messages were put together")
    check(all(len(data) == 2 * length for length, data in whole), "they have other lengths")


def check_reads(seen):
    """Each response belongs to a request, and requests that were answered know where."""
    def of(opcode):
        return [row for row in seen if row.get(FIELDS["ddp.opcode"]) == str(opcode)]
    responses = of(wire.READ_RESPONSE)
    check(responses and all(FIELDS["read.request_frame"] in row for row in responses), "a response without its request")
    check(any(FIELDS["read.response_frame"] in row for row in of(wire.READ_REQUEST)), "no request is answered")


def check_acknowledged(seen):
    """Data know what acknowledged them; the last ones need not have been."""
    data = [row for row in seen if row.get(FIELDS["rd.kind"]) == str(wire.DATA)]
    acknowledged = sum(FIELDS["rd.acknowledged_in"] in row for row in data)
    check(acknowledged > 0.8 * len(data), f"{acknowledged} of {len(data)} were acknowledged")


# What a capture of traffic over UD shows where every datagram that was sent is in it. A receiver may have
# lost some all the same: then Reads are asked for again.
MAY_BE = {("ud", "read"): {"unanswered", "incomplete", "duplicate", "gap"}}
# Over RD the receiver says so, and more is sent.
MAY_BE_RD = {"sent_again", "map_gap", "waits", "duplicate", "sequence_gap", "reset"}


def run_over_ip(tool, *arguments):
    """What goes through shared memory shows in no capture of the interface."""
    return run(tool, "--local", "off", *arguments)


@case(*[(transport, operation, program) for transport, operation in OPERATIONS
        for program in ("pingpong", "bandwidth")])
def tools(transport, operation, program):
    of = captured(lambda: run_over_ip(program, "--loopback", "--transport", transport, "--op", operation, "--size",
                              "0,1,4K,20K", "--iterations", 8, "--warmup", 1, "--max-loss", 100))
    seen = look(of.file())
    check(len(seen) >= 8 * (1 + 1 + 3 + 14), len(seen))
    check_sound(seen)
    told = all_notes(seen)
    check(told <= (MAY_BE_RD if transport == "rd" else MAY_BE.get((transport, operation), set())), told)
    check_messages(seen, 8)
    if operation == "read":
        check_reads(seen)
    if transport == "rd":
        check_acknowledged(seen)


@case()
def tools_over_ipv6():
    of = captured(lambda: run_over_ip("pingpong", "--loopback", "--ipv6", "--transport", "rd", "--size", "1,10K",
                              "--iterations", 8, "--max-loss", 100))
    seen = look(of.file())
    check_sound(seen)
    check(all_notes(seen) <= MAY_BE_RD, all_notes(seen))


@case(("send",), ("write-record",))
def datagrams_that_ip_fragments(operation):
    of = captured(lambda: run_over_ip("bandwidth", "--loopback", "--op", operation, "--segment", "jumbo", "--size", "100K",
                              "--iterations", 8, "--warmup", 0, "--max-loss", 100))
    seen = look(of.file())
    check_sound(seen)
    check_messages(seen, 8)


@case(("send",), ("write-record",))
def every_tenth_datagram_missing(operation):
    """From the capture, not from the traffic: the gaps are noted, and the other messages are put together."""
    of = captured(lambda: run_over_ip("bandwidth", "--loopback", "--op", operation, "--size", "4K", "--iterations", 60,
                              "--max-loss", 100))
    seen = look(of.file(keep=lambda number: number % 10 != 5))
    check_sound(seen)
    told = all_notes(seen)
    check({"gap", "incomplete"} <= told <= {"gap", "incomplete", "msn_gap"}, told)
    check_messages(seen, 20)
    check(sum("incomplete" in notes_of(row) for row in seen) > 10, "few are incomplete")


@case()
def rd_with_a_small_receive_buffer():
    """Datagrams get lost behind the capture; what is sent again is noted, and every message comes whole."""
    of = captured(lambda: run_over_ip("bandwidth", "--loopback", "--transport", "rd", "--size", "100K", "--iterations", 10,
                              "--warmup", 0, "--udp-buffer", "4K"))
    seen = look(of.file())
    check_sound(seen)
    told = all_notes(seen)
    check("sent_again" in told and told <= MAY_BE_RD, told)
    check_messages(seen, 10)


@case()
def challenges_and_errors():
    """A stranger's Read, and a Write-Record to an STag that is not there."""
    def ask():
        partner, foreign = Partner("ud"), QueuePair()
        foreign.read(partner.stag, 0, 5000, partner.address)
        for segment in foreign.record_segments(pattern(10), partner.stag + 1, 0):
            foreign.send_segment(segment, partner.address)
        foreign.hear()
        partner.kill()
    seen = look(captured(ask).file())
    control = [row for row in seen if FIELDS["control.type"] in row]
    check([row[FIELDS["control.type"]] for row in control] == ["1", "2", "3"], control)
    check(all(FIELDS["about_frame"] in row for row in control), control)
    check(all_notes(seen) == {"reported"}, all_notes(seen))
    check_reads(seen)


@case()
def an_association_that_the_other_end_does_not_have():
    """It is opened with a Challenge; data of another epoch are answered by a reset."""
    def talk():
        partner, foreign = Partner("rd"), ReliableQueuePair()
        foreign.open(partner.address)
        partner.must("receive", 0, 100)
        foreign.send_data(wire.Segment(wire.SEND, msn=1, payload=b"hello"))
        partner.wait("recv", "success")
        foreign.epoch += 1  # which the library has not
        foreign.send_data(wire.Segment(wire.SEND, msn=2, payload=b"hello"))
        foreign.step_until(lambda: foreign.resets)
        partner.kill()
    seen = look(captured(talk).file())
    check_sound(seen)
    kinds = [row.get(FIELDS["rd.kind"]) for row in seen]
    check({"7", "4", "1", "8"} <= set(kinds), kinds)
    told = all_notes(seen)
    check("reset" in told and "unmatched" not in told, told)
    resets = [row for row in seen if row.get(FIELDS["rd.kind"]) == str(wire.RESET)]
    check(all(FIELDS["about_frame"] in row for row in resets), resets)


# --- The installed dissector.

@case()
def one_line_installs_it():
    """That of docs/wireshark.md, in an empty home."""
    text = (ROOT / "docs" / "wireshark.md").read_text()
    line = next(line.strip() for line in text.splitlines() if line.startswith("    install "))
    home = path("home")
    os.mkdir(home)
    tshark("--version")  # or the case is skipped
    environment = {**os.environ, "HOME": home}
    subprocess.run(shlex.split(line.replace("~", home)), cwd=ROOT, env=environment, check=True)
    check("diwarp datagrams" not in tshark("-G", "protocols", dissector=None), "it is there without the line")
    listed = tshark("-G", "protocols", dissector=None, home=home)
    check("diwarp datagrams" in listed, "it is not among tshark's protocols")
    check(len(list(pathlib.Path(home).rglob("diwarp.lua"))) == 1, line)


if __name__ == "__main__":
    sys.exit(main())
