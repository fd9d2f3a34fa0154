#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What other libraries and applications do over the drop-ins, both ends under diwarp-run."""
import json
import os
import socket
import subprocess
import sys
import time

from programs import (LONG, RELIABLE, compiled, free_port, installed_files, is_listening, main,
                      need_other_address, over, own_address, pair, program,
                      run)  # this first: it finds the harness
from facts import fails, works
import harness
from harness import PATIENCE, case, check, wait_until


# --- libfabric.

@works("fi_info, fi_pingpong", "libfabric-bin", "endpoints over iWARP; MSG, and RDM over "
       "ofi_rxm, contents verified", "`fi_pingpong -p verbs -e msg -c`")
@case()
def libfabric_sees_iwarp():
    program("fi_info")
    need_other_address()
    check("FI_PROTO_IWARP" in run("fi_info", "-p", "verbs").stdout, "no endpoint over iWARP")


@case(("verbs", "msg"), ("verbs;ofi_rxm", "rdm"))
def fi_pingpong(provider, kind):
    """It meets over a TCP connection of its own, on a port that it is told."""
    need_other_address()
    address, port = own_address(), free_port()
    common = ("-p", provider, "-e", kind, "-c", "-I", 100)
    pair(("fi_pingpong", *common, "-B", port), ("fi_pingpong", *common, "-P", port, address), port)


# --- qperf.

MOST_TRIES = 3


def run_qperf(*options, run=(), status=0):
    """The server runs until it is stopped. Returns the client, which has ended. qperf 0.4.11 tells the
    client its port before it listens there, so a client may be rejected; it may try again."""
    address, port = own_address(), free_port()
    server = over("qperf", "-lp", port, run=run)
    wait_until(lambda: is_listening(port), "qperf does not listen")
    for _ in range(MOST_TRIES):
        client = over("qperf", "-lp", port, "-t", 1, address, *options, run=run)
        client.process.wait(PATIENCE)
        if "Event rejected" not in client.errors():
            break
    client.end(status)
    server.kill()
    return client


@works("qperf", "qperf", "rc_lat, rc_bw, rc_bi_bw, rc_rdma_read_lat, rc_rdma_read_bw, "
       "rc_rdma_write_poll_lat; ud_lat within a host, as it knows LIDs alone", "`qperf IP "
       "--use_cm 1 rc_bw`, `qperf IP ud_lat`")
@case(("rc_lat", "rc_bw"), ("rc_bi_bw", "rc_rdma_read_lat"),
      ("rc_rdma_read_bw", "rc_rdma_write_poll_lat"))
def qperf(*tests):
    run_qperf("--use_cm", 1, *tests)


@case(("rc_lat", "rc_fetch_add_mr"), ("ver_rc_compare_swap", "ver_rc_fetch_add"))
def qperf_without_the_connection_manager(*tests):
    run_qperf(*tests)


@fails("`fi_pingpong -e dgram`, `verbs;ofi_rxd`", "libfabric-bin", "libfabric has datagrams over "
       "InfiniBand alone")
@fails("qperf rc_rdma_write_bw, rc_rdma_write_lat", "qperf", "they Write with immediate data, "
       "which iWARP has not")
@case()
def qperf_wants_immediate_data():
    client = run_qperf("--use_cm", 1, "rc_rdma_write_bw", status=1)
    check("IBV_WR_RDMA_WRITE_WITH_IMM on RC" in client.errors(), client.errors())


@case()
def qperf_datagrams():
    """It knows LIDs alone, so it works within a host; and it waits for each message for ever, so
    that none may be lost."""
    run_qperf("ud_lat", run=RELIABLE)


# --- fio.

@works("fio", "fio", "the engine `rdma`, its verbs write, read and send, 64 MB each", "`fio "
       "--ioengine=rdma --rw=read`; `--rw=write --verb=send --hostname=IP`")
@case(("write",), ("read",), ("send",))
def fio(verb):
    """The server reads whatever the verb is, and the client writes."""
    port = free_port()
    common = ("--ioengine=rdma", f"--port={port}", "--bs=64k", "--size=64m", "--iodepth=8",
              "--minimal")
    pair(("fio", "--name=server", *common, "--rw=read"),
         ("fio", "--name=client", *common, "--rw=write", f"--hostname={own_address()}",
          f"--verb={verb}"), port, patience=LONG)


# --- librpma.

@works("programs for librpma", "librpma-dev", "Write, flush, Read, private data, contents verified; no "
       "immediate data", "tests/drop_in/rpma_traffic.c")
@case()
def librpma_writes_and_reads():
    installed_files("librpma-dev")
    need_other_address()
    made = compiled("rpma_traffic", "cc", "-lrpma", "-libverbs")
    address, port = own_address(), free_port()
    pair((made, "server", address, port), (made, "client", address, port), port)


# --- DAPL.

DAT_CONF = "diwarp u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 \"{address} 0\" \"\"\n"
TRANSACTION = ("-T", "T", "-V", "-t", 2, "-w", 4, "-i", 100, "client", "RW", 4096, 1, "server", "RW", 2048, 4,
               "server", "RR", 1024, 1, "client", "RR", 2048, 1, "client", "SR", 1024, 3, "-f",
               "server", "SR", 256, 3, "-f")


@works("dapltest", "dapl2-utils", "Sends, Writes and Reads of two threads with four end points each, contents "
       "verified", "`dapltest -T S -D NAME`; `dapltest -T T -V -s IP -D NAME -t 2 -w 4 client RW 4096 1 ...`")
@fails("dtestx", "dapl2-utils", "DAPL has its extensions over InfiniBand alone")
@case()
def dapltest():
    """Its status is 0 whatever happens: what counts is what it prints."""
    address, port = own_address(), free_port()
    with open(harness.path("dat.conf"), "w") as file:
        file.write(DAT_CONF.format(address=address))
    os.environ["DAT_OVERRIDE"] = harness.path("dat.conf")
    server = over("dapltest", "-T", "S", "-D", "diwarp", "-n", port)
    wait_until(lambda: is_listening(port), "dapltest does not listen")
    common = ("-s", address, "-D", "diwarp", "-n", port)
    client = over("dapltest", *TRANSACTION[:2], *common, *TRANSACTION[2:])
    client.end(0, LONG)
    told = client.output + client.errors()
    check("Total RDMA Read" in told and "bad connection event" not in told, told)
    over("dapltest", "-T", "Q", *common).end(0)
    server.end(0)


# --- iSER.

TARGET, INITIATOR = "iqn.2024.test:disk", "iqn.2024.test:initiator"
NAME_OF_QEMU = "iqn.2008-11.org.linux-kvm"  # qemu-img dd has no other
CHUNK = 256 * 1024  # libiscsi 1.19 crashes above


def administer(number, operation, mode, *options):
    done = subprocess.run([program("tgtadm"), "-C", str(number), "--lld", "iser", "--op", operation, "--mode",
                           mode, "--tid", "1", *options], capture_output=True, text=True, timeout=PATIENCE)
    check(done.returncode == 0, f"tgtadm {operation} {mode} {options}: {done.stderr}")


def start_target(disk, port):
    """tgtd with one disk. It is ended by force: a session that its peer left stays, and ends it with a
    signal when its target is deleted."""
    number = free_port()  # of its socket for tgtadm, in a folder whose name is short
    os.environ["TGT_IPC_SOCKET"] = harness.path("s")
    target = over("tgtd", "-f", "-C", number, "--iscsi", f"portal=127.0.0.1:{free_port()}", "--iser",
                  f"port={port},pool_sz_mb=128")
    wait_until(lambda: target.process.poll() is not None or is_listening(port),
               "tgtd does not listen")
    administer(number, "new", "target", "-T", TARGET)
    administer(number, "new", "logicalunit", "--lun", "1", "-b", disk)
    administer(number, "bind", "target", "-I", "ALL")
    for name in (INITIATOR, NAME_OF_QEMU):
        administer(number, "bind", "target", "-Q", name)
    return target


@works("tgtd (iSER), iscsi-inq", "tgt", "a target with a file; an initiator needs its name bound as well as its "
       "address", "`tgtd -f --iser port=P,pool_sz_mb=128`; `iscsi-inq -i NAME iser://IP:P/TARGET/1`")
@works("qemu-io, qemu-img dd", "qemu-block-extra", "reads and writes over iSER of up to 256 KiB each, contents "
       "verified", "`qemu-io --image-opts driver=iscsi,transport=iser,...`; `qemu-img dd bs=64k if=iser://...`")
@fails("iscsi-ls", "libiscsi-bin", "it takes `iscsi://` alone")
@fails("iscsi-test-cu, `qemu-img convert` to `iser://`", "libiscsi7",
       "libiscsi's iSER uses memory that it has not set, and ends with a signal above 256 KiB or 256 commands")
@case()
def iser():
    for name in ("tgtd", "iscsi-inq", "qemu-io", "qemu-img"):
        program(name)
    installed_files("qemu-block-extra")
    address, port = own_address(), free_port()
    disk, chunk, copy = map(harness.path, ("disk", "chunk", "copy"))
    for path, length in ((disk, 16 * CHUNK), (chunk, CHUNK)):
        with open(path, "wb") as file:
            file.write(os.urandom(length))
    target = start_target(disk, port)
    place = f"iser://{address}:{port}/{TARGET}/1"
    run("iscsi-inq", "-i", INITIATOR, place)
    image = (f"driver=iscsi,transport=iser,portal={address}:{port},target={TARGET},lun=1,"
             f"initiator-name={INITIATOR}")
    run("qemu-io", "--image-opts", image, "-c", f"write -s {chunk} 1M {CHUNK}",
        "-c", f"write -P 0x5a 2M {CHUNK}", "-c", f"read -P 0x5a 2M {CHUNK}", "-c", "flush")
    run("qemu-img", "dd", "-f", "raw", "-O", "raw", "bs=64k", f"if={place}", f"of={copy}")
    with open(disk, "rb") as file:
        now = file.read()
    with open(chunk, "rb") as file:
        check(now[1 << 20:][:CHUNK] == file.read(), "what was written is not in the file")
    check(now[2 << 20:][:CHUNK] == b"\x5a" * CHUNK, "nor is the pattern")
    with open(copy, "rb") as file:
        check(file.read() == now, "what was read is not what is in the file")
    target.kill()


# --- QEMU.

class Machine:
    """A virtual machine that has a BIOS and nothing else, and its control socket."""

    def __init__(self, name, *options):
        self.path = harness.path(name)
        self.process = over("qemu-system-x86_64", "-accel", "tcg", "-m", 32, "-nodefaults",
                            "-display", "none", "-qmp", f"unix:{self.path},server=on,wait=off",
                            *options)
        self.socket = None

    def connect(self):
        wait_until(lambda: os.path.exists(self.path) or self.ended(), "QEMU has no control socket")
        check(not self.ended(), self.process.errors())
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(LONG)
        self.socket.connect(self.path)
        self.lines = self.socket.makefile("r")
        self.lines.readline()  # its greeting
        self.ask("qmp_capabilities")

    def ended(self):
        return self.process.process.poll() is not None

    def ask(self, command, **arguments):
        self.socket.sendall(json.dumps({"execute": command, "arguments": arguments}).encode())
        while True:
            line = self.lines.readline()
            check(line, f"QEMU ended: {self.process.errors()}")
            answer = json.loads(line)
            if "event" not in answer:
                check("return" in answer, answer)
                return answer["return"]

    def quit(self):
        self.ask("quit")
        self.process.end(0, LONG)


def migration_of(machine):
    """What came of it, once it is over."""
    deadline = time.monotonic() + LONG
    while time.monotonic() < deadline:
        state = machine.ask("query-migrate")
        if state.get("status") in ("completed", "failed", "cancelled"):
            return state
        time.sleep(0.1)
    raise AssertionError("the migration does not end")


@works("qemu-system-x86_64", "qemu-system-x86", "live migration, after which the guest runs on",
       "`-incoming rdma:IP:4444`, `migrate -d rdma:IP:4444`")
@case(("chunks",), ("pinned",))
def qemu_migrates(how):
    """By chunks that are registered as they are sent, or with all memory registered at first."""
    place = f"rdma:{own_address()}:{free_port()}"
    source, target = Machine("source"), Machine("target", "-incoming", "defer")
    for machine in (source, target):
        machine.connect()
        machine.ask("migrate-set-capabilities", capabilities=[
            {"capability": "rdma-pin-all", "state": how == "pinned"}])
    target.ask("migrate-incoming", uri=place)
    source.ask("migrate", uri=place)
    state = migration_of(source)
    check(state["status"] == "completed", f"{state}\n{source.process.errors()}"
          f"{target.process.errors()}")
    wait_until(lambda: target.ask("query-status")["running"], "the guest does not run")
    source.quit()
    target.quit()


if __name__ == "__main__":
    sys.exit(main())
