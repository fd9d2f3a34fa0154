#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""diwarp's verbs on Linux's siw, in the guest, through rdma-core. README.md says what is covered.

  bridge_test.py --peers FOLDER --tools FOLDER --contract PROGRAM [--only STEP,...]

All steps share one guest: host and guest have a network of their own (10.77.0.1 and 10.77.0.2, the
device siw1), and the part of this script that talks to the guest runs in that network.
"""
import argparse
import csv
import importlib.util
import json
import os
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import guest as vm  # pylint: disable=wrong-import-position
from guest import (AGENT_PORT, Agent, check, report_of,  # pylint: disable=wrong-import-position
                   reports_of, run_here, wait_listening, where)
from interop_test import SIW_SAYS, fault_options  # pylint: disable=wrong-import-position

DEVICE = "hw:siw1"
END_PORT = 7190  # of removal_peer
HERE = "10.77.0.1"
THERE = "10.77.0.2"
LIMIT = 1500  # seconds for the guest
CONTRACT_LIMIT = 900  # of these for the contract suite, most of which is emulation
CONTRACT = os.path.join(vm.HERE, "..", "contract")
SKIPPED = os.path.join(CONTRACT, "skipped", "siw.txt")
LIMITS = {"message", "queue_depth", "sge", "inline_data", "private_data", "queue_pairs",
          "completion_entries", "memory_regions", "windows", "shared_receive_depth", "ord", "ird"}
NO_LIMITS = {"windows"}  # of which siw has none
PEERS = ("guest_agent", "siw_peer", "diwarp_peer", "hybrid_peer", "memory_peer",
         "removal_peer")
TOOLS = ("diwarp-info", "diwarp-pingpong", "diwarp-bandwidth", "diwarp-rping")
steps = {}
measurements = {}  # run where --only names them


def step(function):
    steps[function.__name__] = function
    return function


def measurement(function):
    measurements[function.__name__] = function
    return function


def load_promises():
    path = os.path.join(CONTRACT, "promises.py")
    spec = importlib.util.spec_from_file_location("promises", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tool(name):
    return os.path.join(where.tools, name)


def peer(name):
    return os.path.join(where.peers, name)


def both_well(*runs, timeout=vm.PATIENCE):
    results = [(run.name, *run.result(timeout)) for run in runs]
    text = "\n".join(f"{name}: status {status}\n{output}" for name, status, output in results)
    check(all(status == 0 for _, status, _ in results), text)
    return text


def info_of(guest, name):
    """What diwarp-info --json tells of a hardware device."""
    devices = json.loads(guest.run("/host/diwarp-info --json 2>/dev/null"))["hardware"]["devices"]
    found = [device for device in devices if device["name"] == name]
    check(len(found) == 1, f"in JSON: {devices}")
    return found[0]


def skipped_capabilities():
    """What siw lacks, as the list of skipped promises has it."""
    with open(SKIPPED, encoding="utf-8") as lines:
        return {line.partition(":")[0] for line in lines}


@step
def info(guest):
    """diwarp-info lists the device, its limits, and what it does not offer."""
    text = guest.run("/host/diwarp-info")
    listed = info_of(guest, DEVICE)
    check(listed["usable"] and listed["state"] == "active" and THERE in listed["addresses"],
          f"in JSON: {listed}")
    limits = listed["limits"]
    check(set(limits) == LIMITS and all((limits[name] == 0) == (name in NO_LIMITS) for name in limits),
          f"limits in JSON: {listed}")
    check(set(listed["lacks"]) == skipped_capabilities(), f"it lacks other things: {listed}")
    for wanted in (DEVICE, THERE, "active", "libibverbs", "librdmacm", *listed["lacks"]):
        check(wanted in text, f"diwarp-info does not tell {wanted}:\n{text}")
    opened = json.loads(guest.run(f"/host/diwarp-info --device {DEVICE} --json 2>/dev/null"))
    check(opened["limits"] == listed["limits"], f"its own limits are others: {opened['limits']}")
    check(not set(opened["capabilities"]) & set(listed["lacks"]), f"both has and lacks: {opened}")


@step
def contract(guest):
    """The contract suite; what it skips is what the list has."""
    promises = load_promises()
    running = guest.start(f"DIWARP_CONTRACT_DEVICE={DEVICE} /host/test_contract",
                          CONTRACT_LIMIT)
    status, output = running.result(CONTRACT_LIMIT)
    lines = [line for line in output.splitlines()
             if not line.startswith(("[", promises.PREFIX))]
    check(status == 0, f"the contract suite: status {status}\n" + "\n".join(lines[-400:]))
    check(promises.compare(output, SKIPPED, where.write), "the list of promises is another")


MEASURES = [(program, op) for program in ("diwarp-pingpong", "diwarp-bandwidth")
            for op in ("send", "write", "read")]
SIZES = "1,4K,1M"
PORT = 18560
ADDRESSES = {"bridged": THERE, "software": HERE}


def begin(guest, side, program, words):
    """`side`: "bridged", in the guest, or "software", here."""
    if side == "bridged":
        return guest.start(f"/host/{program} --device {DEVICE} {words}")
    return run_here([tool(program), "--device", HERE, *words.split()])


def measure(guest, program, options, serving, connecting):
    server = begin(guest, serving, program, f"--server {ADDRESSES[serving]}:{PORT} --timeout 60")
    if serving == "bridged":
        guest.wait_port(PORT)
    else:
        wait_listening(PORT)
    client = begin(guest, connecting, program, f"--connect {ADDRESSES[serving]}:{PORT} --timeout 60 "
                                               f"--transport rc {options}")
    return client, server


@step
def tools(guest):
    """Latency and throughput tools: bridged on both ends, and against software, in both roles."""
    for serving, connecting in (("bridged", "bridged"), ("bridged", "software"),
                                ("software", "bridged")):
        for program, op in MEASURES:
            both_well(*measure(guest, program, f"--op {op} --size {SIZES} --verify --iterations 10 "
                                               "--warmup 2", serving, connecting))
    for op in ("atomic", "send-imm"):
        client, server = measure(guest, "diwarp-pingpong", f"--op {op}", "bridged", "bridged")
        status, output = client.result()
        server.result()
        check(status not in (0, None) and DEVICE in output and op in output,
              f"--op {op}: status {status}: {output}")
        print(output.strip())


@step
def rping(guest):
    """diwarp-rping bridged against the real rping, in both roles."""
    size = "-C 100 -S 4096"
    served = guest.start(f"timeout 60 rping -s -a {THERE} -p 7174 {size} -V")
    guest.wait_port(7174)
    both_well(guest.start(f"/host/diwarp-rping --client --device {DEVICE} --address {THERE} "
                          "--port 7174 --count 100 --size 4096 --verify"), served)
    served = guest.start(f"/host/diwarp-rping --server --device {DEVICE} --address {THERE} "
                         "--port 7175 --count 100 --size 4096 --verify")
    guest.wait_port(7175)
    both_well(guest.start(f"timeout 60 rping -c -a {THERE} -p 7175 {size} -V"), served)


ALL = ("--ops send,send_solicited,send_invalidate,send_both,write,read --actors client,server "
       "--sizes 1,63,64,1000,1460,4096,65536,1048576")


def commands_of(bridged_serves, common, siw="", bridged=""):
    """The server's and the client's, one of diwarp_peer bridged and one of siw_peer."""
    commands = [f"/host/diwarp_peer --device {DEVICE} --address {THERE} {common} {bridged}",
                f"/host/siw_peer --address {THERE} {common} {siw}"]
    return commands if bridged_serves else commands[::-1]


def begin_exchange(guest, bridged_serves, common, siw="", bridged="", port=[7200]):
    """diwarp_peer bridged and siw_peer, both in the guest: the client and the server, as they run."""
    port[0] += 1
    server, client = commands_of(bridged_serves, f"--port {port[0]} {common}", siw, bridged)
    serving = guest.start(f"{server} --server")
    guest.wait_port(port[0])
    return guest.start(client), serving


def exchange(*arguments, **options):
    """Both reports, the client's first."""
    return reports_of(*begin_exchange(*arguments, **options))


@step
def peers(guest):
    """diwarp_peer bridged against siw_peer: all operations, in both roles; killed peers."""
    for bridged_serves in (True, False):
        for report in exchange(guest, bridged_serves, ALL):
            check(report["bytes"] > 0, report["text"])
        for size in (1, 64, 240):
            exchange(guest, bridged_serves, f"--private-data {size} --ops send")
        reports = exchange(guest, bridged_serves,
                           "--slot-size 4096 --connections 200 --ops send,write")
        check(all(r["connections"] == 200 for r in reports), "not 200 connections")
        exchange(guest, bridged_serves, "--slot-size 4096 --connections 25 --parallel --ops send")
        for bridged_dies in (True, False):
            victim, other = "--die-after 3", "--expect-end"
            for op in ("send", "write", "read"):
                exchange(guest, bridged_serves,
                         f"--ops {op} --actors client,server --sizes 200000 --rounds 4",
                         siw=other if bridged_dies else victim,
                         bridged=victim if bridged_dies else other)


@step
def rejects(guest, port=7190):
    """diwarp_peer bridged and siw_peer reject each other, with private data; then they accept."""
    for bridged_serves in (True, False):
        port += 1
        server, client = commands_of(bridged_serves, f"--port {port} --private-data 20")
        serving = guest.start(f"{server} --server --rejects 2")
        guest.wait_port(port)
        for expected in ("--expect-reject", "--expect-reject", ""):
            reports_of(guest.start(f"{client} {expected}"))
        reports_of(serving)


def begin_fault(guest, fault, op, bridged_serves, bridged_acts):
    actor = "server" if bridged_serves == bridged_acts else "client"
    common, slots = fault_options(fault, op, actor)
    runs = begin_exchange(guest, bridged_serves, common, siw=slots if bridged_acts else "",
                          bridged="" if bridged_acts else slots)
    return runs, actor


@step
def faults(guest):
    """Every fault that siw notices, of diwarp_peer bridged and of siw_peer: both sides are told."""
    for number, (fault, op) in enumerate(SIW_SAYS):
        for runs, actor in [begin_fault(guest, fault, op, (number % 2 == 0) == bridged_acts,
                                        bridged_acts) for bridged_acts in (True, False)]:
            acting = reports_of(*runs)[1 if actor == "server" else 0]
            print(f"{fault} {op}, {acting['text'].split(' ')[0]} acts: "
                  f"{acting['status'] or 'success'}, {acting['event'] or 'ended'}")


def run_hybrid(guest, client_options, port=[7180]):
    """hybrid_peer on siw answers one here. Returns the client's report and the server's."""
    port[0] += 1
    served = guest.start(f"/host/hybrid_peer --device {DEVICE} --port {port[0]}", 400)
    guest.wait_port(port[0])
    client = run_here([peer("hybrid_peer"), "--device", HERE, "--peer", THERE, "--port",
                       str(port[0]), *client_options.split()], 400)
    return both_reports(client, served)


def both_reports(*runs):
    """Of both, even where one is not well: the other may tell why."""
    reports = [report_of(running, 400) for running in runs]
    check(all(report["ok"] for report in reports), "\n".join(r["text"] for r in reports))
    return reports


@step
def hybrid(guest):
    """RC over siw, UD and RD in software: one address, one completion queue, one channel."""
    served = run_hybrid(guest, f"--rounds {where.rounds}")[1]
    check(served["wakes"] >= where.rounds, served["text"])
    check(min(served[way] for way in ("rc", "ud", "rd")) >= where.rounds, served["text"])
    print(served["text"])
    print(run_hybrid(guest, "--single 10 --rounds 10 --invalidate-by rc")[0]["text"])


@step
def mistakes(guest):
    """A peer's mistake ends the reliable connection, and datagrams of the same device go on."""
    for mistake in ("wrong_rkey", "beyond", "no_receive", "garbage"):
        client, served = run_hybrid(guest, f"--single 10 --rounds 50 --mistake {mistake}")
        check(min(served[way] for way in ("ud", "rd")) >= 50, served["text"])
        print(client["text"])


class Logged:
    """A program in the guest whose output others may look at, and which may be killed."""
    count = 0

    def __init__(self, guest, command):
        Logged.count += 1
        self._guest = guest
        self._log = f"/tmp/logged{Logged.count}"
        self.running = guest.start(f"{command} > {self._log} 2>&1 & echo $! > {self._log}.pid; "
                                   f"wait $!; status=$?; cat {self._log}; exit $status")

    def has_said(self, line):
        """A shell command that tells whether the program has."""
        return f"grep -qsx '{line}' {self._log}"

    def wait_line(self, line):
        """Until the program has said so; fails where it ends before."""
        ended = f"(test -s {self._log}.pid && ! kill -0 $(cat {self._log}.pid) 2>/dev/null)"
        said = self.has_said(line)
        self._guest.run(f"{until(f'({said} || {ended})')}; {said} || (cat {self._log}; false)")

    def kill(self):
        self._guest.run(f"{until(f'test -s {self._log}.pid')}; kill -KILL $(cat {self._log}.pid)")
        status, output = self.running.result()
        check(status == 128 + signal.SIGKILL, f"status {status}: {output}")


def refusal_of(guest, words, before=""):
    """What the device says to memory that it cannot pin; it works afterwards."""
    output = guest.run(f"{before} timeout 60 /host/memory_peer --device {DEVICE} {words}")
    return json.loads(output.splitlines()[-1])["refusal"]


def registers_of_a_device(guest):
    """A file by which they can be mapped; those of a driver, or of ports, cannot."""
    files = guest.run("ls /sys/bus/pci/devices/*/resource[0-9]").split()
    tried = [guest.start(f"timeout 60 /host/memory_peer --only-map --file {file}") for file in files]
    mapped = [file for file, running in zip(files, tried) if running.result()[0] == 0]
    check(mapped, f"none of these can be mapped: {files}")
    return mapped[0]


@step
def memory(guest):
    """Too little memory may be locked, and memory that cannot be pinned."""
    check(refusal_of(guest, "--length 1048576") == "", "plain memory is refused")
    text = refusal_of(guest, "--length 1048576", "ulimit -l 64;")
    for wanted in (DEVICE[3:], "1048576 bytes", "65536 bytes", "RLIMIT_MEMLOCK", "ulimit -l"):
        check(wanted in text, f"the refusal does not tell {wanted}: {text}")
    for kind in ("read_only", "unmapped", f"device --file {registers_of_a_device(guest)}"):
        text = refusal_of(guest, f"--memory {kind}")
        check("pinned" in text and "4096 bytes" in text, f"{kind} memory: {text}")


def until(condition):
    """A shell command that waits until another one is true."""
    return f"(for i in $(seq 900); do {condition} && exit; usleep 100000; done; exit 1)"


def wait_state(guest, name, state):
    end = time.monotonic() + vm.PATIENCE
    while info_of(guest, name)["state"] != state:
        check(time.monotonic() < end, f"the port of {name} does not become {state}")
        time.sleep(0.1)


@step
def ports(guest):
    """The port of siw0 goes down and comes back: events, and new connections."""
    routes = guest.run("ip route show dev eth0").splitlines()
    watching = Logged(guest, "/host/removal_peer --device hw:siw0 --ports")
    watching.wait_line("busy")
    guest.run("ip link set eth0 down")
    wait_state(guest, "hw:siw0", "down")
    guest.run("ip link set eth0 up")
    for route in routes:
        guest.run(f"ip route replace {route} dev eth0")
    wait_state(guest, "hw:siw0", "active")
    both_well(watching.running)
    check(guest.run("ip route show dev eth0").splitlines() == routes, "eth0 has other routes now")


@step
def silence(guest):
    """The port goes down under a connection with software, whose end hears nothing more and says so
    by its own timeout. The port's end is told by events."""
    served = Logged(guest, f"/host/removal_peer --device {DEVICE} --serve --ports")
    served.wait_line("listening")
    client = run_here([peer("removal_peer"), "--device", HERE, "--connect", THERE,
                       "--user-timeout", "5"])
    served.wait_line("busy")
    # siw would still close the connection while the port goes down, and once it is up the kernel
    # would reset it: neither gets out. The guest cannot be asked before the port is up again.
    down = f"ip link set eth1 down; {until(served.has_said('ended'))}; ip link set eth1 up"
    guest.run(f"ip rule add pref 1 ipproto tcp sport {END_PORT} blackhole && "
              f"(setsid bash -c {shlex.quote(down)} < /dev/null > /dev/null 2>&1 &)")
    text = both_well(client, served.running)
    guest.run("ip rule del pref 1")
    check("did not answer in time" in client.result()[1], text)
    print(text)


def begin_ends(guest, bridged_serves):
    """A busy connection of removal_peer: on siw, and in software here."""
    command = [peer("removal_peer"), "--device", HERE]
    if bridged_serves:
        bridged = Logged(guest, f"/host/removal_peer --device {DEVICE} --serve")
        bridged.wait_line("listening")
        software = run_here([*command, "--connect", THERE])
    else:
        software = run_here([*command, "--serve"])
        wait_listening(END_PORT)
        bridged = Logged(guest, f"/host/removal_peer --device {DEVICE} --connect {HERE}")
    bridged.wait_line("busy")
    return bridged, software


def wait_unused(guest, name):
    """Until no process has anything of this device."""
    end = time.monotonic() + vm.PATIENCE
    while True:
        listed = json.loads(guest.run("rdma -j resource show"))
        found = next(device for device in listed if device["ifname"] == name)
        left = {kind: found[kind] for kind in ("pd", "cq", "qp", "cm_id", "mr", "ctx") if found[kind]}
        if not left:
            return
        check(time.monotonic() < end, f"in the kernel there are still {left}")
        time.sleep(0.1)


@step
def kills(guest):
    """SIGKILL in the midst of messages: the peer is told, the kernel keeps nothing, and the same port
    is used again at once."""
    for bridged_serves in (True, False):
        for bridged_dies in (True, False):
            bridged, software = begin_ends(guest, bridged_serves)
            if bridged_dies:
                bridged.kill()
            else:
                software.process.kill()
            both_well(software if bridged_dies else bridged.running)
            wait_unused(guest, "siw1")


@step
def listeners(guest):
    """A port has one listener, bridged or not: another one is told that the address is in use."""
    server = f"timeout 10 /host/diwarp_peer --server --address {THERE} --port 7189 --device"
    commands = {"bridged": f"{server} {DEVICE}", "software": f"{server} {THERE}",
                "plain TCP": "timeout 10 nc -l -p 7189"}
    for holder, taker in (("bridged", "bridged"), ("bridged", "software"), ("bridged", "plain TCP"),
                          ("software", "bridged"), ("plain TCP", "bridged")):
        holding = Logged(guest, f"exec {commands[holder]}")
        guest.wait_port(7189)
        status, output = guest.start(commands[taker]).result()
        check(status == 1 and "in use" in output, f"{taker} beside {holder}: {status}: {output}")
        print(f"{taker} beside {holder}: {output.strip().splitlines()[-1]}")
        holding.kill()


@step
def removal(guest):
    """The device is deleted while eight connections are busy."""
    leaving = Logged(guest, f"/host/removal_peer --device {DEVICE}")
    leaving.wait_line("busy")
    both_well(guest.start("timeout 60 rdma link delete siw1"), leaving.running)


COST_ROUNDS = 5
ONE_EACH = ("taskset 1", "taskset 2")  # the processors of server and client


def perftest_latency(guest):
    """Half a round trip of ib_send_lat's, the typical one, in microseconds."""
    server, client = (f"{pinned} ib_send_lat -R -s 64 -n 1000 -F" for pinned in ONE_EACH)
    serving = guest.start(server)
    guest.wait_port(18515)
    output = guest.run(f"{client} {THERE}")
    serving.result()
    return float(next(line for line in output.splitlines() if line.startswith(" 64")).split()[4])


def bridged_latency(guest):
    """The same of diwarp-pingpong's, the median."""
    common = f"/host/diwarp-pingpong --device {DEVICE}"
    server, client = (f"{pinned} {common}" for pinned in ONE_EACH)
    serving = guest.start(f"{server} --server {THERE}:{PORT}")
    guest.wait_port(PORT)
    output = guest.run(f"{client} --connect {THERE}:{PORT} --transport rc --op send --size 64 "
                       "--iterations 1000 --warmup 10 --csv - 2>/dev/null")
    serving.result()
    lines = output.splitlines()
    start = next((at for at, line in enumerate(lines) if line.startswith("transport,")), None)
    check(start is not None, f"no row of diwarp-pingpong: {output}")
    return float(next(csv.DictReader(lines[start:]))["half_rtt_us_p50"])


@measurement
def cost(guest):
    """The bridge beside ib_send_lat over siw, in turn. The machine is emulated, and nothing is
    asserted."""
    measured = [(perftest_latency(guest), bridged_latency(guest)) for _ in range(COST_ROUNDS)]
    for round_of in measured:
        print("ib_send_lat {:.1f} us, diwarp-pingpong {:.1f} us".format(*round_of))
    perftest, bridged = (statistics.median(column) for column in zip(*measured))
    print(f"medians: {perftest:.1f} us, {bridged:.1f} us: {bridged / perftest:.2f}")


def inside():
    """In the network that the guest is in."""
    guest = Agent((THERE, AGENT_PORT))
    guest.wait_until_there(60)
    try:
        for name in where.only or steps:
            begun = time.monotonic()
            (steps | measurements)[name](guest)
            print(f"{name}: {time.monotonic() - begun:.0f} s", flush=True)
    finally:
        vm.end_processes()


def outside(arguments):
    """Boots the guest, with this script in its network. Returns the status."""
    share = os.path.join(where.folder, "share")
    os.makedirs(share)
    for name in PEERS:
        shutil.copy(peer(name), share)
    for name in TOOLS:
        shutil.copy(tool(name), share)
    shutil.copy(where.contract, os.path.join(share, "test_contract"))
    for name in os.listdir(share):
        subprocess.run(["strip", os.path.join(share, name)], check=True)
    inner = [sys.executable, "-B", os.path.abspath(__file__), "--inside", *arguments]
    command = [os.path.join(vm.HERE, "siw-vm", "run.sh"), "--times", "--tap", "--netns", "--mem",
               "2000", "--siw", "accept_recheck=1 whole_trailer=1", "--dir-ro", share, "--timeout",
               str(LIMIT), "--host", " ".join(f"'{word}'" for word in inner), "--",
               f"ulimit -n 4096; ulimit -l unlimited; /host/guest_agent {AGENT_PORT} & "
               f"wait-port {AGENT_PORT}; ready; wait-host"]
    return subprocess.run(command, stdin=subprocess.DEVNULL, timeout=LIMIT + 60,
                          check=False).returncode


def missing():
    """Why nothing can run here, or nothing."""
    if shutil.which("qemu-system-x86_64") is None:
        return "there is no qemu-system-x86_64 here (dev/packages.sh, purpose interop)"
    for program in [peer(name) for name in PEERS] + [where.contract]:
        if not os.path.exists(program):
            return f"{program} was not built (libibverbs-dev, librdmacm-dev)"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--peers", required=True, help="the folder of the peers")
    parser.add_argument("--tools", required=True, help="the folder of the tools")
    parser.add_argument("--contract", required=True, help="the program test_contract")
    parser.add_argument("--rounds", type=int, default=10_000, help="messages each way in `hybrid`")
    parser.add_argument("--only", type=lambda text: text.split(","),
                        help="these steps, or " + ", ".join(measurements))
    parser.add_argument("--write", action="store_true", help="write the list of promises anew")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    vars(where).update(vars(options))
    if options.inside:
        inside()
        return 0
    if reason := missing():
        print("SKIPPED:", reason)
        return 0
    where.folder = vm.new_folder()
    try:
        return 1 if outside(sys.argv[1:]) else 0
    finally:
        shutil.rmtree(where.folder, ignore_errors=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except AssertionError as error:
        print("FAILED:", error)
        sys.exit(1)
