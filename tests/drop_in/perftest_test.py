#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The ping-pongs of ibverbs-utils, and perftest, over the drop-ins, both ends under diwarp-run."""
import sys

from programs import (DEVICE, LONG, RELIABLE, free_port, main, own_address,
                      pair, run)  # this first: it finds the harness
from facts import fails, works
from harness import PATIENCE, case, check


# --- Without the connection manager: the programs of ibverbs-utils.

@works("ibv_rc_pingpong", "ibverbs-utils", "plain, with events, with checks, with the newer way "
       "of posting", "`-d diwarp0 -g 0`, `-e`, `-c`, `-N`")
@works("ibv_srq_pingpong", "ibverbs-utils", "plain, with events", "`-d diwarp0 -g 0`, `-e`")
@case(("ibv_rc_pingpong",), ("ibv_rc_pingpong", "-e"), ("ibv_rc_pingpong", "-c"),
      ("ibv_rc_pingpong", "-N"), ("ibv_srq_pingpong",), ("ibv_srq_pingpong", "-e"))
def pingpong(name, *options):
    """One of both ends first, and the other one must not notice. They meet on a port of their own."""
    port = free_port()
    common = ("-d", DEVICE, "-g", 0, "-p", port, *options)
    pair((name, *common), (name, *common, own_address()), port)


@case(("ibv_uc_pingpong", "UC"), ("ibv_xsrq_pingpong", "XRC"))
def pingpong_that_is_not_there(name, kind):
    told = run(name, "-d", DEVICE, "-g", 0, "-p", free_port(), status=1)
    check(kind in told.stderr, told.stdout + told.stderr)


@works("ibv_ud_pingpong", "ibverbs-utils", "polled, with events (`-e`), with `--ud reliable`", "`-d diwarp0 -g 0 "
       "-s 1000`")
@case(("polled",), ("events",), ("reliable",))
def ud_pingpong(how):
    """A message of the client's is on its way, or its acknowledgement, when the server ends."""
    address, port = own_address(), free_port()
    common = ("-d", DEVICE, "-g", 0, "-s", 1000, "-n", 200, "-p", port,
              *(("-e",) if how == "events" else ()))
    pair(("ibv_ud_pingpong", *common), ("ibv_ud_pingpong", *common, address), port,
         run=RELIABLE if how == "reliable" else ())


# --- perftest.

def perftest(name, *options, meeting=("-R",), run=(), patience=PATIENCE):
    address, port = own_address(), free_port()
    common = (*meeting, "-d", DEVICE, "-F", "-p", port, "-n", 100, *options)
    pair((name, *common), (name, *common, address), port, run=run, patience=patience)


@works("ib_send_lat", "perftest", "datagrams, with the connection manager and without it (`-x "
       "0`); with `--ud reliable`", "`-R -c UD -s 1024 -n 1000`")
@case(("plain",), ("reliable",))
def datagram_latency(how):
    perftest("ib_send_lat", "-c", "UD", "-s", 1024, run=RELIABLE if how == "reliable" else ())


@works("ib_send_bw", "perftest", "datagrams, with the connection manager and without it, with `--ud reliable`",
       "`-R -c UD -s 1024 -n 5000`")
@fails("`ib_send_bw --use-srq -q 4`", "perftest", "may hang: it takes the queue pair of a receive from "
       "the receive's number, which of a shared queue is another one's")
@fails("`ib_send_bw -r 1`", "perftest", "it divides by a third of that")
@fails("`ib_send_bw -c UD` without `--ud reliable`", "perftest", "a lost message ends it, as on "
       "any lossy network: it waits for ever")
@case()
def datagram_bandwidth():
    perftest("ib_send_bw", "-c", "UD", "-s", 1024, "-n", 5000, run=RELIABLE)


@case()
def datagram_bandwidth_without_manager():
    """The server writes its counts of free receives from RTR."""
    perftest("ib_send_bw", "-c", "UD", "-s", 1000, meeting=("-x", 0), run=RELIABLE)


@works("ib_send_bw", "perftest", "a shared receive queue", "`-x 0 -c UD --use-srq`, `-R --use-srq`")
@case(("UD",), ("RC",))
def shared_receives(kind):
    meeting, run_with = (("-x", 0), RELIABLE) if kind == "UD" else (("-R",), ())
    perftest("ib_send_bw", "-c", kind, "-s", 1024, "--use-srq", meeting=meeting, run=run_with)


@works("ib_send_lat, ib_write_lat, ib_read_lat, ib_send_bw, ib_write_bw, ib_read_bw", "perftest",
       "all sizes", "`-R -d diwarp0 -F -a -n 100`")
@case(*((name,) for name in ("ib_send_lat", "ib_write_lat", "ib_read_lat", "ib_send_bw",
                             "ib_write_bw", "ib_read_bw")))
def all_sizes(name):
    """Both ends spin, while their engines need the processors: on two of them each message may take
    as long as the scheduler gives a process at a time."""
    perftest(name, "-a", patience=LONG)


@works("ib_atomic_lat, ib_atomic_bw", "perftest", "all", "`-R -d diwarp0 -F -n 100`")
@case(("ib_atomic_lat",), ("ib_atomic_bw",))
def atomics(name):
    perftest(name)


@works("ib_send_lat, ib_send_bw", "perftest", "with events", "`-R -e`")
@case(("ib_send_lat",), ("ib_send_bw",))
def with_events(name):
    """The bandwidth test sleeps for an event while it waits for memory that its peer is to write."""
    perftest(name, "-e")


@works("ib_send_bw, ib_write_bw", "perftest", "four queue pairs, both ways", "`-R -q 4 -b`")
@case(("ib_send_bw",), ("ib_write_bw",))
def four_queue_pairs_both_ways(name):
    perftest(name, "-q", 4, "-b")


@works("ib_send_lat, ib_write_lat, ib_read_lat, ib_send_bw, ib_write_bw, ib_read_bw", "perftest",
       "without the connection manager", "`-d diwarp0 -x 0`")
@case(*((name,) for name in ("ib_send_lat", "ib_send_bw", "ib_write_lat", "ib_write_bw",
                             "ib_read_lat", "ib_read_bw")))
def without_the_connection_manager(name):
    """ib_send_bw leaves a memory region of its own behind when it deallocates its domain."""
    perftest(name, meeting=("-x", 0))


if __name__ == "__main__":
    sys.exit(main())
