#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command line tools where the system gives less: no offloads, no privilege, small limits; and
what diwarp-info tells of it. Called with the name of one case; --list names all."""
import ctypes
import errno
import json
import os
import platform
import resource
import socket
import subprocess
import sys

from harness import PATIENCE, Skipped, case, check, main, run, where

UDP_SEGMENT, UDP_GRO = 103, 104
LOCKED = 64 << 10
SETSOCKOPT = {"x86_64": 54, "aarch64": 208}


def run_so(become, name, *options):
    """A tool in a process that became something first; its output."""
    words = [os.path.join(where.tools, f"diwarp-{name}"), *map(str, options)]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, timeout=PATIENCE,
                          preexec_fn=become)
    check(done.returncode == 0, f"{words}: {done}")
    return done.stdout


@case()
def info_of_sockets():
    """What it says of the system, against what the system says."""
    text = run("info").stdout
    for word in ("GSO (UDP_SEGMENT)", "GRO (UDP_GRO)", "receive buffer", "SO_BUSY_POLL",
                 "net.core.rmem_max", "processors", "memory that may be locked", "--io uring"):
        check(word in text, f"{word} is not in {text}")
    values = json.loads(run("info", "--json").stdout)
    system, sockets = values["system"], values["datagram_sockets"]
    backends = values["backends"]
    check(backends["io_available"]["syscall"] and backends["io_available"][backends["io"]], backends)
    check(system["kernel"].endswith(os.uname().release), system)
    check(system["usable_processors"] == len(os.sched_getaffinity(0)), system)
    for name in ("rmem_max", "wmem_max"):
        try:
            with open(f"/proc/sys/net/core/{name}") as file:
                check(system[name] == int(file.read()), system)
        except FileNotFoundError:
            check(system[name] is None, system)
    for offload in ("gso", "gro", "busy_poll"):
        check(sockets[offload]["available"] == ("refusal" not in sockets[offload]), sockets)
    probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for offload, option, value in (("gso", UDP_SEGMENT, 0), ("gro", UDP_GRO, 1)):
        try:
            probe.setsockopt(socket.IPPROTO_UDP, option, value)
            check(sockets[offload]["available"], f"{offload} works, and it says {sockets}")
        except OSError:
            check(not sockets[offload]["available"], f"{offload} fails, and it says {sockets}")
    probe.close()
    check(0 < sockets["receive_buffer"]["granted"], sockets)


def without_privilege(limit=None):
    """In a child: a user of no rights, with this limit of locked memory."""
    def become():
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (limit, limit))
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
    return become


@case()
def info_tells_how_to_raise_limits():
    values = json.loads(run_so(without_privilege(LOCKED), "info", "--json"))
    check(values["system"]["locked_memory"] == LOCKED, values["system"])
    text = run_so(without_privilege(), "info")
    for buffer, name in (("receive_buffer", "rmem_max"), ("send_buffer", "wmem_max")):
        sizes = values["datagram_sockets"][buffer]
        cut = sizes["granted"] < sizes["asked"]
        check(cut == (values["system"][name] < sizes["asked"]), values)
        check(cut == (f"sysctl -w net.core.{name}={sizes['asked']}" in text), text)


class Instruction(ctypes.Structure):
    """Of a filter program (struct sock_filter)."""
    _fields_ = [("code", ctypes.c_uint16), ("if_true", ctypes.c_uint8),
                ("if_false", ctypes.c_uint8), ("value", ctypes.c_uint32)]


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.POINTER(Instruction))]


def without_offloads():
    """In a child: UDP_SEGMENT and UDP_GRO cannot be set, as in a kernel that does not know them."""
    load, equal, answer = 0x20, 0x15, 0x06  # of a word; jump; return
    lines = [(load, 0, 0, 0), (equal, 0, 6, SETSOCKOPT[platform.machine()]),
             (load, 0, 0, 24), (equal, 0, 4, socket.IPPROTO_UDP),  # the second argument
             (load, 0, 0, 32), (equal, 1, 0, UDP_SEGMENT), (equal, 0, 1, UDP_GRO),
             (answer, 0, 0, 0x50000 | errno.ENOPROTOOPT), (answer, 0, 0, 0x7FFF0000)]
    instructions = (Instruction * len(lines))(*lines)
    program = Program(len(lines), instructions)
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, set_seccomp, filter_mode = 38, 22, 2
    libc.prctl(no_new_privileges, 1, 0, 0, 0)
    if libc.prctl(set_seccomp, filter_mode, ctypes.byref(program), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no filter of system calls can be set")


def need_filters():
    if platform.machine() not in SETSOCKOPT:
        raise Skipped("the number of setsockopt is not known here")


@case()
def info_tells_why_there_are_no_offloads():
    need_filters()
    sockets = json.loads(run_so(without_offloads, "info", "--json"))["datagram_sockets"]
    for offload in ("gso", "gro"):
        check(not sockets[offload]["available"], sockets)
        check(sockets[offload]["refusal"] == os.strerror(errno.ENOPROTOOPT), sockets)
    check(f"no: {os.strerror(errno.ENOPROTOOPT)}" in run_so(without_offloads, "info"), "the text")


@case(("ud", "send"), ("ud", "write-record"), ("ud", "read"), ("rd", "send"), ("rd", "read"))
def works_without_offloads(transport, operation):
    need_filters()
    run_so(without_offloads, "pingpong", "--loopback", "--transport", transport, "--op", operation,
           "--size", "64,1M", "--iterations", 20, "--verify", "--max-loss", 100)


@case(("ud", "send"), ("rd", "send"), ("rd", "read"), ("rc", "send"), ("rc", "write"), ("rc", "read"))
def works_without_privilege(transport, operation):
    """With the system's limits of socket buffers, and 64 KiB of memory that may be locked."""
    run_so(without_privilege(LOCKED), "pingpong", "--loopback", "--transport", transport, "--op",
           operation, "--size", "64,1M", "--iterations", 20, "--verify", "--max-loss", 100)


if __name__ == "__main__":
    sys.exit(main())
