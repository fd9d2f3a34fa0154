#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Open MPI over the drop-ins, by libfabric: all ranks on this host, under diwarp-run."""
import os
import re
import signal
import subprocess
import sys

from programs import (LONG, compiled, main, need_other_address,
                      program)  # this first: it finds the harness
from facts import fails, works
import harness
from harness import PATIENCE, Process, check, case, tool, wait_until

PATH = ("--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "opal_common_ofi_provider_include",
        "verbs;ofi_rxm")
# More ranks than processors, which yield while they wait. A job that hangs ends itself.
HERE = ("--allow-run-as-root", "--oversubscribe", "--mca", "mpi_yield_when_idle", 1, "--timeout",
        LONG - 10)


class Job(Process):
    """mpirun, whose ranks end with it where it is told to end and not killed."""

    def kill(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            super().kill()


def start(ranks, *command, options=(), run=()):
    need_other_address()
    return Job("mpirun", *run, program("mpirun"), *HERE, *PATH, "-np", ranks, *options, *command,
               file=tool("run"))


def checks():
    return compiled("mpi_checks", "mpicc")


def counted(told, name):
    """The sum of what all ranks counted."""
    return sum(int(number) for number in re.findall(rf"counter {name} (\d+)", told))


@works("Open MPI", "openmpi-bin", "2 and 4 ranks: a ring, an allreduce, an all-to-all with every "
       "byte checked; a killed rank ends the job", "`diwarp-run mpirun --mca pml cm --mca mtl "
       "ofi --mca opal_common_ofi_provider_include \"verbs;ofi_rxm\" -np 4 ./program`")
@case((2,), (4,))
def every_byte_arrives(ranks):
    """And has gone over diwarp."""
    job = start(ranks, checks(), "ring", "allreduce", "alltoall", run=("--counters",))
    told = job.end(0, LONG)
    sent = {work: int(count) for work, count in
            re.findall(rf"(\w+): {ranks} ranks, (\d+) bytes", job.output)}
    check(sorted(sent) == ["allreduce", "alltoall", "ring"], job.output)
    received = counted(told, "rc_rx_bytes")
    check(received > sent["ring"] + sent["alltoall"], f"{received} of {sent} bytes: {told}")


@case()
def runs_inside_of_mpirun():
    """diwarp-run at each rank, in place of before mpirun."""
    need_other_address()
    job = Job("mpirun", *HERE, *PATH, "-np", 2, tool("run"), checks(), "ring",
              file=program("mpirun"))
    job.end(0, LONG)
    check("ring: 2 ranks" in job.output, job.output)


@case()
def killed_rank_ends_the_job():
    job = start(4, checks(), "wait")
    processes = [int(job.wait_for(rf"rank {rank} is process (\d+)").group(1)) for rank in range(4)]
    os.kill(processes[2], signal.SIGKILL)
    # Less than what is left until the job would end itself.
    check(job.process.wait(PATIENCE) != 0, "the job ended with status 0")
    wait_until(lambda: not any(os.path.exists(f"/proc/{one}") for one in processes),
               "a rank runs on")


@works("NPopenmpi", "netpipe-openmpi", "its integrity check", "`mpirun -np 2 NPopenmpi -i -u "
       "65536`")
@case()
def netpipe():
    job = start(2, program("NPopenmpi"), "-i", "-u", 65536, "-o", harness.path("np.out"))
    said = job.end(0, LONG) + job.output
    check("Integrity check passed" in said and "failed" not in said, said)


HPCC_INPUT = """HPLinpack benchmark input file
of a test
HPL.out
8
1
400
1
80
0
1
{rows}
{columns}
16.0
1
2
1
4
1
2
1
1
1
1
1
0
2
64
0
0
1
8
separator
0
400
0
40
"""


@works("hpcc", "hpcc", "N 400, its own checks passed, 2 ranks", "`mpirun -np 2 hpcc`")
@case()
def hpcc():
    with open(harness.path("hpccinf.txt"), "w") as file:
        file.write(HPCC_INPUT.format(rows=1, columns=2))
    start(2, program("hpcc"), options=("--wdir", harness.where.folder)).end(0, LONG)
    with open(harness.path("hpccoutf.txt")) as file:
        said = file.read()
    check("Success=1" in said, said)
    check(re.search(r"\b0 tests completed and failed residual checks", said), said)
    check(not re.search(r"FAILED|Failed [1-9]", said), said)


fails("Open MPI over ofi_rxm: `MPI_Ssend`, and 3 ranks", "openmpi-bin", "wait for ever, as they do "
      "without diwarp, over libfabric's provider `net`, with `--mca mtl_ofi_tag_mode ofi_tag_1`: the "
      "mode without data in completions, of which iWARP has none")
fails("Open MPI's btl openib and pml ucx", "openmpi-bin", "Debian builds openib without the "
      "connection manager, and UCX wants InfiniBand's transport: `--mca pml cm --mca mtl ofi` is "
      "the way")


if __name__ == "__main__":
    sys.exit(main())
