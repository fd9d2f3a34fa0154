#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""siw_peer over the drop-ins for libibverbs and librdmacm, in place of Linux's siw in a guest, with
diwarp_peer: the exchanges of interop_test.py, here and without a virtual machine.

  drop_in_peers_test.py --list
  drop_in_peers_test.py --peers FOLDER --tools FOLDER CASE
"""
import argparse
import os
import shlex
import shutil
import sys

sys.dont_write_bytecode = True
import guest as vm  # pylint: disable=wrong-import-position
import interop_test as interop  # pylint: disable=wrong-import-position
from guest import (GUEST, HOST, SIW_PORTS, check, exchange,  # pylint: disable=wrong-import-position
                   free_port, run_here, wait_listening, where)

LOOPBACK = "127.0.0.1"
ROLES = {"serving": True, "connecting": False}  # the drop-ins' side
# The drop-ins tell what siw does not.
TELLS_ALL = "--tells-all"
cases = {}


class DropIn:
    """What the cases want of a guest: commands that run over the drop-ins, and their ports."""

    is_siw = False

    def __init__(self, *options):
        self._options = options  # of diwarp-run
        self.siw_ports = {}      # as the commands have them: as they are here

    def start(self, command, timeout=vm.PATIENCE):
        words = shlex.split(command)
        for port in SIW_PORTS:
            if str(port) in words:
                self.siw_ports[port] = free_port()
        here = {"/host/siw_peer": os.path.join(where.peers, "siw_peer"), GUEST: LOOPBACK, HOST: LOOPBACK,
                **{str(there): str(port) for there, port in self.siw_ports.items()}}
        return run_here([os.path.join(where.tools, "diwarp-run"), *self._options, "--",
                         *(here.get(word, word) for word in words)], timeout)

    def wait_port(self, port):
        wait_listening(self.siw_ports[port])


def adapter():
    """Drop-ins which, like iWARP adapters, end a connection for a message that finds no receive."""
    return DropIn("--receive-wait", "0")


def case(*names):
    """Makes a function a case, or one for each of these names, which it is given."""
    def register(function):
        for name in names:
            cases[f"{function.__name__}_{name}"] = lambda name=name: function(name)
        if not names:
            cases[function.__name__] = function
        return function
    return register


def say(reports):
    print("\n".join(f"{report['steps']} operations, {report['bytes']} bytes verified, "
                    f"{report['negotiated']}" for report in reports))


# --- All operations. With --crc the drop-ins ask for CRCs, so that each connection has them.

@case("1", "2", "peer_to_peer")
def serving_revision(name):
    """Both sides do all operations; peer-to-peer the side that serves begins."""
    p2p = name == "peer_to_peer"
    options = interop.diwarp_options(crc=0, revision=1 if name == "1" else 2, p2p=p2p)
    for reports in interop.exchange_sizes(DropIn("--crc"), True, diwarp=options, siw=TELLS_ALL, greet=p2p):
        say(reports)
        wanted = f"revision {1 if name == '1' else 2}, crc"
        check(reports[1]["negotiated"].startswith(wanted), reports[1]["text"])


@case()
def connecting():
    for reports in interop.exchange_sizes(DropIn("--crc"), False, siw=TELLS_ALL, greet=True):
        say(reports)
        check(reports[1]["negotiated"].startswith("revision 2, crc"), reports[1]["text"])


@case()
def serving_without_crc():
    """Within a host the drop-ins ask for none."""
    reports = exchange(DropIn(), True, interop.ALL, diwarp="--no-crc")
    check("no crc" in reports[1]["negotiated"], reports[1]["text"])


@case()
def source_address():
    """A connection comes from the address that its id was bound to."""
    reports = exchange(DropIn(), False, "--sizes 100", siw="--source 127.0.0.2")
    check(reports[1]["negotiated"].endswith("peer 127.0.0.2"), reports[1]["text"])


@case()
def markers():
    """Which siw rejects."""
    reports = exchange(DropIn(), True, interop.ALL, diwarp="--markers")
    check("receives markers" in reports[1]["negotiated"], reports[1]["text"])


@case()
def private_data():
    interop.exchange_private_data(DropIn())


@case()
def rejects():
    interop.reject(DropIn())


# --- Faults and deaths.

def run_faults(drop_in_notices, role):
    wrong = []
    for name, says, reports in interop.exchange_faults(adapter(), drop_in_notices, interop.RFCS_SAY,
                                                       roles=(ROLES[role],)):
        told, wanted = reports[1]["terminate"], interop.told_here(drop_in_notices, says)
        print(f"{name}: diwarp: {told} {reports[1]['status']}, "
              f"drop-in: {reports[0]['status']} {reports[0]['event']}")
        if told != wanted:
            wrong.append(f"{name}: diwarp tells {told!r}, not {wanted!r}")
    check(not wrong, "\n".join(wrong))


@case(*ROLES)
def faults_noticed_by_drop_in(role):
    run_faults(True, role)


@case(*ROLES)
def faults_noticed_by_diwarp(role):
    run_faults(False, role)


@case(*ROLES)
def deaths(role):
    """The other side is told, and serves or connects again."""
    side = DropIn()
    interop.exchange_deaths(side, ROLES[role])
    exchange(side, ROLES[role], interop.ALL)


# --- Many connections.

@case(*ROLES)
def two_hundred_in_turn(role):
    interop.two_hundred_in_turn(DropIn(), ROLES[role])


@case(*ROLES)
def fifty_at_once(role):
    run = interop.fifty_to_siw if ROLES[role] else interop.fifty_to_diwarp
    run(DropIn(), interop.AT_ONCE)


# --- rping, with the rping of diwarp's own.

@case(*ROLES)
def rping(role):
    run = interop.rping_serves if ROLES[role] else interop.rping_connects
    for size in (64, 4096):
        run(DropIn(), size)


def missing(name):
    """Why the case cannot run here, or nothing."""
    if name.startswith("rping") and shutil.which("rping") is None:
        return "there is no rping here (dev/packages.sh, purpose drop-in)"
    if not os.path.exists(os.path.join(where.peers, "siw_peer")):
        return "siw_peer was not built (libibverbs-dev, librdmacm-dev)"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--peers", help="the folder of siw_peer and diwarp_peer")
    parser.add_argument("--tools", help="the folder of diwarp-run and diwarp-rping")
    parser.add_argument("case", nargs="?", choices=list(cases))
    options = parser.parse_args()
    if options.list:
        print("\n".join(cases))
        return 0
    where.peers, where.tools = options.peers, options.tools
    if reason := missing(options.case):
        print("SKIPPED:", reason)
        return 0
    try:
        cases[options.case]()
    except AssertionError as error:
        print("FAILED:", error)
        return 1
    finally:
        vm.end_processes()
    return 0


if __name__ == "__main__":
    sys.exit(main())
