# SPDX-License-Identifier: Apache-2.0
"""Network namespaces with a network between them.

The namespaces have no names: open descriptors of this process are all that holds them. So they go
when it ends, however it ends, with every device in them; and children that it started end with it.
"""
import ctypes
import functools
import json
import os
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from diwarp_lab.basics import PATIENCE, Skipped, check, wait_until, where

NEW_USER, NEW_NET = 0x10000000, 0x40000000
KILL_WITH_PARENT = 1  # PR_SET_PDEATHSIG
DEVICE = "port0"  # in every namespace
PREFIX = "10.77.0."
PREFIX6 = "fd77::"
libc = ctypes.CDLL(None, use_errno=True)


def call(name, *arguments):
    if getattr(libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def end_with(parent):
    """In a child, before it becomes a program: it is killed when its parent, of this id, ends."""
    call("prctl", KILL_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before that was set
        os._exit(1)


def become_root():
    """Root, if only in a user namespace of this process's own."""
    user, group = os.geteuid(), os.getegid()
    if user == 0:
        return
    try:
        call("unshare", NEW_USER | NEW_NET)  # in a namespace of its own it may come and go
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"),
                           ("gid_map", f"0 {group} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    except OSError as error:
        raise Skipped(f"this needs root or user namespaces ({error})")


def get_ahead():
    """Before what else runs here, where that is allowed: a network that waits for a processor loses
    packets that it should not. Children inherit it."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -15)
    except OSError:
        pass


def need_program(*names):
    """Debian's users have no sbin in their PATH."""
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    for name in names:
        if not shutil.which(name):
            raise Skipped(f"there is no {name} here (dev/packages.sh, purpose network)")


class Space:
    """A network namespace."""

    def __init__(self, address):
        self.address = address
        home = os.open("/proc/self/ns/net", os.O_RDONLY)
        try:
            call("unshare", NEW_NET)
            self.descriptor = os.open("/proc/self/ns/net", os.O_RDONLY)
            call("setns", home, NEW_NET)
        except OSError as error:
            raise Skipped(f"no network namespace can be made here ({error})")
        finally:
            os.close(home)
        self.command("ip", "link", "set", "lo", "up")

    def path(self):
        return f"/proc/{os.getpid()}/fd/{self.descriptor}"

    def enter(self, parent):
        """In a child of this parent, before it becomes a program."""
        call("setns", self.descriptor, NEW_NET)
        end_with(parent)

    def command(self, *words):
        enter = functools.partial(self.enter, os.getpid())
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=PATIENCE, preexec_fn=enter)
        check(done.returncode == 0, f"{shlex.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout

    def configure(self, address, prefix_length=24):
        self.command("ip", "address", "add", f"{address}/{prefix_length}", "broadcast", "+",
                     "dev", DEVICE)
        self.command("ip", "link", "set", DEVICE, "txqueuelen", "4096", "up")

    def configure6(self, address):
        self.command("ip", "address", "add", f"{address}/64", "dev", DEVICE, "nodad")

    def set(self, name, value):
        """A variable of the kernel's, this namespace's own."""
        try:
            self.command("sh", "-c", f"echo {value} >/proc/sys/{name}")
        except AssertionError as error:
            raise Skipped(f"{name} cannot be set here ({error})")

    def socket(self, kind, family=socket.AF_INET, protocol=0):
        """A socket that lives in the namespace, also where a thread of another one uses it."""
        home = os.open("/proc/self/ns/net", os.O_RDONLY)
        try:
            call("setns", self.descriptor, NEW_NET)
            return socket.socket(family, kind, protocol)
        finally:
            call("setns", home, NEW_NET)
            os.close(home)

    def close(self):
        os.close(self.descriptor)


class Program:
    """A program in a namespace that prints JSON or words, a line each."""

    def __init__(self, name, *options, space=None):
        path = os.path.join(where.tools, name)
        self.name = name
        self.errors = tempfile.TemporaryFile("w+")
        enter = functools.partial(space.enter if space else end_with, os.getpid())
        self.process = subprocess.Popen([path, *map(str, options)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors,
                                        preexec_fn=enter)
        self.rest = b""

    def fail(self, what):
        self.errors.seek(0)
        raise AssertionError(f"{self.name} {what}: {self.errors.read()!r}")

    def line(self, patience=PATIENCE):
        """The next line that it prints."""
        deadline = time.monotonic() + patience
        while b"\n" not in self.rest:
            left = max(deadline - time.monotonic(), 0)
            ready, _, _ = select.select([self.process.stdout], [], [], left)
            if not ready:
                self.fail("printed nothing for too long")
            chunk = os.read(self.process.stdout.fileno(), 1 << 20)
            if not chunk:
                self.fail(f"ended ({self.process.wait(PATIENCE)})")
            self.rest += chunk
        line, _, self.rest = self.rest.partition(b"\n")
        return line.decode()

    def word(self, kind, patience=PATIENCE):
        """The next line, which is JSON and of this kind."""
        word = json.loads(self.line(patience))
        check(word["kind"] == kind, f"{self.name} said {word}, not {kind}")
        return word

    def tell(self, text="\n"):
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    def end(self, patience=PATIENCE):
        """Closes its input; the lines that it printed until it ended."""
        try:
            rest, _ = self.process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            self.fail("did not end")
        if self.process.returncode != 0:
            self.fail(f"ended with {self.process.returncode}")
        return (self.rest + rest).decode().splitlines()

    def words(self, patience=PATIENCE):
        """The same, of JSON."""
        return [json.loads(line) for line in self.end(patience)]

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)
        wait_until(self.is_frozen, f"{self.name} does not stop")

    def is_frozen(self):
        """Every thread: a signal takes its time to reach those that run."""
        tasks = f"/proc/{self.process.pid}/task"
        states = [open(f"{tasks}/{task}/stat").read().rsplit(")", 1)[1].split()[0]
                  for task in os.listdir(tasks)]
        return set(states) == {"T"}

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.errors.close()


class Scene:
    """Namespaces, and what runs in them; all gone at the end of a `with`."""

    def __init__(self, ahead=True):
        """`ahead`: all that runs in it comes before what else runs here, where that is allowed."""
        need_program("ip")
        if ahead:
            get_ahead()
        become_root()
        self.spaces = []
        self.running = []
        self._folder = None

    @property
    def folder(self):
        """Made when it is asked for: what ends by SIGKILL leaves it behind."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory()
        return self._folder

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for program in self.running:
            program.kill()
        for space in self.spaces:
            space.close()
        if self._folder is not None:
            self._folder.cleanup()

    def new_space(self, address=None):
        self.spaces.append(Space(address))
        return self.spaces[-1]

    def run(self, space, name, *options):
        self.running.append(Program(name, *options, space=space))
        return self.running[-1]

    def tool(self, space, name, *options):
        """diwarp-NAME in a namespace."""
        return self.run(space, f"diwarp-{name}", *options)


def hosts(scene, count):
    """Namespaces with addresses on one network, 10.77.0.1 and on."""
    return [scene.new_space(f"{PREFIX}{number}") for number in range(1, count + 1)]


class Switch:
    """A user-space switch between hosts, 10.77.0.1 and on (tools/switch). Options are its own,
    with underscores for hyphens; they hold for every way out."""

    FATES = ("passed", "late", "lost", "overflowed")

    def __init__(self, scene, count=2, log=False, **options):
        self.hosts = hosts(scene, count)
        words = [f"--port={DEVICE}={host.path()}" for host in self.hosts]
        words += [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
        if log:
            self.log_path = os.path.join(scene.folder.name, "log")
            words.append(f"--log={self.log_path}")
        try:
            os.close(os.open("/dev/net/tun", os.O_RDWR))
        except OSError as error:
            raise Skipped(f"no TAP devices can be made here ({error})")
        self.program = scene.tool(None, "switch", *words)
        self.get_ahead()
        check(self.program.line() == "ready", "the switch is not ready")
        for number, host in enumerate(self.hosts, 1):
            host.command("ip", "link", "set", DEVICE, "address", self.station(number))
            host.configure(host.address)
            host.configure6(f"{PREFIX6}{number}")
        for number, host in enumerate(self.hosts, 1):
            self.introduce(host, [n for n in range(1, count + 1) if n != number])

    def get_ahead(self):
        """Before everything, where that is allowed: packets that wait for it come in a burst."""
        try:
            os.sched_setscheduler(self.program.process.pid, os.SCHED_RR, os.sched_param(1))
        except OSError:
            pass

    @staticmethod
    def station(number):
        return f"02:00:00:00:00:{number:02x}"

    def introduce(self, host, others):
        """While an address is being resolved packets wait, and may be overtaken or dropped."""
        for other in others:
            for address in (f"{PREFIX}{other}", f"{PREFIX6}{other}"):
                host.command("ip", "neighbour", "replace", address, "lladdr", self.station(other),
                             "dev", DEVICE, "nud", "permanent")

    def figures(self):
        """A dictionary for each port, of what left through it."""
        self.program.tell()
        return json.loads(self.program.line())

    def log(self):
        """(port, fate, UDP payload's length, its first 60 bytes) of each datagram so far."""
        self.figures()
        with open(self.log_path, "rb") as file:
            data = file.read()
        return [(data[at], self.FATES[data[at + 1]],
                 int.from_bytes(data[at + 2:at + 4], sys.byteorder), data[at + 4:at + 64])
                for at in range(0, len(data), 64)]


class Router:
    """Two hosts in networks of their own, and a namespace that forwards between them; its kernel
    drops what nftables is told to drop. Offloads are off: each packet is one on the wire."""

    OFFLOADS = ("tso", "gso", "gro", "tx-udp-segmentation")

    def __init__(self, scene):
        need_program("nft", "ethtool")
        self.hosts = [scene.new_space("10.77.1.1"), scene.new_space("10.77.2.1")]
        self.middle = scene.new_space()
        for number, host in enumerate(self.hosts, 1):
            self.connect(host, f"side{number}", f"10.77.{number}.254")
        self.middle.set("net/ipv4/ip_forward", 1)

    def connect(self, host, name, gateway):
        try:
            self.middle.command("ip", "link", "add", name, "type", "veth", "peer", "name", DEVICE,
                                "netns", host.path())
        except AssertionError as error:
            raise Skipped(f"no veth devices can be made here ({error})")
        self.middle.command("ip", "address", "add", f"{gateway}/24", "dev", name)
        self.middle.command("ip", "link", "set", name, "up")
        host.configure(host.address)
        host.command("ip", "route", "add", "default", "via", gateway)
        for space, device in ((self.middle, name), (host, DEVICE)):
            for offload in self.OFFLOADS:
                space.command("ethtool", "-K", device, offload, "off")
            wait_until(lambda: self.is_up(space, device), f"{device} does not come up")
        self.introduce(host, DEVICE, gateway, self.middle, name)
        self.introduce(self.middle, name, host.address, host, DEVICE)

    @staticmethod
    def link(space, device):
        return json.loads(space.command("ip", "-j", "link", "show", device))[0]

    def is_up(self, space, device):
        """The kernel notices late that a carrier is there, and until then drops what is sent."""
        return self.link(space, device)["operstate"] == "UP"

    def introduce(self, space, device, address, other, its_device):
        """While an address is being resolved packets wait, and few of them."""
        space.command("ip", "neighbour", "replace", address, "lladdr",
                      self.link(other, its_device)["address"], "dev", device, "nud", "permanent")

    def drop(self, per_mille):
        """From now on of each thousand UDP packets so many are dropped, at random."""
        rules = ["flush ruleset", "add table ip t", "add counter ip t passed",
                 "add counter ip t lost",
                 "add chain ip t f { type filter hook forward priority 0 ; }",
                 f"add rule ip t f ip protocol udp numgen random mod 1000 < {per_mille} "
                 "counter name lost drop",
                 "add rule ip t f ip protocol udp counter name passed"]
        try:
            self.middle.command("nft", "\n".join(rules))
        except AssertionError as error:
            raise Skipped(f"nftables cannot drop at random here ({error})")

    def counted(self):
        """{"passed": (packets, bytes with IP headers), "lost": the same} since drop()."""
        found = json.loads(self.middle.command("nft", "-j", "list", "counters"))["nftables"]
        return {entry["counter"]["name"]: (entry["counter"]["packets"], entry["counter"]["bytes"])
                for entry in found if "counter" in entry}
