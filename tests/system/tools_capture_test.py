#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the tools capture (--pcap, DIWARP_PCAP), as tshark reads it. Called with the name of one case;
--list names all."""
import collections
import fcntl
import json
import os
import shutil
import stat
import subprocess

from harness import PATIENCE, Skipped, case, check, check_sentence, main, path, run, tool

# tshark checks these only if it is told to.
CHECKSUMS = ("ip.check_checksum", "udp.check_checksum", "tcp.check_checksum")
# Wireshark guesses that payload of RDMAP is RPC, and calls what does not fit malformed.
NO_GUESS = "rpcordma"
# The system chooses ports, of which Wireshark takes some for protocols of other programs.
ANY_PORT = ("-d", "udp.port==1024-65535,data", "-o", "tcp.try_heuristic_first:TRUE")
MESSAGES = 20


def tshark(file, *words):
    """The lines that tshark prints of a file; it must find nothing to complain of."""
    program = shutil.which("tshark")
    if program is None:
        raise Skipped("no tshark (package tshark)")
    preferences = [word for name in CHECKSUMS for word in ("-o", f"{name}:TRUE")]
    preferences += ["--disable-protocol", NO_GUESS, *ANY_PORT]
    done = subprocess.run([program, "-n", "-r", file, *preferences, *words], text=True,
                          capture_output=True, timeout=PATIENCE, check=False)
    check(done.returncode == 0 and "cut short" not in done.stderr, done.stderr)
    return done.stdout.splitlines()


def fields(file, *names, filter=""):
    words = [word for name in names for word in ("-e", name)]
    return [line.split("\t") for line in tshark(file, "-Y", filter, "-T", "fields", *words)]


def check_sound(file):
    """All packets have right checksums, and none is malformed or cut."""
    wrong = " or ".join(["_ws.malformed", "_ws.short", "ip.checksum.status == 0",
                         "udp.checksum.status == 0", "tcp.checksum.status == 0"])
    check(not tshark(file, "-Y", wrong), f"{wrong}: {tshark(file, '-Y', wrong)[:5]}")


def capture(transport, *options, program="pingpong", messages=MESSAGES):
    """A run on this host with a capture of its client's end, which is sound."""
    file = path("run.pcapng")
    run(program, "--loopback", "--transport", transport, "--iterations", messages, "--warmup", 0,
        "--max-loss", "100", "--pcap", file, *options)
    check_sound(file)
    return file


@case(("ud", "syscall"), ("ud", "uring"), ("rd", "syscall"), ("rd", "uring"))
def datagrams(transport, io):
    """Both directions of a ping-pong, between two ports of this host, with payload."""
    file = capture(transport, "--size", 64, "--io", io)
    ports = collections.Counter(map(tuple, fields(file, "udp.srcport", "udp.dstport", filter="udp")))
    check(len(ports) == 2, ports)
    (one, count), (other, other_count) = ports.items()
    check(one == other[::-1], ports)
    check(min(count, other_count) >= MESSAGES, f"{count} and {other_count}")
    check(all(from_to == ["127.0.0.1", "127.0.0.1"] for from_to in fields(file, "ip.src", "ip.dst")),
          "other addresses")


@case(("4",), ("6",))
def families(version):
    """Both families are told apart by the packets themselves."""
    file = capture("ud", "--size", 100, *(["--ipv6"] if version == "6" else []))
    seen = {value for (value,) in fields(file, "ipv6.version" if version == "6" else "ip.version")}
    check(seen == {version}, seen)


@case()
def largest_datagrams():
    file = capture("ud", "--size", "64K", "--segment", "jumbo")
    longest = max(int(length) for (length,) in fields(file, "udp.length"))
    check(60_000 < longest <= 65_515, longest)


@case(("syscall",), ("uring",))
def connections(io):
    """tshark's own dissectors of MPA, DDP and RDMAP, which know nothing of diwarp, find one connection
    with its start-up, every Send in both directions, and an end in order."""
    file = capture("rc", "--size", "100", "--io", io)
    check(len(tshark(file, "-Y", "iwarp_mpa.req")) == 1, "no MPA Request")
    check(len(tshark(file, "-Y", "iwarp_mpa.rep")) == 1, "no MPA Reply")
    sends = [port for (port,) in fields(file, "tcp.srcport",
                                        filter="iwarp_rdma.opcode == 3 or iwarp_rdma.opcode == 5")]
    for port in set(sends):
        check(sends.count(port) <= 2 * MESSAGES, sends.count(port))
    check(len(set(sends)) == 2 and len(sends) >= MESSAGES, f"{len(sends)} Sends of {set(sends)}")
    for flag in ("syn", "fin"):
        check(tshark(file, "-Y", f"tcp.flags.{flag} == 1"), f"no {flag}")
    odd = "tcp.analysis.lost_segment or tcp.analysis.retransmission or tcp.analysis.out_of_order"
    check(not tshark(file, "-Y", odd), tshark(file, "-Y", odd)[:5])


@case()
def long_messages_of_connections():
    """Messages that one call to the kernel takes are longer than one packet can be. All of them fit
    into the buffer, however late they are written."""
    messages = 3
    file = capture("rc", "--size", "1M", program="bandwidth", messages=messages)
    out_of_line = "tcp.analysis.lost_segment or tcp.analysis.ack_lost_segment"
    check(not tshark(file, "-Y", out_of_line), "a gap")
    total = sum(int(length) for (length,) in fields(file, "tcp.len", filter="tcp"))
    check(total > messages << 20, total)


@case()
def file_is_private():
    file = path("private.pcapng")
    with open(file, "wb") as old:
        old.write(b"\x0a\x0d\x0d\x0a left over")
    os.chmod(file, 0o644)
    run("info", "--pcap", file)
    check(stat.S_IMODE(os.stat(file).st_mode) == 0o600, oct(os.stat(file).st_mode))


@case()
def limit():
    """The file keeps within its limit, and what is left out is counted in it."""
    file = path("limited.pcapng")
    run("pingpong", "--loopback", "--size", "1000", "--iterations", 500, "--max-loss", 100, "--pcap", file,
        "--pcap-limit", "20K")
    check(10_000 < os.path.getsize(file) <= 20 << 10, os.path.getsize(file))
    check_sound(file)
    check(0 < len(tshark(file)) < 20, len(tshark(file)))


@case()
def limit_that_holds_nothing():
    for limit in ("0", "4095", "-1"):
        done = run("info", "--pcap", path("none.pcapng"), "--pcap-limit", limit, status=1)
        check_sentence("info", done.stderr, "")
    check(not os.path.exists(path("none.pcapng")), "a file")


@case()
def what_is_no_capture_stays():
    with open(path("letter"), "w", encoding="utf-8") as file:
        file.write("a letter")
    check_sentence("info", run("info", "--pcap", path("letter"), status=1).stderr, "is no capture")
    with open(path("letter"), encoding="utf-8") as file:
        check(file.read() == "a letter", "it was overwritten")


@case()
def first_of_several_clients():
    file = path("clients.pcapng")
    run("bandwidth", "--loopback", "--clients", 2, "--iterations", 10, "--warmup", 0, "--max-loss", 100,
        "--pcap", file)
    check_sound(file)
    check(len(tshark(file)) > 0, "nothing was captured")


@case()
def of_every_program():
    """DIWARP_PCAP captures what any program does; the second end of a run has a file of its own."""
    environment = {**os.environ, "DIWARP_PCAP": path("%p.pcapng")}
    done = subprocess.run([tool("pingpong"), "--loopback", "--transport", "rd", "--size", "64",
                           "--iterations", "20"], env=environment, capture_output=True, text=True,
                          timeout=PATIENCE, check=False)
    check(done.returncode == 0, done.stderr)
    files = [path(name) for name in os.listdir(path("")) if name.endswith(".pcapng")]
    check(len(files) == 2, files)
    for file in files:
        check_sound(file)
        check(len(tshark(file, "-Y", "udp")) >= 40, len(tshark(file)))


@case()
def file_that_another_process_has():
    """--pcap says so and ends; the variable leaves a line in the log, and the program goes on."""
    file = path("taken.pcapng")
    with open(file, "w", encoding="utf-8") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        done = run("info", "--pcap", file, status=1)
        check_sentence("info", done.stderr, "another process", "%p")
        told = subprocess.run([tool("info"), "--json"], env={**os.environ, "DIWARP_PCAP": file},
                              capture_output=True, text=True, timeout=PATIENCE, check=False)
    check(told.returncode == 0 and json.loads(told.stdout), told)
    check("DIWARP_PCAP: Another process" in told.stderr, told.stderr)
    check("port" not in told.stderr, told.stderr)


@case()
def wrong_files():
    for file, part in (("/dev/null", "regular file"), (path("missing/file"), "No such file"),
                       (path(""), "directory")):
        check_sentence("info", run("info", "--pcap", file, status=1).stderr, part)


@case()
def wrong_options():
    for options in (["--pcap-limit", "1M"], ["--pcap", path("x"), "--pcap-limit", "much"]):
        check("pcap" in run("info", *options, status=1).stderr, options)


@case()
def limit_of_the_environment():
    file = path("variable.pcapng")
    done = subprocess.run([tool("info")], env={**os.environ, "DIWARP_PCAP": file,
                                               "DIWARP_PCAP_LIMIT": "a lot"},
                          capture_output=True, text=True, timeout=PATIENCE, check=False)
    check(done.returncode == 0 and "DIWARP_PCAP_LIMIT is a number of bytes, not a lot" in done.stderr,
          done)


@case()
def full_disk():
    """The run goes on; one line tells, and the file has the packets that fit, in whole blocks."""
    if os.geteuid() != 0:
        raise Skipped("only root can mount a small file system")
    folder = path("small")
    os.mkdir(folder)
    script = ('mount -t tmpfs -o size=128k none "$1" && "$2" --loopback --transport ud --size 64K '
              '--iterations 200 --max-loss 100 --pcap "$1/full.pcapng" && cp "$1/full.pcapng" "$3"')
    copy = path("full.pcapng")
    done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", folder, tool("bandwidth"), copy],
                          capture_output=True, text=True, timeout=PATIENCE, check=False)
    if "unshare" in done.stderr or "mount" in done.stderr:
        raise Skipped(f"no small file system can be mounted: {done.stderr.strip()}")
    check(done.returncode == 0, done)
    check("No more packets are captured" in done.stderr, done.stderr)
    check(os.path.getsize(copy) > 32 << 10, os.path.getsize(copy))
    check_sound(copy)


if __name__ == "__main__":
    main()
