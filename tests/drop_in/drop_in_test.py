#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What programs load over the drop-ins for libibverbs and librdmacm, the devices that they see, and
diwarp-run itself. Each case is a program; one that is not installed is skipped, and says so."""
import os
import re
import shutil
import signal
import subprocess
import sys

from programs import (DEVICE, built, free_port, installed_files, is_listening, main, over,
                      own_address, program, run)  # this first: it finds the harness
from facts import fails, works
import harness
from harness import PATIENCE, Process, case, check, tool, wait_until


# --- What programs load.

# And whether some of their files ask for the libraries before they run.
PACKAGES = (
    ("ibverbs-utils", True), ("rdmacm-utils", True), ("perftest", True), ("libfabric-bin", True),
    ("libfabric1", True), ("ucx-utils", False), ("libucx0", True), ("qperf", True), ("fio", True),
    ("tgt", True), ("librpma0", True), ("libdapl2", True), ("python3-pyverbs", True))


@case(*((package,) for package, _ in PACKAGES))
def loads(package):
    """Nothing is missing for any program or library of the package."""
    asked = False
    for path in installed_files(package):
        printed = run("--check", path).stdout
        check("missing" not in printed, f"{path}: {printed}")
        asked = asked or "libibverbs.so.1: /" in printed or "librdmacm.so.1: /" in printed
    check(asked or (package, True) not in PACKAGES, "no file asks for either library")


# --- Devices.

@works("ibv_devices, ibv_devinfo, ibv_asyncwatch", "ibverbs-utils", "all", "ibv_devinfo -v")
@case()
def devices_are_listed():
    program("ibv_devices")
    check(DEVICE in run("ibv_devices").stdout, "no device")


@case()
def device_is_described():
    program("ibv_devinfo")
    printed = run("ibv_devinfo", "-v", "-d", DEVICE).stdout
    for part in (r"transport:\s+iWARP \(1\)", r"state:\s+PORT_ACTIVE \(4\)",
                 r"link_layer:\s+Ethernet", r"max_qp:\s+[1-9]", r"max_qp_wr:\s+[1-9]",
                 r"max_mr:\s+[1-9]", r"max_sge:\s+[1-9]", r"GID\[\s*0\]:"):
        check(re.search(part, printed), f"no {part!r}: {printed}")
    check(any(gid in printed for gid in gid_texts(own_address())), printed)


def gid_texts(address):
    """An IPv4 address as a GID, in the two ways that ibv_devinfo has to print one."""
    parts = [int(part) for part in address.split(".")]
    return (f"::ffff:{address}", "0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x" % tuple(parts))


@case()
def list_of_devices_names_all():
    program("ibv_devinfo")
    printed = run("--device", "mine=127.0.0.1", "ibv_devinfo", "-l").stdout
    check(DEVICE in printed and "mine" in printed, printed)


ON_A_DEVICE = ("ip link set lo up; ip link add e0 type veth peer name e1; ip link set e1 up; "
               "ip addr add 192.0.2.9/24 dev e0; ip link set e0 up; exec \"$0\" \"$@\"")


@case()
def port_goes_down_with_the_address_of_its_device():
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "vanishing_address.py")
    installed_files("python3-pyverbs")
    unshare = ("unshare", "-n", *(() if os.geteuid() == 0 else ("-r",)))
    done = subprocess.run(
        [*unshare, "sh", "-c", ON_A_DEVICE, tool("run"), "--device", "mine=192.0.2.9",
         "/usr/bin/python3", "-B", script, "mine", "192.0.2.9/24", "e0"],
        capture_output=True, text=True, timeout=PATIENCE)
    check(done.returncode == 0, done.stdout + done.stderr)


@case()
def asyncwatch_ends_on_a_signal():
    watch = over("ibv_asyncwatch", "-d", DEVICE)
    folder = f"/proc/{watch.process.pid}/fd"
    wait_until(lambda: any("eventfd" in os.readlink(os.path.join(folder, name))
                           for name in os.listdir(folder)), "it opened no device")
    watch.process.send_signal(signal.SIGTERM)
    watch.end(-signal.SIGTERM)


@works("programs for libibverbs", "libibverbs-dev", "a queue pair's fatal event, and none of one "
       "that is destroyed", "tests/drop_in/fatal_event.cpp")
@case()
def fatal_event_is_told():
    printed = run(built("fatal_event"), DEVICE).stdout
    check("work queue catastrophic error" in printed, printed)  # its name


@works("python3-pyverbs", "python3-pyverbs", "scripts: RC queue pairs connected by GID and "
       "number, Sends, Writes, Reads", "tests/drop_in/pyverbs_traffic.py")
@case()
def pyverbs_moves_data():
    installed_files("python3-pyverbs")
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pyverbs_traffic.py")
    run("/usr/bin/python3", "-B", script, DEVICE)


@fails("ucx_info, ucx_perftest", "ucx-utils", "UCX wants InfiniBand's transport: it lists no "
       "device of diwarp's, and ends well")
@case()
def ucx_lists_no_device():
    program("ucx_info")
    check(DEVICE not in run("ucx_info", "-d").stdout, "it lists the device")


# --- diwarp-run itself.

@case()
def status_is_the_programs():
    run("sh", "-c", "exit 7", status=7)


@case()
def environment_is_printed():
    lines = run("--device", "mine=127.0.0.1", "--spin", "5us", "--ud", "reliable", "--ud-rate",
                "1.5M", "--receive-wait", "10s", "--crc", "--print-env").stdout.splitlines()
    check(lines[0].startswith("LD_LIBRARY_PATH=/"), lines)
    check("DIWARP_RUN_UD=reliable" in lines and "DIWARP_RUN_UD_RATE=1500000" in lines, lines)
    check("DIWARP_RUN_RECEIVE_WAIT=10s" in lines and "DIWARP_RUN_CRC=1" in lines, lines)
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


# --- What a host may keep from a program.

CONFINED = {
    "descriptors": ("prlimit", "--nofile=64"),
    "privileges": ("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"),
    "system_calls": (os.path.join(os.path.dirname(os.path.abspath(__file__)), "confined.py"),)}


def confined(how, *command):
    """A program over the drop-ins, in the background."""
    return Process(command[0], *how[1:], tool("run"), program(command[0]), *command[1:],
                   file=program(how[0]))


@case(*((kept,) for kept in CONFINED))
def runs_without(kept):
    """64 descriptors will do, no capabilities (which root has before), and none of the system calls
    that containers forbid, io_uring's among them."""
    port = free_port()
    common = ("-a", own_address(), "-p", port, "-V", "-C", 50)
    server = confined(CONFINED[kept], "rping", "-s", *common)
    wait_until(lambda: is_listening(port), "rping does not listen")
    confined(CONFINED[kept], "rping", "-c", *common).end(0)
    server.end(0)


STUCK = 1000  # no status of a process


@case()
def few_descriptors_crash_nothing():
    """At whichever call they run out, rping ends by its own words, and not by a signal. Where its
    connection fails it says so, and may then wait for a thread of its own that does not end."""
    port = free_port()
    over("rping", "-s", "-P", "-a", own_address(), "-p", port)
    wait_until(lambda: is_listening(port), "rping does not listen")
    statuses = set()
    for most in range(4, 40, 3):
        client = confined(("prlimit", f"--nofile={most}"), "rping", "-c", "-a", own_address(), "-p",
                          port, "-C", 1)
        try:
            status = client.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            status = STUCK
            client.kill()
        statuses.add(status)
        check(status >= 0, f"{most}: status {status}")
        check(status == 0 or client.errors() or client.process.stdout.read(), f"{most}: no word")
    check(0 in statuses and len(statuses) > 1, f"no limit was enough, or all were: {statuses}")


if __name__ == "__main__":
    sys.exit(main())
