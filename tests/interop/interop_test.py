#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""diwarp against Linux's siw. README.md says what is covered and how to run a case by hand.

  interop_test.py --list
  interop_test.py --peers FOLDER --tools FOLDER CASE
"""
import argparse
import base64
import importlib.machinery
import importlib.util
import os
import re
import shutil
import subprocess
import sys

import guest as vm
from guest import (GUEST, HOST, SIW_PORTS, Guest, NotStarted, check, exchange, free_port, reports_of,
                   run_here, wait_listening, where)


def load_check_capture():
    path = os.path.join(vm.HERE, "check_capture")
    loader = importlib.machinery.SourceFileLoader("check_capture", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


sys.dont_write_bytecode = True
check_capture = load_check_capture()
cases = {}

SENDS = "send,send_solicited,send_invalidate,send_both"
ALL = f"--ops {SENDS},write,read --actors client,server"
# Around the ends of a segment, of a page and of what one length field holds.
SIZES = "1,2,3,4,5,63,64,1000,1440,1441,1442,1443,1444,1460,4096,9001,65535,65536"
CONFIGURATIONS = [dict(crc=crc, revision=revision, p2p=p2p)
                  for revision in (1, 2) for p2p in (0, 1) for crc in (0, 1)
                  if revision == 2 or not p2p]


class NotInstalled(Exception):
    """A program that a case needs is missing here."""


def case(function):
    cases[function.__name__] = function
    return function


def diwarp_options(crc, revision, p2p):
    return (f"{'--crc' if crc else '--no-crc'} --revision {revision}" +
            (" --peer-to-peer" if p2p else ""))


def captured(guest, at_least=1, may_be_cut=False):
    """The connections that were captured, all of them as they should be."""
    connections = check_capture.read_capture(guest.pcap, may_be_cut)
    wrong = [f"{c}\n  {p}" for c in connections for p in c.problems[:5]]
    check(not wrong, "in the capture:\n" + "\n".join(wrong))
    check(len(connections) >= at_least,
          f"{len(connections)} connections were captured, not {at_least}")
    print(f"captured: {len(connections)} connections, "
          f"{sum(c.crcs for c in connections)} good CRCs, "
          f"{sum(sum(c.opcodes.values()) for c in connections)} FPDUs")
    return connections


def exchange_sizes(guest, siw_serves, diwarp="", siw="", greet=False):
    """All operations by both sides, in sizes around the ends of something, and in large ones: the
    reports of both runs, siw's first."""
    hello = " --greet" if greet else ""
    return [exchange(guest, siw_serves, common + hello, siw=siw, diwarp=diwarp)
            for common in (f"{ALL} --sizes {SIZES}",
                           "--ops send,write,read --actors client,server --sizes 1048575,1048576")]


def run_configurations(siw_serves):
    count = 0
    with Guest() as guest:
        for configuration in CONFIGURATIONS:
            # The depth that siw asks for is a parameter where it is the client; as a server it
            # answers.
            guest.set_siw(**(dict(crc=0, revision=2, p2p=0) if siw_serves else configuration))
            small, big = exchange_sizes(guest, siw_serves, diwarp=diwarp_options(**configuration),
                                        greet=configuration["p2p"])
            said = small[1]["negotiated"]
            crc = "crc" if configuration["crc"] else "no crc"
            wanted = f"revision {configuration['revision']}, {crc}"
            check(said.startswith(wanted), f"negotiated {said!r}, not {wanted!r}")
            print(f"{wanted}{', peer-to-peer' if configuration['p2p'] else ''}: "
                  f"{small[1]['steps'] + big[1]['steps']} operations, "
                  f"{small[1]['bytes'] + big[1]['bytes']} bytes verified here, "
                  f"{small[0]['bytes'] + big[0]['bytes']} there")
            count += 2
    captured(guest, count + guest.gave_up, may_be_cut=guest.gave_up != 0)


def tried_again(run, attempts=3):
    """What diwarp has no part in. A failure there is told, and says nothing of diwarp: it is tried
    again, in another guest, and where it never goes well that is told as well and no failure. But
    without a virtual machine there is no test."""
    for attempt in range(1, attempts + 1):
        try:
            return run()
        except (AssertionError, OSError) as error:
            print(f"NOTE: failed without diwarp, attempt {attempt} of {attempts}: {error}", flush=True)
            if isinstance(error, NotStarted) and attempt == attempts:
                raise
    print(f"NOTE: siw failed with siw {attempts} times, which tells nothing of diwarp")
    return None


def siw_with_siw():
    with Guest() as guest:
        # The local traffic goes through `lo`, with segments as on a wire.
        guest.run("ip link set lo mtu 1500")
        guest.start("tcpdump -i lo -s 0 -B 65536 -U -w /tmp/lo.pcap tcp")
        guest.run("for i in $(seq 600); do test -s /tmp/lo.pcap && exit; usleep 50000; done; exit 1")
        for parameters in (dict(crc=0, revision=1, p2p=0), dict(crc=1, revision=2, p2p=1)):
            guest.set_siw(**parameters)
            served = guest.start(f"/host/siw_peer --server --address {GUEST} --port 7174")
            guest.wait_port(7174)
            client = guest.start(f"/host/siw_peer --address {GUEST} --port 7174 {ALL} "
                                 f"--sizes {SIZES}")
            for report in reports_of(client, served):
                check(report["bytes"] > 0, report["text"])
        guest.run(AT_REST.format(file="/tmp/lo.pcap"))
        copy_from(guest, "/tmp/lo.pcap", guest.pcap + ".lo")
    guest.pcap += ".lo"
    opcodes = set().union(*(set(c.opcodes) for c in captured(guest, 2)))
    check(opcodes >= set(check_capture.OPCODES) - {"terminate"}, f"captured only {opcodes}")


@case
def peers_alone():
    """siw to siw in one guest: what the peers and their protocol are worth without diwarp."""
    tried_again(siw_with_siw)


# tcpdump writes what it captured when it gets to it: it is ended once its file has not grown for a
# second, and has ended when it is no longer listed. Half a minute each at most.
AT_REST = """
size=0
for i in $(seq 30); do
  before=$size; sleep 1; size=$(stat -c %s {file})
  test $size -eq $before && break
done
killall -INT tcpdump
for i in $(seq 300); do pidof tcpdump > /dev/null || exit 0; usleep 100000; done
exit 1
"""


def copy_from(guest, there, here):
    text = guest.run(f"base64 {there}")
    with open(here, "wb") as file:
        file.write(base64.b64decode(text))


@case
def siw_serves():
    run_configurations(siw_serves=True)


@case
def siw_connects():
    run_configurations(siw_serves=False)


def exchange_private_data(guest):
    for siw_is_server in (True, False):
        for size in (1, 64, 240):
            exchange(guest, siw_is_server, f"--private-data {size}")
        exchange(guest, siw_is_server, "--private-data 1", diwarp="--revision 1")


def reject(guest):
    """Both ways, with private data; the listener then accepts the next."""
    common = "--private-data 20"
    served = guest.start(f"/host/siw_peer --server --address {GUEST} --port 7174 --rejects 2 "
                         + common)
    guest.wait_port(7174)
    at = ["--address", "127.0.0.1", "--port", str(guest.siw_ports[7174])]
    peer = [os.path.join(where.peers, "diwarp_peer"), *common.split()]
    for expect in (["--expect-reject"], ["--expect-reject", "--revision", "1"], []):
        reports_of(run_here(peer + at + expect))
    reports_of(served)
    port = free_port()
    here = run_here(peer + ["--server", "--address", "127.0.0.1", "--port", str(port),
                            "--rejects", "1"])
    wait_listening(port)
    for expect in ("--expect-reject", ""):
        reports_of(guest.start(f"/host/siw_peer --address {HOST} --port {port} "
                               f"{common} {expect}"))
    reports_of(here)


@case
def private_data_and_rejects():
    with Guest() as guest:
        exchange_private_data(guest)
        reject(guest)
    captured(guest, 8 + 5)


@case
def markers():
    """siw rejects a peer that asks for markers; diwarp says so, and does without when told to."""
    with Guest() as guest:
        served = guest.start(f"/host/siw_peer --server --address {GUEST} --port 7174")
        guest.wait_port(7174)
        at = ["--address", "127.0.0.1", "--port", str(guest.siw_ports[7174])]
        peer = os.path.join(where.peers, "diwarp_peer")
        for options in (["--markers", "--expect-reject"], []):
            reports_of(run_here([peer, *at, *options]))
        reports_of(served)


# Fault, operation, and what the side that notices has to say: layer, type, code (RFC 5040 section
# 4.8, RFC 5041).
FAULTS = [
    ("wrong_stag", "write", (1, 1, 0)),
    ("wrong_stag", "read", (0, 1, 0)),
    ("out_of_bounds", "write", (1, 1, 1)),
    ("out_of_bounds", "read", (0, 1, 1)),
    ("before_base", "write", (1, 1, 1)),
    ("before_base", "read", (0, 1, 1)),
    ("no_right", "write", (0, 1, 2)),
    ("no_right", "read", (0, 1, 2)),
    ("invalidated", "write", (1, 1, 0)),
    ("invalidated", "read", (0, 1, 0)),
    ("wrong_stag", "send_invalidate", (0, 1, 9)),
    ("no_receive", "send", (1, 2, 2)),
    ("too_long", "send", (1, 2, 5)),
]
RFCS_SAY = {(fault, op): says for fault, op, says in FAULTS}
# What siw does instead. Its Terminate has layer and type in each other's place (on a little-endian
# host), so that these are what is on the wire.
SIW_SAYS = {
    ("wrong_stag", "write"): (1, 1, 0),
    ("wrong_stag", "read"): (1, 0, 0),
    ("out_of_bounds", "write"): (1, 1, 1),
    ("out_of_bounds", "read"): (1, 0, 1),
    ("before_base", "write"): (1, 1, 1),
    ("before_base", "read"): (1, 0, 1),
    ("no_right", "write"): (1, 1, 0),
    ("invalidated", "write"): (1, 1, 0),
    ("invalidated", "read"): (1, 0, 0),
    ("no_receive", "send"): (2, 1, 2),
    ("too_long", "send"): (2, 1, 2),
}


def fault_options(fault, op, actor):
    slots = " --slot-size 8192" if fault == "too_long" else ""
    return f"--fault {fault} --ops {op} --actors {actor} --sizes {9000 if slots else 1000}", slots


def exchange_faults(guest, siw_notices, say, roles=(True, False)):
    """The faults that `say` has, in these roles (whether siw serves): for each its name, what the side
    that notices it has to say, and the reports."""
    for fault, op, _ in FAULTS:
        for siw_is_server in roles if (fault, op) in say else ():
            diwarp_acts = siw_notices
            actor = "client" if siw_is_server == diwarp_acts else "server"
            common, slots = fault_options(fault, op, actor)
            reports = exchange(guest, siw_is_server, common,
                               siw=slots if siw_notices else "",
                               diwarp="" if siw_notices else slots)
            yield (f"{fault} {op}, siw {'serves' if siw_is_server else 'connects'}",
                   say[fault, op], reports)


def told_here(siw_notices, says):
    """What diwarp's report tells of the Terminate."""
    return f"{'received' if siw_notices else 'sent'} {'/'.join(map(str, says))}"


def run_faults(siw_notices):
    """Every fault in both roles; the side that notices it must say so on the wire."""
    with Guest() as guest:
        # siw does not notice some at all: see README.md.
        expected = list(exchange_faults(guest, siw_notices, SIW_SAYS if siw_notices else RFCS_SAY))
    verify_terminates(captured(guest, len(expected), may_be_cut=True), expected, siw_notices)


def verify_terminates(connections, expected, siw_notices):
    """siw now and then closes the connection without a word; diwarp must not."""
    wrong, silent = [], 0
    for connection, (name, says, reports) in zip(connections, expected):
        seen = [tuple(t[1:]) for t in connection.terminates]
        told = reports[1]["terminate"]
        want_told = told_here(siw_notices, says)
        print(f"{name}: on the wire {seen}, diwarp: {told or 'nothing'} "
              f"{reports[1]['status']}, siw: {reports[0]['status']} {reports[0]['event']}")
        if siw_notices and not seen and not told:
            silent += 1
        elif seen != [says]:
            wrong.append(f"{name}: Terminate {seen}, not {says}")
        elif told != want_told:
            wrong.append(f"{name}: diwarp tells {told!r}, not {want_told!r}")
    print(f"siw said nothing {silent} times of {len(expected)}")
    check(not wrong, "\n".join(wrong))
    check(2 * silent < len(expected), "siw hardly ever says why")


@case
def faults_noticed_by_siw():
    run_faults(siw_notices=True)


@case
def faults_noticed_by_diwarp():
    run_faults(siw_notices=False)


def exchange_deaths(guest, siw_is_server):
    """Each side's process is gone in the midst of each operation, and the other one is told."""
    victim, other = "--die-after 3", "--expect-end"
    for siw_dies in (True, False):
        for actor in ("client", "server"):
            for op in ("send", "write", "read"):
                exchange(guest, siw_is_server,
                         f"--ops {op} --actors {actor} --sizes 200000 --rounds 4",
                         siw=victim if siw_dies else other, diwarp=other if siw_dies else victim)


@case
def deaths():
    """A process that is gone in the midst of an operation; the other side is told, and can go on."""
    with Guest() as guest:
        for siw_is_server in (True, False):
            exchange_deaths(guest, siw_is_server)
        exchange(guest, True, ALL)
        exchange(guest, False, ALL)
    captured(guest, 26, may_be_cut=True)


SMALL = "--slot-size 4096"
AT_ONCE = f"{SMALL} --parallel {ALL}"


def two_hundred_in_turn(guest, siw_is_server):
    reports = exchange(guest, siw_is_server, f"{SMALL} --connections 200 --ops send,write")
    check(all(r["connections"] == 200 for r in reports), "not 200 connections")


@case
def many_connections():
    """200 one after the other, then 50 at once: in each role."""
    with Guest() as guest:
        for siw_is_server in (True, False):
            two_hundred_in_turn(guest, siw_is_server)
        fifty_to_siw(guest, AT_ONCE)
        fifty_to_diwarp(guest, AT_ONCE)
    captured(guest, 500)


def fifty_to_siw(guest, options):
    """One siw process does not take more than 36 connections: two, of 25 each. QEMU lets two wait to
    be forwarded, and more only after TCP's ever longer pauses."""
    served = [guest.start(f"/host/siw_peer --server --address {GUEST} --port {port} {options} "
                          "--connections 25") for port in SIW_PORTS]
    for port in SIW_PORTS:
        guest.wait_port(port)
    ports = ",".join(str(guest.siw_ports[port]) for port in SIW_PORTS)
    client = run_here([os.path.join(where.peers, "diwarp_peer"), *options.split(), "--address",
                       "127.0.0.1", "--port", ports, "--connections", "50", "--dials", "2"])
    reports_of(client, *served)


def fifty_to_diwarp(guest, options):
    port = free_port()
    here = run_here([os.path.join(where.peers, "diwarp_peer"), *options.split(), "--server",
                     "--address", "127.0.0.1", "--port", str(port), "--connections", "50"])
    wait_listening(port)
    clients = [guest.start(f"/host/siw_peer --address {HOST} --port {port} {options} "
                           "--connections 25") for _ in range(2)]
    reports_of(*clients, here)


@case
def netem():
    """1 % loss, 5 ms delay and reordering in both directions: everything arrives, verified."""
    with Guest() as guest:
        rule = "netem loss 1% delay 5ms 2ms reorder 25% 50%"
        guest.run(f"tc qdisc add dev eth0 root {rule}; ip link add ifb0 type ifb; "
                  "ip link set ifb0 up; tc qdisc add dev eth0 handle ffff: ingress; "
                  "tc filter add dev eth0 parent ffff: protocol ip matchall "
                  f"action mirred egress redirect dev ifb0 && tc qdisc add dev ifb0 root {rule}")
        for siw_is_server in (True, False):
            for crc in (0, 1):
                guest.set_siw(crc=crc)
                reports = exchange(guest, siw_is_server,
                                   f"{ALL} --sizes 1,1000,20000 --timeout 60",
                                   diwarp="--crc" if crc else "--no-crc")
                print(f"{reports[1]['steps']} operations, {reports[1]['negotiated']}")
        lost = guest.run("tc -s qdisc show")
    print(lost.strip())
    losses = re.findall(r"qdisc netem.*\n.*dropped (\d+),", lost)
    check(len(losses) == 2 and min(map(int, losses)) > 0, "netem lost nothing")
    captured(guest, 4)


def rping_serves(guest, size):
    served = guest.start(f"timeout 60 rping -s -a {GUEST} -p 7174 -C 100 -S {size} -V")
    guest.wait_port(7174)
    done = run_here([os.path.join(where.tools, "diwarp-rping"), "--client", "--address",
                     "127.0.0.1", "--port", str(guest.siw_ports[7174]), "--count", "100",
                     "--size", str(size), "--verify"])
    verify_rping(done, served)


def rping_connects(guest, size):
    port = free_port()
    done = run_here([os.path.join(where.tools, "diwarp-rping"), "--server", "--address",
                     "127.0.0.1", "--port", str(port), "--count", "100", "--size", str(size),
                     "--verify"])
    wait_listening(port)
    client = guest.start(f"timeout 60 rping -c -a {HOST} -p {port} -C 100 -S {size} -V")
    verify_rping(done, client)


@case
def rping():
    """diwarp-rping against the real rping in the guest, in both roles."""
    with Guest() as guest:
        for size in (64, 4096):
            rping_serves(guest, size)
            rping_connects(guest, size)
    captured(guest, 4)


def verify_rping(diwarp, siw):
    results = [("diwarp-rping", *diwarp.result()), ("rping", *siw.result())]
    text = "\n".join(f"{name}: status {status}\n{output}" for name, status, output in results)
    check(all(status == 0 for _, status, _ in results), text)


def over_drop_in(program, *words):
    """A program here, over the drop-ins for libibverbs and librdmacm."""
    file = shutil.which(program)
    if file is None:
        raise NotInstalled(f"{program} is not installed (dev/packages.sh, purpose drop-in)")
    # The ports of the guest are forwarded, and look like this host's.
    return run_here([os.path.join(where.tools, "diwarp-run"), "--crc", "--", file, *map(str, words)])


def connects_here(guest, program, options, serve_there, connect_here):
    """The program serves in the guest, on siw, and connects from here, over the drop-ins. What came of
    it here and there: (status, output) each."""
    there = guest.start(f"timeout 100 {program} {options} {serve_there.format(port=7174)}")
    guest.wait_port(7174)
    port = guest.siw_ports[7174]
    here = over_drop_in(program, *options.split(), *connect_here.format(port=port).split())
    return here.result(), there.result()


def serves_here(guest, program, options, serve_here, connect_there):
    """The same, the other way round."""
    port = free_port()
    here = over_drop_in(program, *options.split(), *serve_here.format(port=port).split())
    wait_listening(port)
    there = guest.start(f"timeout 100 {program} {options} {connect_there.format(port=port)}")
    return here.result(), there.result()


def told(program, here, there):
    return "\n".join(f"{program} {end}: status {status}\n{output}" for end, (status, output)
                     in (("over the drop-ins", here), ("on siw", there)))


def verify_rping_ends(here, there):
    check(here[0] == 0 and there[0] == 0, told("rping", here, there))


# perftest's row for 100 messages of 4,096 bytes.
FIGURES = re.compile(r"^ *4096 +100 +\d", re.MULTILINE)


def verify_perftest(program, client, here, there):
    """siw may complete the last Send of perftest's own in error though the peer has it (README.md)."""
    text = told(program, here, there)
    check(FIGURES.search(client[1]), text)
    check(here[0] == 0, text)
    check(there[0] == 0 or "Bad wc status 2" in there[1], text)


@case
def drop_in_rping():
    """rping over the drop-ins against rping on siw, contents verified, in both roles."""
    with Guest() as guest:
        for size in (64, 4096):
            options = f"-V -C 100 -S {size}"
            verify_rping_ends(*connects_here(guest, "rping", options, f"-s -a {GUEST} -p {{port}}",
                                             "-c -a 127.0.0.1 -p {port}"))
            verify_rping_ends(*serves_here(guest, "rping", options, "-s -a 127.0.0.1 -p {port}",
                                           f"-c -a {HOST} -p {{port}}"))
    captured(guest, 4)


@case
def drop_in_perftest():
    """perftest over the drop-ins against perftest on siw, in both roles. The server of ib_write_lat
    speaks first."""
    options = "-R -F -n 100 -s 4096"
    with Guest() as guest:
        for program in ("ib_send_lat", "ib_write_lat", "ib_read_lat", "ib_send_bw", "ib_write_bw",
                        "ib_read_bw"):
            here, there = connects_here(guest, program, options, "-d siw0 -p {port}",
                                        "-d diwarp0 -p {port} 127.0.0.1")
            verify_perftest(program, here, here, there)
            here, there = serves_here(guest, program, options, "-d diwarp0 -p {port}",
                                      f"-d siw0 -p {{port}} {HOST}")
            verify_perftest(program, there, here, there)


@case
def check_capture_can_fail():
    """A capture with one byte of one FPDU changed is found out; so is one with a hole."""
    with Guest() as guest:
        guest.set_siw(crc=1)
        exchange(guest, True, "--sizes 100")
    captured(guest)
    with open(guest.pcap, "rb") as file:
        good = file.read()
    at = good.rindex(b"diwp") + 30
    bad = bytearray(good)
    bad[at] ^= 1
    path = guest.pcap + ".bad"
    with open(path, "wb") as file:
        file.write(bad)
    problems = [p for c in check_capture.read_capture(path) for p in c.problems]
    check(any("Bad CRC32" in problem for problem in problems), f"not found out: {problems}")


# The host's programs in the guest, read-only, under its kernel.
HOST_ROOT = """set -e
cd /mnt
mkdir -p proc dev sys tmp etc
for name in bin sbin lib lib64; do ln -s usr/$name $name; done
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t tmpfs tmpfs tmp
mount --rbind /dev dev
modprobe sch_netem
modprobe veth
modprobe bridge
env -i PATH=/usr/sbin:/usr/bin chroot /mnt /usr/bin/python3 -B -c '
import sys
sys.path.insert(0, "/project/tests/lab")
import networks_test
from harness import cases, where
where.tools, where.folder = "/tools", "/tmp"
for name in sys.argv[1:]:
    print("==", name, flush=True)
    cases[name]()
' """


@case
def lab_netem():
    """The network netem of diwarp-lab, with the lab's own tests, for which the kernels of most hosts
    lack netem: loss, bursts, delay, rate, corruption, duplicates, reordering."""
    project = os.path.join(vm.HERE, "..", "..")
    names = subprocess.run(["/usr/bin/python3", "-B", project + "/tests/lab/networks_test.py",
                            "--list"], capture_output=True, text=True, check=True).stdout.split()
    names = [name for name in names if name.startswith("netem_")]
    check(len(names) >= 8, names)
    done = subprocess.run(
        [os.path.join(vm.HERE, "siw-vm", "run.sh"), "--no-siw", "--timeout", "700",
         "--dir-ro", "/usr:/mnt/usr", "--dir-ro", f"{os.path.realpath(project)}:/mnt/project",
         "--dir-ro", f"{os.path.realpath(where.tools)}:/mnt/tools", "--", HOST_ROOT + " ".join(names)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=720)
    print(done.stdout)
    check(done.returncode == 0, f"status {done.returncode}\n{done.stdout}{done.stderr}")
    check(done.stdout.count("== netem_") == len(names), done.stdout)


def missing():
    """Why nothing can run here, or nothing."""
    for program in ("qemu-system-x86_64", "tshark"):
        if shutil.which(program) is None:
            return f"there is no {program} here (dev/packages.sh, purpose interop)"
    for program in ("siw_peer", "guest_agent", "diwarp_peer"):
        if not os.path.exists(os.path.join(where.peers, program)):
            return f"{program} was not built (libibverbs-dev, librdmacm-dev)"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--peers", help="the folder of siw_peer, diwarp_peer and guest_agent")
    parser.add_argument("--tools", help="the folder of diwarp-rping")
    parser.add_argument("--keep", action="store_true", help="keep capture and logs, and say where")
    parser.add_argument("case", nargs="?", choices=list(cases))
    options = parser.parse_args()
    if options.list:
        print("\n".join(cases))
        return 0
    where.peers, where.tools, where.folder = options.peers, options.tools, vm.new_folder()
    if reason := missing():
        print("SKIPPED:", reason)
        return 0
    try:
        cases[options.case]()
    except NotInstalled as reason:
        print("SKIPPED:", reason)
    except AssertionError as error:
        print("FAILED:", error)
        return 1
    finally:
        vm.end_processes()
        if options.keep:
            print("kept:", where.folder)
        else:
            shutil.rmtree(where.folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
