#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What programs load over the drop-ins for libibverbs and librdmacm, the devices that they see, and
diwarp-run itself. Each case is a program; one that is not installed is skipped, and says so."""
import os
import shutil
import signal
import sys

from programs import DEVICE, main, over, program, run  # this first: it finds the harness
import harness
from harness import case, check, wait_until


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


if __name__ == "__main__":
    sys.exit(main())
