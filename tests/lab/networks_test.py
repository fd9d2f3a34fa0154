#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The networks of the lab, with plain sockets: what is asked for is what happens."""
import contextlib
import os
import socket
import subprocess
import sys

from lab import Skipped, case, check, main, where
from diwarp_lab import networks, selfcheck
from diwarp_lab.runner import Networks
from diwarp_lab.work import Stage, pair, plain

PACKETS = 5000


@contextlib.contextmanager
def network(name, hosts=2, **settings):
    """A network; Skipped where it cannot be had."""
    with contextlib.ExitStack() as stack:
        yield Networks((name,), True).make(name, settings, 1, hosts, stack)


def send(made, packets=PACKETS, pace=10000):
    """(datagrams that arrived, packets offered to the network, packets that it lost)"""
    before = made.counted() or (0, 0)
    row = plain("count", f"--packets {packets} --size 200 --pace {pace}").run(Stage(made, {}))
    after = made.counted() or (0, 0)
    return row["received"], after[0] - before[0], after[1] - before[1]


@case(*((name, rate) for name in ("switch", "router") for rate in selfcheck.RATES))
def loss_is_as_asked(name, rate):
    with network(name, loss=rate) as made:
        received, offered, lost = send(made, 10000)
        one = selfcheck.Count(name, rate, offered, lost, 10000 - received, 10000)
        check(one.holds() and offered >= 10000, str(one))
        check(received <= 10000 and received >= 10000 - lost - 200, (received, lost))


NETEM = {
    "loss": ({"loss": 3}, "limit 10000 loss random 3%"),
    "delay": ({"delay": 500, "jitter": 50}, "limit 10000 delay 500us 50us"),
    "burst": ({"loss": 20, "burst": 4},
              "limit 10000 loss gemodel 6.250000% 25.000000% 100% 0%"),
    "reorder": ({"reorder": 5}, "limit 10000 delay 100us reorder 5%"),
    "rate": ({"rate": 2e8, "queue": 50}, "limit 50 rate 200000000bit"),
    "rest": ({"duplicate": 0.5, "corrupt": 1, "mtu": 9000},
             "limit 10000 duplicate 0.5% corrupt 1%"),
    "nothing": ({"loss": 0, "burst": 3}, "limit 10000"),
}


@case(*((name,) for name in NETEM))
def words_for_netem(name):
    settings, told = NETEM[name]
    words = " ".join(networks.netem_words(settings))
    check(words == told, words)


# The cases netem_* need a kernel that has netem. CTest runs them in the virtual machine of
# tests/interop; called by name, they run on this host and are skipped where its kernel has none.

@case(*((rate,) for rate in selfcheck.RATES))
def netem_loses_as_asked(rate):
    loss_is_as_asked("netem", rate)


@case()
def netem_sees_single_packets_of_a_train():
    """A message of 32 KiB leaves as one train of segments, which are lost one by one."""
    with network("netem", loss=5) as made:
        flow = pair("bandwidth", "--transport ud --op write-record --size 32K --iterations 20 "
                    "--warmup 0 --window 2 --rate 2M --max-loss 100 --timeout 60")
        before, _ = made.counted()
        row = flow.run(Stage(made, {}))
        offered = made.counted()[0] - before
        check(offered >= 20 * (32768 // 1500), (offered, row))


@case()
def a_kernel_without_netem_is_told_in_a_sentence():
    try:
        with network("netem", delay=1):
            print("this kernel has netem")
    except Skipped as reason:
        check("this kernel has no netem" in str(reason) or "there is no" in str(reason), reason)


@case()
def netem_loses_in_bursts():
    with network("netem", loss=5, burst=5) as made:
        _, offered, lost = send(made, 10000)
        check(0.5 < lost / (offered * 0.05) < 1.6, (offered, lost))


@case()
def netem_delays():
    """Half of a round trip takes at least what was asked for."""
    with network("netem", delay=20000) as made:
        row = plain("udp", "--seconds 0.5").run(Stage(made, {}))
        check(row["half_rtt_us.min"] >= 20000, row)


@case()
def netem_holds_to_a_rate():
    with network("netem", rate=8000000, queue=1000) as made:
        row = plain("tcp", "--seconds 2").run(Stage(made, {}))
        check(0 < row["mb_per_s"] <= 1.1, row)


@case()
def netem_corrupts():
    """The checksum of UDP shows it. A bit of an Ethernet header makes the bridge drop it as well."""
    with network("netem", corrupt=20) as made:
        received, _, lost = send(made, 2000)
        check(lost == 0 and 0.7 * 2000 < received < 0.9 * 2000, (received, lost))


@case()
def netem_duplicates():
    datagrams_arrive_twice("netem")


@case()
def netem_reorders():
    with network("netem", reorder=25, delay=5000) as made:
        came = arrivals(made, 200)
        check(len(came) == 200 and came != sorted(came), came)


@case(*((rate,) for rate in selfcheck.RATES))
def loss_that_is_built_in_is_as_asked(rate):
    told = []
    fine = selfcheck.run(Networks(("built-in",), True), [rate], 1, 10000, told.append)
    check(fine and "built-in" in told[0], told)


@case()
def an_impairment_that_there_is_not_is_told():
    done = subprocess.run(
        [os.path.join(where.tools, "diwarp-bandwidth"), "--loopback", "--size", "64"],
        env={**os.environ, "DIWARP_IMPAIR": "drop=2"}, capture_output=True, text=True, timeout=60)
    check(done.returncode == 1 and "DIWARP_IMPAIR" in done.stderr and
          "drop needs a number from 0 to 1" in done.stderr, done.stderr)


@case(("switch",), ("router",))
def every_nth_packet_is_lost(name):
    with network(name, every=10) as made:
        _, offered, lost = send(made)
        check(abs(lost - offered / 10) <= 2, (offered, lost))


@case()
def losses_come_in_bursts():
    """As many, but of fewer runs: the spread of the number grows with their length."""
    with network("switch", loss=5, burst=5) as made:
        _, offered, lost = send(made, 10000)
        check(0.5 < lost / (offered * 0.05) < 1.6, (offered, lost))


@case()
def corrupted_datagrams_do_not_arrive():
    """The checksum of UDP shows it."""
    with network("switch", corrupt=20) as made:
        received, _, lost = send(made)
        check(lost == 0 and 0.7 * PACKETS < received < 0.9 * PACKETS, (received, lost))


def arrivals(made, count):
    """The numbers of the datagrams that a socket gets, in their order."""
    receiver = made.hosts[1].space.socket(socket.SOCK_DGRAM)
    sender = made.hosts[0].space.socket(socket.SOCK_DGRAM)
    with receiver, sender:
        receiver.bind((made.hosts[1].address, 5000))
        receiver.settimeout(1)
        for number in range(count):
            sender.sendto(bytes([number]), receiver.getsockname())
        came = []
        with contextlib.suppress(TimeoutError):
            while True:
                came.append(receiver.recv(10)[0])
        return came


@case(("switch",))
def datagrams_arrive_twice(name):
    """A socket counts what came: more than was sent."""
    with network(name, duplicate=50) as made:
        came = arrivals(made, 100)
        check(len(set(came)) == 100 and 110 < len(came) < 190, len(came))


@case(("switch", 1200), ("router", 1200), ("veth", 9000))
def the_mtu_is_as_asked(name, mtu):
    with network(name, mtu=mtu) as made:
        shown = made.hosts[0].space.command("ip", "link", "show", "port0")
        check(f" mtu {mtu} " in shown, shown)
        check(send(made, 200)[0] > 0, "nothing arrives")


@case((9000,), (65521,))
def frames_as_long_as_the_mtu_pass_the_switch(mtu):
    """Each datagram fills one frame. 65,521 is the most that the kernel gives a TAP device."""
    with network("switch", mtu=mtu) as made:
        row = plain("count", f"--packets 50 --size {min(mtu, 65507) - 28} --pace 500").run(
            Stage(made, {}))
        check(row["received"] == 50, row)


@case()
def many_hosts_meet_at_a_bridge():
    with network("veth", 4) as made:
        row = plain("count", "--packets 100", ).run(Stage(made, {}))
        check(row["received"] == 100, row)
        far = pair("bandwidth", "", ends=(3, 1)).hosts()
        check(far == 4 == len(made.hosts), far)


@case(("switch",), ("router",), ("veth",))
def nothing_is_left_behind(name):
    def open_namespaces():
        links = []
        for entry in os.listdir("/proc/self/fd"):
            with contextlib.suppress(FileNotFoundError):
                links.append(os.readlink(f"/proc/self/fd/{entry}"))
        return [link for link in links if link.startswith("net:")]

    before = socket.if_nameindex()
    with network(name, **({"loss": 1} if name != "veth" else {})):
        pass
    check(socket.if_nameindex() == before and not open_namespaces(), "left behind")
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        check(not file.read(), "a program still runs")


@case()
def what_a_network_cannot_do_is_refused():
    for name, option in (("loopback", "loss"), ("router", "delay"), ("veth", "rate")):
        try:
            with network(name, **{option: 1}):
                raise AssertionError(f"{name} does {option}")
        except networks.Refusal as reason:
            check(name in str(reason) and option in str(reason), reason)


if __name__ == "__main__":
    sys.exit(main())
