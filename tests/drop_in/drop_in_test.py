#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Unmodified programs of the distribution over the drop-ins for libibverbs and librdmacm, both ends
under diwarp-run. Each case is a program; one that is not installed is skipped, and says so."""
import errno
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
import foreign_peer  # noqa: E402
import harness  # noqa: E402
from foreign_wire import SEND, Segment  # noqa: E402
from harness import PATIENCE, Process, Skipped, case, check, tool, wait_until  # noqa: E402

DEVICE = "diwarp0"
RELIABLE = ("--ud", "reliable")
LONG = 400  # seconds for what takes minutes on a busy machine; CTest gives it more
UDADDY_PORT = 7174  # it has no option for it
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


def is_bound(port):
    """Whether a UDP socket has the port."""
    for table in ("/proc/net/udp", "/proc/net/udp6"):
        try:
            with open(table) as lines:
                rows = [line.split() for line in lines]
        except FileNotFoundError:
            continue
        if any(row[1].endswith(f":{port:04X}") for row in rows[1:]):
            return True
    return False


def in_group(group, members):
    """Whether sockets of this host are in an IPv4 group so many times."""
    wanted = "".join(f"{int(part):02X}" for part in reversed(group.split(".")))
    with open("/proc/net/igmp") as lines:
        rows = [line.split() for line in lines]
    return any(row[0] == wanted and int(row[1]) >= members for row in rows)


def over(name, *options, run=()):
    """A program in the background, over the drop-ins."""
    return Process(name, *run, program(name), *options, file=tool("run"))


def pair(server, client, port, ready=is_listening, run=(), patience=PATIENCE):
    """Both ends; each has to end with status 0. Returns what they printed."""
    first = over(*server, run=run)
    wait_until(lambda: first.process.poll() is not None or ready(port),
               f"{server[0]} does not listen on port {port}")
    second = over(*client, run=run)
    second.end(0, patience)
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
    for _ in range(3):
        endless = over("rping", "-c", "-a", address, "-p", port)
        clients = [over("rping", "-c", "-a", address, "-p", port, "-V", "-C", 50)
                   for _ in range(7)]
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


# --- UD with the connection manager.

def need_free_udp_port(port):
    if is_bound(port):
        raise Skipped(f"another program has UDP port {port}, which udaddy cannot choose")


@case(("plain", 1), ("plain", 4), ("reliable", 4))
def udaddy(how, services):
    """Messages both ways, with immediate data and address handles from completions. Reliable ones may
    be more than a socket's buffer has room for."""
    need_free_udp_port(UDADDY_PORT)
    address = own_address()
    common = ("-c", services, "-C", 500 if how == "reliable" else 20, "-S", 1000)
    pair(("udaddy", "-b", address, *common), ("udaddy", "-s", address, *common), UDADDY_PORT,
         ready=is_bound, run=RELIABLE if how == "reliable" else ())


RESOLVE_KEY, MESSAGE_KEY = 0x72736c76, 0x01234567
REQUEST_BYTES = 280


def resolve_request(number):
    return struct.pack(">IBBBBQII", 0x64775544, 1, 1, 0, 0, number, 0, 0).ljust(REQUEST_BYTES, b"\0")


class Requester(foreign_peer.QueuePair):
    """Resolves a UD service by itself, and sends to the queue pair that the service names."""

    def __init__(self, address):
        bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        bound.bind((address, 0))
        super().__init__(bound)

    def say(self, payload, to, q_key, immediate=None):
        self.send_segment(Segment(SEND, msn=self.next_msn(SEND), word=q_key, last=True,
                                  immediate=immediate, payload=payload), to)

    def ask(self, number, to):
        """The answer to a request, which is repeated until it comes."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            self.say(resolve_request(number), to, RESOLVE_KEY)
            heard = self.hear(1)
            if heard:
                return heard[0].payload
        raise AssertionError("the service does not answer")


@case()
def udaddy_survives_noise():
    """Bytes that are no request are dropped and counted, and get no answer. A request that comes again
    gets its answer again, which is shorter, and the program is asked once: it waits for one peer."""
    need_free_udp_port(UDADDY_PORT)
    address = own_address()
    service = (address, UDADDY_PORT)
    server = over("udaddy", "-b", address, "-C", 5, "-S", 100, run=("--counters",))
    wait_until(lambda: is_bound(UDADDY_PORT), "udaddy does not listen")
    requester = Requester(address)
    noise = random.Random(17)
    for length in range(0, REQUEST_BYTES, 3):
        requester.socket.sendto(noise.randbytes(length), service)
        requester.say(noise.randbytes(length), service, RESOLVE_KEY)
        requester.say(resolve_request(1)[:length], service, RESOLVE_KEY)
    heard = requester.hear(0.2)
    check(heard is None, f"noise was answered: {heard}")
    answer = requester.ask(99, service)
    check(len(answer) <= REQUEST_BYTES and requester.ask(99, service) == answer, answer.hex())
    magic, _, kind, status, _, number, queue_pair, q_key = struct.unpack(">IBBBBQII", answer[:24])
    check((magic, kind, status, number, q_key) == (0x64775544, 2, 0, 99, MESSAGE_KEY), answer.hex())
    for _ in range(5):
        requester.say(bytes(100), (address, queue_pair), MESSAGE_KEY, immediate=requester.port)
    for _ in range(5):
        check(len(requester.hear()[0].payload) == 100, "another reply")
    told = server.end(0)
    check(re.search(r"ud_resolve_malformed \d\d\d", told), told)
    check("ud_resolve_repeated" in told, told)


@case()
def udaddy_finds_nobody():
    """The client is told at once: its status is that of the event, -ECONNREFUSED."""
    program("udaddy")
    need_free_udp_port(UDADDY_PORT)
    client = over("udaddy", "-s", own_address())
    client.end(256 - errno.ECONNREFUSED)
    check("RDMA_CM_EVENT_UNREACHABLE" in client.output, client.output)


@case(("one",), ("two",))
def mckey(members):
    """A group of the case's own. Members that receive run until they got all; the sender gives them
    three seconds."""
    program("mckey")
    group = "239." + ".".join(str(random.randrange(1, 255)) for _ in range(3))
    common = ("-m", group, "-b", own_address())
    hearing = [over("mckey", *common) for _ in range(2 if members == "two" else 1)]
    wait_until(lambda: in_group(group, len(hearing)), "mckey does not join")
    over("mckey", *common, "-s").end(0)
    for member in hearing:
        member.end(0)


# --- perftest.

def perftest(name, *options, meeting=("-R",), run=(), patience=PATIENCE):
    address, port = own_address(), free_port()
    common = (*meeting, "-d", DEVICE, "-F", "-p", port, "-n", 100, *options)
    pair((name, *common), (name, *common, address), port, run=run, patience=patience)


@case(("plain",), ("reliable",))
def datagram_latency(how):
    perftest("ib_send_lat", "-c", "UD", "-s", 1024, run=RELIABLE if how == "reliable" else ())


@case()
def datagram_bandwidth():
    perftest("ib_send_bw", "-c", "UD", "-s", 1024, "-n", 5000, run=RELIABLE)


@case(*((name,) for name in ("ib_send_lat", "ib_write_lat", "ib_read_lat", "ib_send_bw",
                             "ib_write_bw", "ib_read_bw")))
def all_sizes(name):
    """Both ends spin, while their engines need the processors: on two of them each message may take
    as long as the scheduler gives a process at a time."""
    perftest(name, "-a", patience=LONG)


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


@case(*((name,) for name in ("ib_send_lat", "ib_send_bw", "ib_write_lat", "ib_write_bw",
                             "ib_read_lat", "ib_read_bw")))
def without_the_connection_manager(name):
    """ib_send_bw leaves a memory region of its own behind when it deallocates its domain."""
    perftest(name, meeting=("-x", 0))


@case(("polled",), ("events",))
def ud_pingpong(how):
    address, port = own_address(), free_port()
    common = ("-d", DEVICE, "-g", 0, "-s", 1000, "-n", 200, "-p", port,
              *(("-e",) if how == "events" else ()))
    pair(("ibv_ud_pingpong", *common), ("ibv_ud_pingpong", *common, address), port)


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


def run_qperf(test, *options, run=()):
    """The server runs until it is stopped."""
    address, port = own_address(), free_port()
    server = over("qperf", "-lp", port, run=run)
    wait_until(lambda: is_listening(port), "qperf does not listen")
    for attempt in range(3):
        client = over("qperf", "-lp", port, "-t", 1, address, *options, test, run=run)
        client.process.wait(PATIENCE)
        # Seldom, while others connect, the client is told that it was rejected: not explained yet.
        if attempt == 2 or "Event rejected" not in client.errors():
            break
    client.end(0)
    server.kill()


@case(("rc_lat",), ("rc_bw",), ("rc_rdma_read_bw",))
def qperf(test):
    """Of the others rc_rdma_write_bw needs Writes with immediate data, which iWARP has not."""
    run_qperf(test, "--use_cm", 1)


@case()
def qperf_datagrams():
    """It knows LIDs alone, so it works within a host; and it waits for each message for ever, so that
    none may be lost."""
    run_qperf("ud_lat", run=RELIABLE)


# --- diwarp-run itself.

@case()
def status_is_the_programs():
    run("sh", "-c", "exit 7", status=7)


@case()
def environment_is_printed():
    lines = run("--device", "mine=127.0.0.1", "--spin", "5us", "--ud", "reliable", "--ud-rate",
                "1.5M", "--receive-wait", "10s", "--print-env").stdout.splitlines()
    check(lines[0].startswith("LD_LIBRARY_PATH=/"), lines)
    check("DIWARP_RUN_UD=reliable" in lines and "DIWARP_RUN_UD_RATE=1500000" in lines, lines)
    check("DIWARP_RUN_RECEIVE_WAIT=10s" in lines, lines)
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
    check("not a rate" in run("--ud-rate", "x", "true", status=2).stderr, "no word of the rate")
    check("reliable" in run("--ud", "x", "true", status=2).stderr, "no word of what there is")
    check("NAME=ADDR" in run("--device", "x", "true", status=2).stderr, "no word of the form")


NETWORK = ("ip link set lo up; ip link add e0 type veth peer name e1; ip link set e1 up; "
           "ip addr add 192.0.2.1/24 dev e0; ip addr add 2001:db8::1/64 dev e0 nodad; "
           "ip link set e0 up; ip route add default dev e0; exec \"$0\" \"$@\"")


def enter_a_network():
    """A host may have no address but loopback. Programs like libfabric and mckey want another one: all
    runs in a namespace with a link then, where there may be some."""
    if own_address() != "127.0.0.1" or "--list" in sys.argv:
        return
    unshare = ("unshare", "-n", *(() if os.geteuid() == 0 else ("-r",)))
    if subprocess.run([*unshare, "true"], capture_output=True).returncode == 0:
        os.execvp(unshare[0], [*unshare, "sh", "-ec", NETWORK, sys.executable, "-B", *sys.argv])


if __name__ == "__main__":
    enter_a_network()
    sys.exit(harness.main())
