# SPDX-License-Identifier: Apache-2.0
"""What the cases of a test script are made with: programs in the foreground and the background, and
the command line that runs one case."""
import argparse
import json
import os
import re
import select
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools",
                                "lab"))
from diwarp_lab.basics import PATIENCE, Skipped, check, wait_until, where  # noqa: E402, F401

PROGRAMS = ("pingpong", "bandwidth")  # those that measure between two ends
# Messages of a run that is over long after its case. A ping-pong keeps the time that each took, and
# LeakSanitizer looks through all of that memory at the end.
ENDLESS = {"pingpong": 10_000_000, "bandwidth": 1_000_000_000}
cases = {}


def case(*parameters):
    """Makes a function a case; with parameters, one case for each tuple of them."""
    def register(function):
        for values in parameters or ((),):
            name = "_".join((function.__name__,) + tuple(str(value) for value in values))
            cases[name] = lambda values=values: function(*values)
        return function
    return register


def tool(name):
    return os.path.join(where.tools, "diwarp-" + name)


def example(name):
    return os.path.join(where.examples, name)


def path(name):
    return os.path.join(where.folder, name)


def run(name, *options, status=0, patience=PATIENCE, environment=None):
    done = subprocess.run([tool(name), *map(str, options)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=patience,
                          env={**os.environ, **(environment or {})})
    check(done.returncode == status,
          f"{name} {options}: status {done.returncode}, not {status}\n{done.stdout}{done.stderr}")
    return done


def check_sentence(name, text, *parts):
    """Standard error is one sentence (lines of the sanitizers apart) that names the tool."""
    lines = [line for line in text.splitlines() if line.strip()]
    check(len(lines) == 1, f"not one line: {text!r}")
    check(lines[0].startswith(f"diwarp-{name}: "), text)
    for part in parts:
        check(re.search(part, lines[0], re.IGNORECASE), f"{part!r} is not in {lines[0]!r}")


def need_ipv6():
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            probe.bind(("::1", 0))
    except OSError as error:
        raise Skipped(f"no ::1 on this host ({error})")


def few(program, transport):
    """Messages of a size. A ping-pong takes turns, and each may wait for a busy processor; over UD one
    that waits for long counts as lost, and some shall not be."""
    return 12 if program == "pingpong" and transport != "ud" else 30


def family_options(family):
    if family == "ipv4":
        return []
    need_ipv6()
    return ["--ipv6"]


def sweep(family, least=1):
    """Options for a family and sizes up to 1 MiB, and the sizes. IPv6 differs by its addresses alone:
    there a message of some bytes, one of a datagram and one of many stand for all."""
    if family == "ipv4":
        text, sizes = "1:1M", [1 << i for i in range(21)]
        if least == 0:
            text, sizes = "0," + text, [0] + sizes
    else:
        text, sizes = f"{least},1K,1M", [least, 1 << 10, 1 << 20]
    return [*family_options(family), "--size", text], sizes


class Process:
    """A tool in the background, or another file; killed at the end of the case if it still runs."""
    started = []

    def __init__(self, name, *options, file=None):
        self.name = name
        self.stderr = tempfile.TemporaryFile("w+", dir=where.folder)
        self.process = subprocess.Popen([file or tool(name), *map(str, options)], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=self.stderr)
        self.output = ""
        Process.started.append(self)

    def wait_for(self, pattern):
        """The match of a pattern in what it prints."""
        deadline = time.monotonic() + PATIENCE
        while True:
            found = re.search(pattern, self.output)
            if found:
                return found
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self.process.stdout], [], [], max(left, 0))
            chunk = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            check(chunk, f"{self.name} did not print {pattern!r}: {self.output!r} {self.errors()!r}")
            self.output += chunk.decode()

    def end(self, status, patience=PATIENCE):
        """Waits for its end and returns what it said on standard error."""
        try:
            rest, _ = self.process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} did not end")
        self.output += rest.decode()
        check(self.process.returncode == status,
              f"{self.name}: status {self.process.returncode}, not {status}: "
              f"{self.output}{self.errors()}")
        return self.errors()

    def errors(self):
        self.stderr.seek(0)
        return self.stderr.read()

    def kill(self):
        self.process.kill()
        self.process.wait()

    @classmethod
    def kill_all(cls):
        for started in cls.started:
            if started.process.poll() is None:
                started.kill()


def start_server(name, address="127.0.0.1:0", *options):
    server = Process(name, "--server", address, *options)
    return server, server.wait_for(r"listening at (\S+)").group(1)


def start_endless(program, *options):
    """A server and a client in the midst of a run that does not end by itself in time."""
    server, address = start_server(program, "127.0.0.1:0")
    client = Process(program, "--connect", address, *options, "--iterations", ENDLESS[program],
                     "--max-loss", 100, "--timeout", 5)
    server.wait_for("serving")
    time.sleep(0.2)  # into the run; an earlier end is told in the same words
    return server, client


def answers_to(address, *words):
    """What a server says to a client until it calls something an error."""
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port))) as client:
        client.settimeout(PATIENCE)
        for word in words:
            client.sendall(json.dumps(word).encode() + b"\n")
        answers = b""
        while b'"error"' not in answers:
            chunk = client.recv(4096)
            check(chunk, f"{words} gave {answers}")
            answers += chunk
        return answers


def rows_of(name):
    with open(path(name)) as file:
        return json.load(file)["rows"]


def figures_of(name):
    """The rows without hints: where messages got lost the client has those of both ends."""
    return [{key: value for key, value in row.items() if key != "hints"} for row in rows_of(name)]


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--tools")
    parser.add_argument("--examples")
    parser.add_argument("--partner")
    parser.add_argument("--fake", help="the folder of the fake of rdma-core")
    parser.add_argument("--views", help="datagram_views of tests/wireshark")
    parser.add_argument("case", nargs="?")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(cases))
        return 0
    where.tools, where.examples = arguments.tools, arguments.examples
    where.partner, where.fake, where.views = arguments.partner, arguments.fake, arguments.views
    with tempfile.TemporaryDirectory() as where.folder:
        try:
            cases[arguments.case]()
        except Skipped as reason:
            print(f"SKIPPED: {reason}")
        finally:
            Process.kill_all()
    return 0
