# SPDX-License-Identifier: Apache-2.0
"""Programs of the distribution over the drop-ins for libibverbs and librdmacm: what the scripts
with cases have in common. A program that is not installed is skipped, and says so."""
import os
import random
import shutil
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
import harness  # noqa: E402
from harness import PATIENCE, Process, Skipped, check, tool, wait_until  # noqa: E402

DEVICE = "diwarp0"
RELIABLE = ("--ud", "reliable")
LONG = 400  # seconds for what takes minutes on a busy machine; CTest gives it more
LISTENING = "0A"  # of a TCP socket's state in /proc/net/tcp


def built(name):
    """A program of this folder."""
    return harness.example(name)


def compiled(name, compiler, *options):
    """A program of this folder that needs what only some hosts have."""
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".c")
    made = harness.path(name)
    done = subprocess.run([program(compiler), "-O1", "-o", made, source, *options],
                          capture_output=True, text=True, timeout=PATIENCE)
    check(done.returncode == 0, done.stderr)
    return made


def installed_files(package):
    """The programs and libraries of a Debian package, links apart."""
    done = subprocess.run(["dpkg-query", "-L", package], capture_output=True, text=True)
    if done.returncode != 0:
        raise Skipped(f"{package} is not installed (dev/packages.sh, purpose drop-in)")
    return [path for path in done.stdout.splitlines() if is_elf(path)]


def is_elf(path):
    if os.path.islink(path) or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def program(name):
    found = shutil.which(name)
    if not found:
        raise Skipped(f"{name} is not installed (dev/packages.sh, purpose drop-in)")
    return found


def own_address():
    """An IPv4 address of this host that is not loopback, if it has one: no packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("203.0.113.1", 9))
            return probe.getsockname()[0]
        except OSError:
            return "127.0.0.1"


def own_address6():
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("2001:db8::1", 9))
            return probe.getsockname()[0]
        except OSError:
            harness.need_ipv6()
            return "::1"


def free_port():
    """None that the system chooses for others: who listens there next must be the program."""
    for port in random.sample(range(20000, 32000), 1000):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            try:
                probe.bind(("", port))
                return port
            except OSError:
                continue
    raise AssertionError("1,000 ports are all in use")


def is_listening(port):
    wanted = f":{port:04X}"
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table) as lines:
                rows = [line.split() for line in lines]
        except FileNotFoundError:
            continue
        if any(row[1].endswith(wanted) and row[3] == LISTENING for row in rows[1:]):
            return True
    return False


def is_bound(port):
    """Whether a UDP socket has the port."""
    for table in ("/proc/net/udp", "/proc/net/udp6"):
        try:
            with open(table) as lines:
                rows = [line.split() for line in lines]
        except FileNotFoundError:
            continue
        if any(row[1].endswith(f":{port:04X}") for row in rows[1:]):
            return True
    return False


def over(name, *options, run=()):
    """A program in the background, over the drop-ins."""
    return Process(name, *run, program(name), *options, file=tool("run"))


def need_other_address():
    """Some programs take no loopback address."""
    if own_address() == "127.0.0.1":
        raise Skipped("this host has no other address than loopback's")


def pair(server, client, port, ready=is_listening, run=(), patience=PATIENCE):
    """Both ends; each has to end with status 0. Returns what they printed."""
    first = over(*server, run=run)
    wait_until(lambda: first.process.poll() is not None or ready(port),
               f"{server[0]} does not listen on port {port}")
    second = over(*client, run=run)
    try:
        second.end(0, patience)
    except AssertionError as failure:
        first.kill()
        raise AssertionError(f"{failure}\nThe other end:\n{first.errors()}") from None
    first.end(0)
    return first.output, second.output


def run(*command, status=0):
    done = subprocess.run([tool("run"), *map(str, command)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=PATIENCE)
    check(done.returncode == status, f"{command}: status {done.returncode}, not {status}\n"
          f"{done.stdout}{done.stderr}")
    return done


NETWORK = ("ip link set lo up; ip link add e0 type veth peer name e1; ip link set e1 up; "
           "ip addr add 192.0.2.1/24 dev e0; ip addr add 2001:db8::1/64 dev e0 nodad; "
           "ip link set e0 up; ip route add default dev e0; exec \"$0\" \"$@\"")


def enter_a_network():
    """A host may have no address but loopback. Programs like libfabric and mckey want another one: all
    runs in a namespace with a link then, where there may be some."""
    if own_address() != "127.0.0.1" or "--list" in sys.argv:
        return
    unshare = ("unshare", "-n", *(() if os.geteuid() == 0 else ("-r",)))
    if subprocess.run([*unshare, "true"], capture_output=True).returncode == 0:
        os.execvp(unshare[0], [*unshare, "sh", "-ec", NETWORK, sys.executable, "-B", *sys.argv])


def main():
    enter_a_network()
    return harness.main()
