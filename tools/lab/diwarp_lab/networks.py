# SPDX-License-Identifier: Apache-2.0
"""The networks of experiments: what each can do to packets, and how it is made.

A network has hosts (`Host`): a namespace, or none for one of this host's own addresses. `counted()`
tells what it was offered and what of that it dropped, where it counts."""
import os
import subprocess
import sys

from . import scene as scenes
from .basics import PATIENCE, Refusal, Skipped, wait_until
from .quantities import DECIMAL, parse_number
from .scene import DEVICE, Router, Space, Switch, need_program

# What can be done to packets: the unit, and how it is read.
OPTIONS = {
    "mtu": ("bytes", None),
    "rate": ("bits a second", DECIMAL),
    "queue": ("packets that wait at the rate's bottleneck", None),
    "delay": ("microseconds", None),
    "jitter": ("microseconds at most, added to the delay", None),
    "loss": ("percent", None),
    "burst": ("packets that a loss takes in a row, on average", None),
    "every": ("the nth packet is lost, and the 2nth", None),
    "reorder": ("percent", None),
    "duplicate": ("percent", None),
    "corrupt": ("percent", None),
}
WHOLE = ("mtu", "queue", "every")
PERCENTS = ("loss", "reorder", "duplicate", "corrupt")


def setting(name, text):
    """An option's value. ValueError with a sentence if it is none."""
    if name not in OPTIONS:
        raise ValueError(f"a network has no {name}, but {', '.join(OPTIONS)}")
    value = parse_number(text, OPTIONS[name][1] or DECIMAL)
    if name in PERCENTS and value > 100:
        raise ValueError(f"{name} is in percent: at most 100, not {value:g}")
    if name in WHOLE and not isinstance(value, int):
        raise ValueError(f"{name} is a whole number, not {value:g}")
    if name == "every" and value < 1:
        raise ValueError("every nth packet is lost, from the first on, and not each 0th")
    if name == "mtu" and not 576 <= value <= 65535:
        raise ValueError(f"mtu is in bytes, from 576 to 65535, not {value:g}")
    return value


class Host:
    """Where programs run, and the address that they have there."""

    def __init__(self, address, space=None):
        self.address, self.space = address, space


class Network:
    """What all have. `can` are the options that it takes."""
    name = ""
    can = ()
    needs_namespaces = True
    most_hosts = None  # as many as are asked for
    offloads = True  # whether the kernel hands segments of many packets through in one
    about = ""
    environment = {}
    counts_rows = False  # whether what it dropped stands in the rows of the programs

    def __init__(self, scene, settings, seed, hosts):
        self.settings, self.seed = settings, seed
        self.build(scene, hosts)

    def build(self, scene, hosts):
        raise NotImplementedError

    def reseed(self, seed):
        """For the next program; only where fates are drawn by the programs themselves."""

    def counted(self):
        """(packets offered, packets dropped of those by chance) so far; None: it does not count."""
        return None

    def dropped(self):
        """Packets dropped so far for whatever reason, as a number that only grows."""
        counted = self.counted()
        return counted[1] if counted else 0

    def get(self, name):
        return self.settings.get(name, 0)

    def share(self, name):
        return self.get(name) / 100


class Loopback(Network):
    name = "loopback"
    needs_namespaces = False
    about = "this host's own addresses, 127.0.0.1 and on"

    def build(self, scene, hosts):
        self.hosts = [Host(f"127.0.0.{number}") for number in range(1, hosts + 1)]


class BuiltIn(Loopback):
    """DIWARP_IMPAIR in the environment of each program impairs the datagrams that it sends."""
    name = "built-in"
    can = ("loss", "every", "reorder", "duplicate", "corrupt", "delay", "jitter")
    about = "loopback, and diwarp impairs the datagrams that it sends itself; TCP passes as it is"
    counts_rows = True

    def build(self, scene, hosts):
        super().build(scene, hosts)
        self.reseed(self.seed)

    def reseed(self, seed):
        parts = {"drop": self.share("loss"), "reorder": self.share("reorder"),
                 "duplicate": self.share("duplicate"), "corrupt": self.share("corrupt"),
                 "delay": self.get("delay"), "jitter": self.get("jitter"),
                 "every": self.get("every")}
        words = [f"{name}={value:g}" for name, value in parts.items() if value]
        self.environment = {"DIWARP_IMPAIR": ",".join([*words, f"seed={seed}"])} if words else {}


class Veth(Network):
    name = "veth"
    can = ("mtu",)
    about = "network namespaces joined by veth devices, whose offloads are on"

    def build(self, scene, hosts):
        if hosts == 2:
            self.spaces = scenes.hosts(scene, 2)
            self.connect(self.spaces[0], DEVICE, self.spaces[1])
        else:
            self.spaces = scenes.hosts(scene, hosts)
            self.join(scene.new_space())
        for space in self.spaces:
            space.configure(space.address)
            self.set_mtu(space, DEVICE)
        self.hosts = [Host(space.address, space) for space in self.spaces]

    @staticmethod
    def connect(space, name, other):
        try:
            space.command("ip", "link", "add", name, "type", "veth", "peer", "name", DEVICE,
                          "netns", other.path())
        except AssertionError as error:
            raise Skipped(f"no veth devices can be made here ({error})")

    def join(self, middle):
        """More than two meet at a bridge."""
        middle.command("ip", "link", "add", "bridge0", "type", "bridge")
        middle.command("ip", "link", "set", "bridge0", "up")
        for number, space in enumerate(self.spaces, 1):
            self.connect(middle, f"side{number}", space)
            self.set_mtu(middle, f"side{number}")
            middle.command("ip", "link", "set", f"side{number}", "master", "bridge0", "up")

    def set_mtu(self, space, device):
        if self.get("mtu"):
            space.command("ip", "link", "set", device, "mtu", f"{self.get('mtu')}")


def netem_words(settings):
    """What `tc qdisc add ... netem` is told, from a network's settings."""
    given = {name: value for name, value in settings.items() if value}
    words = ["limit", str(given.get("queue", 10000))]
    if "delay" in given or "jitter" in given or "reorder" in given:
        # What is reordered overtakes those that are delayed, so there is always a delay.
        words += ["delay", f"{given.get('delay', 0) or 100 * ('reorder' in given)}us"]
        words += [f"{given['jitter']}us"] if "jitter" in given else []
    if "loss" in given and given.get("burst", 1) > 1:
        leave = 100 / given["burst"]
        enter = leave * given["loss"] / max(100 - given["loss"], 1e-9)
        words += ["loss", "gemodel", f"{min(enter, 100):.6f}%", f"{leave:.6f}%", "100%", "0%"]
    elif "loss" in given:
        words += ["loss", "random", f"{given['loss']}%"]
    for name in ("duplicate", "corrupt", "reorder"):
        words += [name, f"{given[name]}%"] if name in given else []
    return words + (["rate", f"{int(given['rate'])}bit"] if "rate" in given else [])


class Netem(Veth):
    """The kernel's own impairment, at a bridge, on the way out to each host. Offloads are off, or
    it would take a train of segments for one packet."""
    name = "netem"
    can = tuple(name for name in OPTIONS if name != "every")  # it counts no packets
    offloads = False
    about = "namespaces joined by a bridge, at which the kernel's netem impairs what goes to each"

    def build(self, scene, hosts):
        need_program("tc", "ethtool")
        self.spaces = scenes.hosts(scene, hosts)
        self.middle = scene.new_space()
        self.join(self.middle)
        self.sides = [f"side{number}" for number in range(1, hosts + 1)]
        for space, side in zip(self.spaces, self.sides):
            space.configure(space.address)
            self.set_mtu(space, DEVICE)
            for place, device in ((space, DEVICE), (self.middle, side)):
                switches = [word for offload in Router.OFFLOADS for word in (offload, "off")]
                place.command("ethtool", "-K", device, *switches)
            wait_until(lambda: self.is_up(space), f"{side} does not come up")
        for space in self.spaces:
            self.introduce(space)
        if any(self.get(name) for name in OPTIONS if name != "mtu"):
            for side in self.sides:
                self.impair(side)
        self.hosts = [Host(space.address, space) for space in self.spaces]

    @staticmethod
    def is_up(space):
        return Router.link(space, DEVICE)["operstate"] == "UP"

    def introduce(self, space):
        """No questions for addresses get lost."""
        for other in self.spaces:
            if other is not space:
                space.command("ip", "neighbour", "replace", other.address, "lladdr",
                              Router.link(other, DEVICE)["address"], "dev", DEVICE, "nud",
                              "permanent")

    def impair(self, side):
        try:
            self.middle.command("tc", "qdisc", "add", "dev", side, "root", "netem",
                                *netem_words(self.settings))
        except AssertionError as error:
            raise Skipped(f"this kernel has no netem, or an older one ({error})")

    def counted(self):
        """Where a rate or a queue makes it drop for want of room, too, that is not told apart."""
        if self.get("rate") or self.get("queue"):
            return None
        found = [self.counts(side) for side in self.sides]
        return tuple(map(sum, zip(*found))) if all(found) else None

    def dropped(self):
        return sum(found[1] for side in self.sides if (found := self.counts(side)))

    def counts(self, side):
        words = self.middle.command("tc", "-s", "qdisc", "show", "dev", side)
        words = words.replace(",", "").split()
        if "netem" not in words:
            return None
        sent, dropped = (int(words[words.index(name) + step]) for name, step in
                         (("Sent", 3), ("(dropped", 1)))
        return sent + dropped, dropped


class ForwardingRouter(Router):
    """The tests' router, with the lab's losses: of TCP packets as well."""

    def drop_at_random(self, percent, every):
        """From now on."""
        lost = {"loss": f"numgen random mod 100000000 < {round(percent * 1000000)}",
                "every": f"numgen inc mod {every} == {max(every - 1, 0)}"}
        rules = ["flush ruleset", "add table ip t", "add counter ip t passed",
                 "add counter ip t lost",
                 "add chain ip t f { type filter hook forward priority 0 ; }"]
        for name, wanted in (("loss", percent), ("every", every)):
            if wanted:
                rules.append("add rule ip t f meta l4proto { tcp, udp } " + lost[name] +
                             " counter name lost drop")
        rules.append("add rule ip t f meta l4proto { tcp, udp } counter name passed")
        try:
            self.middle.command("nft", "\n".join(rules))
        except AssertionError as error:
            raise Skipped(f"nftables cannot drop at random here ({error})")


class Routed(Network):
    name = "router"
    can = ("mtu", "loss", "every")
    most_hosts = 2
    offloads = False
    about = ("a namespace that forwards between two others; nftables drops packets, offloads are "
             "off, so each is one on the wire")

    def build(self, scene, hosts):
        self.router = ForwardingRouter(scene)
        if self.get("mtu"):
            self.set_mtu()
        self.router.drop_at_random(self.get("loss"), self.get("every"))
        self.hosts = [Host(space.address, space) for space in self.router.hosts]

    def set_mtu(self):
        pairs = [(space, DEVICE) for space in self.router.hosts]
        pairs += [(self.router.middle, f"side{number}") for number in (1, 2)]
        for space, device in pairs:
            space.command("ip", "link", "set", device, "mtu", f"{self.get('mtu')}")

    def counted(self):
        found = self.router.counted()
        lost = found["lost"][0]
        return found["passed"][0] + lost, lost


class Switched(Network):
    name = "switch"
    can = tuple(OPTIONS)
    offloads = False
    about = ("a switch in user space between namespaces (diwarp-switch); needs /dev/net/tun, "
             "and no nftables")

    def build(self, scene, hosts):
        options = {"seed": self.seed}
        for name in ("loss", "reorder", "duplicate", "corrupt"):
            options[name] = self.share(name) if self.get(name) else None
        for name in ("delay", "jitter", "burst", "every", "queue"):
            options[name] = self.get(name) or None
        options["rate"] = int(self.get("rate")) or None
        given = {name: value for name, value in options.items() if value is not None}
        self.switch = Switch(scene, hosts, **given)
        for space in self.switch.hosts:
            if self.get("mtu"):
                space.command("ip", "link", "set", DEVICE, "mtu", f"{self.get('mtu')}")
        self.hosts = [Host(space.address, space) for space in self.switch.hosts]

    def counted(self):
        ports = self.switch.figures()
        lost = sum(port["lost"] for port in ports)
        passed = sum(port["passed"] + port["late"] + port["overflowed"] for port in ports)
        return passed + lost, lost

    def dropped(self):
        return sum(port["lost"] + port["overflowed"] + port["refused"]
                   for port in self.switch.figures())


NETWORKS = {one.name: one for one in (Loopback, Veth, Routed, Switched, Netem, BuiltIn)}


def refuse_unable(name, settings):
    """Refusal where a network is asked for what it cannot do."""
    for option, value in settings.items():
        if value and option not in NETWORKS[name].can:
            able = [other for other, kind in NETWORKS.items() if option in kind.can]
            raise Refusal(f"The network {name} has no {option}; these have: {', '.join(able)}.")


def refuse_hosts(name, hosts):
    most = NETWORKS[name].most_hosts
    if most is not None and hosts > most:
        raise Refusal(f"The network {name} has {most} hosts, and this needs {hosts}: use switch or "
                      "veth.")


def why_no_namespaces():
    """Why this process cannot have network namespaces; "": it can. Tried by another process, as
    what is tried cannot be undone."""
    program = ("from diwarp_lab.scene import Space, become_root, need_program\n"
               "try:\n need_program('ip'); become_root(); Space(None)\n"
               "except Exception as error: print(error)")
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    try:
        done = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": folder}, timeout=PATIENCE)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return done.stdout.strip() if done.returncode == 0 else done.stderr.strip()[-200:]


__all__ = ["NETWORKS", "OPTIONS", "Host", "Network", "Space", "refuse_unable", "setting",
           "why_no_namespaces"]
