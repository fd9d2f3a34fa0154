# SPDX-License-Identifier: Apache-2.0
"""The virtual machine with siw, and the two peers that talk to each other: one in it, one here."""
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import types

HERE = os.path.dirname(os.path.abspath(__file__))
AGENT_PORT = 900     # in the guest
SIW_PORTS = (7174, 7175)  # in the guest, where siw's servers listen
GUEST = "10.0.2.15"
HOST = "10.0.2.2"    # 127.0.0.1 of the host, seen from the guest
PATIENCE = 120       # seconds for anything that should come to an end by itself
BOOT_PATIENCE = 300  # seconds for the emulated machine to start, beside other work
where = types.SimpleNamespace(peers=None, tools=None, folder=None)  # set by main()


class NotStarted(AssertionError):
    """There is no virtual machine to test in."""


class Failed(AssertionError):
    """Peers were not well: the reports of all that gave one, in the order of the runs."""

    def __init__(self, what, reports):
        super().__init__(what)
        self.reports = reports


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Running:
    """A command that runs, here or in the guest; result() is its status and its output."""

    def __init__(self, name, work):
        self.name = name
        self._result = (None, "never started")
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()

    def _run(self, work):
        try:
            self._result = work()
        except Exception as error:  # pylint: disable=broad-except
            self._result = (None, f"{type(error).__name__}: {error}")

    def result(self, timeout=PATIENCE):
        self._thread.join(timeout)
        check(not self._thread.is_alive(), f"still running after {timeout} s: {self.name}")
        return self._result


processes = []  # that run_here() began


def run_here(command, timeout=PATIENCE):
    """The process is an attribute of what this returns."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
    processes.append(process)

    def work():
        output, _ = process.communicate(timeout=timeout)
        return process.returncode, output
    running = Running(" ".join(command), work)
    running.process = process
    return running


def end_processes():
    for process in processes:
        if process.poll() is None:
            process.kill()
            process.wait()


class Agent:
    """Commands in a guest, through the agent that runs there."""

    is_siw = True
    gave_up = 0  # runs that siw ended by itself

    def __init__(self, address):
        self._address = address

    def wait_until_there(self, patience=BOOT_PATIENCE):
        end = time.monotonic() + patience
        while time.monotonic() < end:
            self.look_alive()
            try:
                if self._ask("true", 5).strip() == "status 0":
                    return
            except OSError:
                pass
            time.sleep(0.2)
        raise NotStarted("the guest does not answer\n" + self.log())

    def look_alive(self):
        """Raises NotStarted where there is no machine."""

    def log(self):
        """What the machine has said."""
        return ""

    def _ask(self, command, timeout):
        with socket.create_connection(self._address, timeout) as link:
            link.settimeout(timeout)
            link.sendall(command.encode() + b"\0")
            chunks = []
            while chunk := link.recv(65536):
                chunks.append(chunk)
        return b"".join(chunks).decode(errors="replace")

    def start(self, command, timeout=PATIENCE):
        def work():
            output, _, status = self._ask(command, timeout).rpartition("\nstatus ")
            return (int(status) if status.strip().isdigit() else None), output
        return Running(command, work)

    def run(self, command, timeout=PATIENCE):
        status, output = self.start(command, timeout).result(timeout)
        check(status == 0, f"in the guest: {command}: status {status}\n{output}")
        return output

    def set_siw(self, **parameters):
        """crc, p2p: 0 or 1; revision: 1 or 2. For the connections to come."""
        names = {"crc": "mpa_crc_required", "p2p": "peer_to_peer", "revision": "mpa_version"}
        for name, value in parameters.items():
            self.run(f"echo {int(value)} > /sys/module/siw/parameters/{names[name]}")

    def wait_port(self, port):
        self.run(f"wait-port {port}")


class Guest(Agent):
    """A running virtual machine, as a context. The capture is in `pcap` afterwards."""

    def __init__(self, limit=700):
        self.pcap = os.path.join(where.folder, "capture.pcap")
        self.siw_ports = {port: free_port() for port in SIW_PORTS}  # of the guest: of the host
        agent_port = free_port()
        super().__init__(("127.0.0.1", agent_port))
        self._log = os.path.join(where.folder, "guest.log")
        forwards = [f"{agent_port}:{AGENT_PORT}"]
        forwards += [f"{here}:{there}" for there, here in self.siw_ports.items()]
        options = [word for forward in forwards for word in ("--forward", forward)]
        share = os.path.join(where.folder, "share")
        os.makedirs(share, exist_ok=True)
        for name in ("siw_peer", "guest_agent"):
            shutil.copy(os.path.join(where.peers, name), share)
        with open(self._log, "w", encoding="utf-8") as log:
            self._machine = subprocess.Popen(
                [os.path.join(HERE, "siw-vm", "run.sh"), "--times",
                 "--siw", "accept_recheck=1 whole_trailer=1", "--dir-ro", share,
                 "--pcap", self.pcap, "--timeout", str(limit), *options,
                 "--", f"ulimit -n 4096; exec /host/guest_agent {AGENT_PORT}"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)

    def __enter__(self):
        try:
            self.wait_until_there()
        except BaseException:
            self._kill()
            raise
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            self._kill()
            return
        try:
            self._ask("quit", 10)
            status = self._machine.wait(60)
        finally:
            self._kill()
        check(status == 0, f"the virtual machine ended with status {status}\n{self.log()}")

    def log(self):
        with open(self._log, encoding="utf-8", errors="replace") as log:
            return log.read()

    def _kill(self):
        if self._machine.poll() is None:
            self._machine.send_signal(signal.SIGTERM)
            try:
                self._machine.wait(10)
            except subprocess.TimeoutExpired:
                self._machine.kill()

    def look_alive(self):
        if self._machine.poll() is not None:
            raise NotStarted("the virtual machine did not start:\n" + self.log())


def report_of(running, timeout=PATIENCE):
    """What a peer reported, with its name and its whole output for messages."""
    status, output = running.result(timeout)
    lines = [line for line in output.splitlines() if line.startswith("{")]
    check(lines, f"no report (status {status}): {running.name}\n{output}")
    report = json.loads(lines[-1])
    report["text"] = f"{running.name}\n  status {status}: {output.strip()}"
    return report


AFTERWARDS = 15      # seconds for what the others still say when one has failed


def reports_of(*runs):
    """Of all, each of which must be well. When one is not, the message has what all of them say."""
    reports, failed = [], []
    for running in runs:
        try:
            reports.append(report_of(running, AFTERWARDS if failed else PATIENCE))
            if not reports[-1]["ok"]:
                failed.append(reports[-1]["text"])
        except AssertionError as error:
            failed.append(str(error))
    if failed:
        raise Failed("\n".join(failed + [r["text"] for r in reports if r["ok"]]), reports)
    return reports


def siw_gave_up(failed):
    """Whether siw ended the connection for an error of its own: diwarp found no fault in what came,
    had sent no Terminate, and waited for nothing in vain. siw reports its own errors alone as one of
    the queue pair; what a peer's end does to it is a flush."""
    own = [r for r in failed.reports if r.get("status") == "local QP operation error"]
    other = [r for r in failed.reports if r not in own]
    return (len(own) == 1 and len(other) == 1 and not other[0].get("terminate")
            and other[0].get("failure", "").startswith("connection lost"))


def exchange(guest, *arguments, **options):
    """One run of both peers. Returns siw's report and diwarp's; both must be well. Where the
    kernel's siw gave up by itself, that is told, and the run is done once more."""
    try:
        return exchange_once(guest, *arguments, **options)
    except Failed as failed:
        if not guest.is_siw or not siw_gave_up(failed):
            raise
        guest.gave_up += 1
        print(f"NOTE: siw gave up by itself; once more:\n{failed}", flush=True)
    return exchange_once(guest, *arguments, **options)


def exchange_once(guest, siw_serves, common, siw="", diwarp="", port=SIW_PORTS[0]):
    siw_command = f"/host/siw_peer {common} {siw}"
    diwarp_command = [os.path.join(where.peers, "diwarp_peer"), *common.split(), *diwarp.split()]
    if siw_serves:
        there = guest.start(f"{siw_command} --server --address {GUEST} --port {port}")
        guest.wait_port(port)
        here = run_here(diwarp_command + ["--address", "127.0.0.1",
                                          "--port", str(guest.siw_ports[port])])
        return reports_of(here, there)[::-1]
    here_port = free_port()
    here = run_here(diwarp_command + ["--server", "--address", "127.0.0.1",
                                      "--port", str(here_port)])
    wait_listening(here_port)
    there = guest.start(f"{siw_command} --address {HOST} --port {here_port}")
    return reports_of(there, here)


def wait_listening(port):
    """Until a TCP socket of this host listens, without connecting to it."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with open("/proc/net/tcp", encoding="ascii") as table:
            for line in table:
                words = line.split()
                if words[1].endswith(f":{port:04X}") and words[3] == "0A":
                    return
        time.sleep(0.02)
    raise AssertionError(f"nothing listens on port {port}")


def new_folder():
    return tempfile.mkdtemp(prefix="diwarp-interop.")
