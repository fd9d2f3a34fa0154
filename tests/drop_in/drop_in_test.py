#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Unmodified programs of the distribution over the drop-ins for libibverbs and librdmacm, both ends
under diwarp-run. Each case is a program; one that is not installed is skipped, and says so."""
import os
import shutil
import signal
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
import harness  # noqa: E402
from harness import PATIENCE, Process, Skipped, case, check, tool, wait_until  # noqa: E402

DEVICE = "diwarp0"
LISTENING = "0A"  # of a TCP socket's state in /proc/net/tcp


def program(name):
    found = shutil.which(name)
    if not found:
        raise Skipped(f"{name} is not installed (dev/packages.sh, purpose drop-in)")
    return found


def own_address():
    """An IPv4 address of this host that is not loopback, if it has one: no packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("203.0.113.1", 9))
            return probe.getsockname()[0]
        except OSError:
            return "127.0.0.1"


def own_address6():
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("2001:db8::1", 9))
            return probe.getsockname()[0]
        except OSError:
            harness.need_ipv6()
            return "::1"


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


def is_listening(port):
    wanted = f":{port:04X}"
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table) as lines:
                rows = [line.split() for line in lines]
        except FileNotFoundError:
            continue
        if any(row[1].endswith(wanted) and row[3] == LISTENING for row in rows[1:]):
            return True
    return False


def over(name, *options, run=()):
    """A program in the background, over the drop-ins."""
    return Process(name, *run, program(name), *options, file=tool("run"))


def pair(server, client, port):
    """Both ends; each has to end with status 0. Returns what they printed."""
    first = over(*server)
    wait_until(lambda: first.process.poll() is not None or is_listening(port),
               f"{server[0]} does not listen on port {port}")
    second = over(*client)
    second.end(0)
    first.end(0)
    return first.output, second.output


def run(*command, status=0):
    done = subprocess.run([tool("run"), *map(str, command)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=PATIENCE)
    check(done.returncode == status, f"{command}: status {done.returncode}, not {status}\n"
          f"{done.stdout}{done.stderr}")
    return done


# --- What programs load.

@case(*((name,) for name in (
    "rping", "ucmatose", "udaddy", "mckey", "cmtime", "rdma_server", "rdma_client", "rdma_xserver",
    "rdma_xclient", "rstream", "riostream", "ibv_devices", "ibv_devinfo", "ibv_asyncwatch",
    "ibv_rc_pingpong", "ibv_ud_pingpong", "ibv_srq_pingpong", "ib_send_lat", "ib_write_bw",
    "ib_read_lat", "ib_atomic_bw", "raw_ethernet_bw", "fi_info", "qperf", "fio")))
def loads(name):
    printed = run("--check", program(name)).stdout
    check("missing" not in printed, printed)


# --- Devices.

@case()
def devices_are_listed():
    program("ibv_devices")
    check(DEVICE in run("ibv_devices").stdout, "no device")


@case()
def device_is_described():
    program("ibv_devinfo")
    printed = run("ibv_devinfo", "-v", "-d", DEVICE).stdout
    for part in ("iWARP (1)", "PORT_ACTIVE", "Ethernet", "GID["):
        check(part in printed, printed)


@case()
def asyncwatch_ends_on_a_signal():
    watch = over("ibv_asyncwatch", "-d", DEVICE)
    folder = f"/proc/{watch.process.pid}/fd"
    wait_until(lambda: any("eventfd" in os.readlink(os.path.join(folder, name))
                           for name in os.listdir(folder)), "it opened no device")
    watch.process.send_signal(signal.SIGTERM)
    watch.end(-signal.SIGTERM)


# --- The programs of rdmacm-utils.

def rping(address, *options):
    port = free_port()
    common = ("-a", address, "-p", port, "-V", "-C", 100, "-S", 4096, *options)
    pair(("rping", "-s", *common), ("rping", "-c", *common), port)


@case()
def rping_verifies():
    rping(own_address())


@case()
def rping_on_loopback():
    rping("127.0.0.1")


@case()
def rping_over_ipv6():
    rping(own_address6())


@case()
def rping_serves_several_clients():
    """A persistent server, of whose clients one is killed; it runs until it is stopped."""
    address, port = own_address(), free_port()
    server = over("rping", "-s", "-P", "-a", address, "-p", port)
    wait_until(lambda: is_listening(port), "rping does not listen")
    for _ in range(2):
        endless = over("rping", "-c", "-a", address, "-p", port)
        clients = [over("rping", "-c", "-a", address, "-p", port, "-V", "-C", 50)
                   for _ in range(4)]
        for client in clients:
            client.end(0)
        endless.kill()
    check(server.process.poll() is None, f"the server ended: {server.errors()}")
    server.kill()


@case()
def rdma_server_and_client():
    port = free_port()
    pair(("rdma_server", "-p", port), ("rdma_client", "-s", own_address(), "-p", port), port)


@case()
def rdma_xserver_and_xclient():
    port = free_port()
    pair(("rdma_xserver", "-p", port, "-c", "r"),
         ("rdma_xclient", "-s", own_address(), "-p", port, "-c", "r"), port)


@case(("plain",), ("migrating",))
def ucmatose(how):
    address, port = own_address(), free_port()
    common = ("-p", port, "-c", 4, "-C", 100, "-S", 4096, *(("-m",) if how == "migrating" else ()))
    pair(("ucmatose", "-b", address, *common), ("ucmatose", "-s", address, *common), port)


@case()
def cmtime():
    """The server runs until it is stopped."""
    address, port = own_address(), free_port()
    server = over("cmtime", "-b", address, "-p", port, "-c", 100)
    wait_until(lambda: is_listening(port), "cmtime does not listen")
    over("cmtime", "-s", address, "-p", port, "-c", 100).end(0)
    server.kill()


# --- Without the connection manager: the programs of ibverbs-utils.

@case(("ibv_rc_pingpong",), ("ibv_rc_pingpong", "-e"), ("ibv_rc_pingpong", "-c"),
      ("ibv_rc_pingpong", "-N"), ("ibv_srq_pingpong",), ("ibv_srq_pingpong", "-e"))
def pingpong(name, *options):
    """One of both ends first, and the other one must not notice. They meet on a port of their own."""
    port = free_port()
    common = ("-d", DEVICE, "-g", 0, "-p", port, *options)
    pair((name, *common), (name, *common, own_address()), port)


# --- perftest.

def perftest(name, *options, meeting=("-R",)):
    address, port = own_address(), free_port()
    common = (*meeting, "-d", DEVICE, "-F", "-p", port, "-n", 100, *options)
    pair((name, *common), (name, *common, address), port)


@case(*((name,) for name in ("ib_send_lat", "ib_write_lat", "ib_read_lat", "ib_send_bw",
                             "ib_write_bw", "ib_read_bw")))
def all_sizes(name):
    perftest(name, "-a")


@case(("ib_atomic_lat",), ("ib_atomic_bw",))
def atomics(name):
    perftest(name)


@case(("ib_send_lat",), ("ib_send_bw",))
def with_events(name):
    """The bandwidth test sleeps for an event while it waits for memory that its peer is to write."""
    perftest(name, "-e")


@case(("ib_send_bw",), ("ib_write_bw",))
def four_queue_pairs_both_ways(name):
    perftest(name, "-q", 4, "-b")


@case(*((name,) for name in ("ib_send_lat", "ib_write_lat", "ib_write_bw", "ib_read_lat",
                             "ib_read_bw")))
def without_the_connection_manager(name):
    """ib_send_bw leaves a memory region of its own behind, fails to deallocate its domain, and ends
    with 1, after all messages have come."""
    perftest(name, meeting=("-x", 0))


# --- libfabric, qperf, fio.

@case()
def libfabric_sees_iwarp():
    program("fi_info")
    check("FI_PROTO_IWARP" in run("fi_info", "-p", "verbs").stdout, "no endpoint over iWARP")


@case(("verbs", "msg"), ("verbs;ofi_rxm", "rdm"))
def fi_pingpong(provider, kind):
    """It meets over a TCP connection of its own, on a port that it is told."""
    address, port = own_address(), free_port()
    common = ("-p", provider, "-e", kind, "-c", "-I", 100)
    pair(("fi_pingpong", *common, "-B", port), ("fi_pingpong", *common, "-P", port, address), port)


@case(("rc_lat",), ("rc_bw",), ("rc_rdma_read_bw",))
def qperf(test):
    """The server runs until it is stopped. Of the others rc_rdma_write_bw needs Writes with immediate
    data, which iWARP has not."""
    address, port = own_address(), free_port()
    server = over("qperf", "-lp", port)
    wait_until(lambda: is_listening(port), "qperf does not listen")
    over("qperf", "-lp", port, "-t", 1, address, "--use_cm", 1, test).end(0)
    server.kill()


# --- diwarp-run itself.

@case()
def status_is_the_programs():
    run("sh", "-c", "exit 7", status=7)


@case()
def environment_is_printed():
    lines = run("--device", "mine=127.0.0.1", "--spin", "5us", "--print-env").stdout.splitlines()
    check(lines[0].startswith("LD_LIBRARY_PATH=/"), lines)
    check("DIWARP_RUN_DEVICES=mine=127.0.0.1" in lines and "DIWARP_RUN_SPIN=5us" in lines, lines)


@case()
def device_is_added():
    program("ibv_devices")
    check("mine" in run("--device", "mine=127.0.0.1", "ibv_devices").stdout, "no such device")


@case()
def options_of_the_program_stay_its_own():
    printed = run("--spin", "1us", "--", "echo", "--check", "-x").stdout
    check(printed == "--check -x\n", printed)


@case()
def refusals():
    script = harness.path("script")
    with open(script, "w") as file:
        file.write("#!/bin/sh\n")
    os.chmod(script, 0o755)
    setuid = harness.path("setuid")
    shutil.copy(program("true"), setuid)
    os.chmod(setuid, 0o4755)
    for file, status, word in ((script, 2, "script"), (setuid, 2, "setuid"),
                               (harness.path("nothing"), 127, "no such program")):
        told = run(file, status=status).stderr
        check(word in told and len(told.splitlines()) == 1, told)
    check("NAME=ADDR" in run("--device", "x", "true", status=2).stderr, "no word of the form")


if __name__ == "__main__":
    sys.exit(harness.main())
