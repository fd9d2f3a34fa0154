#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""diwarp-stat over running processes, and over what is none of diwarp's making. Called with the name
of one case; --list names all."""
import contextlib
import fcntl
import json
import os
import pty
import re
import resource
import select
import signal
import struct
import subprocess
import sys
import termios

from harness import (ENDLESS, PATIENCE, Process, Skipped, case, check, check_sentence, main, run,
                     start_endless, start_server, tool, wait_until, where)

NAME = "diwarp-counters"
HEADER = struct.Struct("=8sIIIIIIQ16s64s")  # base/include/base/counters_block.h
ENTRY = struct.Struct("=40sII")
MAGIC, LAYOUT = b"diwarpCB", 1
NOBODY = 65534
DEAD = 2**22  # more than the number of any process
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW


def block(process, layout=LAYOUT, device=1):
    values = (("rx_bytes", 5),)
    table = HEADER.size
    first = table + len(values) * ENTRY.size
    header = HEADER.pack(MAGIC, layout, first + 8 * len(values), process, device, len(values), table, 1,
                         b"0.1.0", b"192.0.2.1")
    entries = [ENTRY.pack(name.encode(), first + 8 * i, 0) for i, (name, _) in enumerate(values)]
    return header + b"".join(entries) + b"".join(struct.pack("=Q", value) for _, value in values)


@contextlib.contextmanager
def holding(contents, seals=SEALS):
    """This process has such a file."""
    file = os.memfd_create(NAME, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.write(file, contents)
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals)
        yield file
    finally:
        os.close(file)


def shown(*options, status=0):
    """What --json tells: devices by process, and messages by process."""
    done = run("stat", *options, "--json", status=status)
    told = json.loads(done.stdout)
    check(bool(done.stderr) == (status != 0), done.stderr)
    devices = {}
    for device in told["devices"]:
        devices.setdefault(device["pid"], []).append(device)
    return devices, {problem["pid"]: problem["message"] for problem in told["problems"]}, told


def check_width(text):
    for line in text.splitlines():
        check(len(line) <= 80, f"{len(line)} columns: {line!r}")


def pids(*processes):
    return [process.process.pid for process in processes]


@case()
def two_processes():
    """Their packets, queue pairs and addresses, each process by itself."""
    ends = pids(*start_endless("pingpong", "--transport", "ud"))
    wait_until(lambda: all(pid in shown()[0] and shown()[0][pid][0]["packets_in"] > 100
                           for pid in ends), "no packets were counted")
    devices, problems, _ = shown()
    for pid in ends:
        [device] = devices[pid]
        check(pid not in problems, problems)
        check(device["program"] == "diwarp-pingpong", device)
        check(device["address"] == "127.0.0.1", device)
        check(device["queue_pairs"] == 1 and device["completion_queues"] >= 1, device)
        check(device["packets_out"] > 0 and device["bytes_in"] > 0, device)
        check(device["counters"]["rx_datagrams"] == device["packets_in"], device)
        check(device["completions_waiting"] <= device["gauges"]["completion_entries"], device)
        check(0 <= device["work_share"] <= 1 and 0 <= device["idle_share"] <= 1, device)
    wait_until(lambda: all(shown()[0][pid][0]["work_share"] > 0 for pid in ends),
               "no engine has worked")
    text = run("stat", "--once").stdout
    check_width(text)
    for pid in ends:
        check(re.search(rf"^ *{pid} diwarp-ping", text, re.MULTILINE), text)
    check("127.0.0.1" in text and "in all" in text, text)


@case()
def chosen_processes():
    first, second = pids(*start_endless("bandwidth", "--transport", "rc"))
    wait_until(lambda: first in shown()[0] and second in shown()[0], "a process is not shown")
    devices, problems, _ = shown(second, second)
    check(set(devices) == {second} and not problems, (devices, problems))
    check(len(devices[second]) == 1, devices)
    devices, problems, _ = shown(second, DEAD, status=1)
    check(set(devices) == {second}, devices)
    check(problems == {DEAD: f"Process {DEAD} does not run."}, problems)
    _, problems, _ = shown(os.getpid(), status=1)
    check("has no diwarp device" in problems[os.getpid()], problems)


@case()
def watch_waits_for_the_device_of_a_process_that_starts():
    late = subprocess.Popen(["sh", "-c", f"sleep 0.5; exec {tool('pingpong')} --loopback --iterations "
                             f"{ENDLESS['pingpong']}"], stdout=subprocess.DEVNULL)
    try:
        text = run("stat", late.pid, "--watch", 0.05, "--count", 2).stdout
        check(re.search(rf"^ *{late.pid} diwarp-ping", text, re.MULTILINE), text)
    finally:
        late.kill()
        late.wait()


@case((), ("--once",), ("--watch", 0.05), ("--prometheus",))
def process_that_is_not_there(*options):
    """Standard error tells the user who asked for it, and the rest is shown."""
    done = run("stat", DEAD, *options, status=1)
    check_sentence("stat", done.stderr, f"Process {DEAD} does not run[.]$")
    check(not done.stdout, done.stdout)
    with holding(block(os.getpid())):
        for chosen in ((DEAD, os.getpid()), (os.getpid(), DEAD)):
            done = run("stat", *chosen, *options, status=1)
            check_sentence("stat", done.stderr, f"Process {DEAD} does not run[.]$")
            check(str(os.getpid()) in done.stdout or "--watch" in options, done.stdout)
            check(str(DEAD) not in done.stdout, done.stdout)
        run("stat", os.getpid(), "--once")


@case()
def json_in_a_file():
    """Beside the table, as in the other tools; a watch writes a line each time."""
    name = os.path.join(where.folder, "stat.json")
    with holding(block(os.getpid())):
        text = run("stat", "--json", name).stdout
        with open(name) as file:
            told = json.load(file)
        check(told["tool"] == "diwarp-stat" and "PID PROGRAM" in text, text)
        run("stat", "--json", name, "--watch", 0.01, "--count", 3)
        with open(name) as file:
            lines = file.readlines()
        check(len(lines) == 3 and all(json.loads(line)["devices"] for line in lines), lines)
    check_sentence("stat", run("stat", "--json", os.getpid(), status=1).stderr, "takes a file")


@case()
def many_bad_files():
    """One line for all of a process that have the same fault, and no end of them is looked at."""
    def told(count, contents=lambda number: bytes(4096)):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if count + 100 > hard:
            raise Skipped(f"no more than {hard} files may be open")
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count + 100), hard))
        with contextlib.ExitStack() as stack:
            for number in range(count):
                stack.enter_context(holding(contents(number)))
            done = run("stat", os.getpid(), "--json", status=1)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        return [one["message"] for one in json.loads(done.stdout)["problems"]]

    pid = os.getpid()
    check(told(900) == [f"The counters of process {pid} do not begin as counters do (900 files)."], "900")
    reasons = told(20, lambda number: block(pid, layout=2 + number))
    check(len(reasons) == 9 and reasons[-1] ==
          f"Process {pid} holds 12 more that cannot be read, for other reasons.", reasons)
    reasons = told(1030)
    check(any("has more than 1024 files of counters" in one for one in reasons), reasons)
    check(any("(1024 files)" in one for one in reasons), reasons)


@case()
def several_devices():
    """Each is told of by itself."""
    with holding(block(os.getpid(), device=1)), holding(block(os.getpid(), device=2)):
        check([one["device"] for one in shown()[0][os.getpid()]] == [1, 2], shown())


@case()
def watched():
    """Rates between two looks, as lines of JSON and as tables."""
    ends = pids(*start_endless("pingpong", "--transport", "rc"))
    wait_until(lambda: all(pid in shown()[0] for pid in ends), "a process is not shown")

    def rates_of_last_look():
        lines = run("stat", "--json", "--watch", 0.3, "--count", 3).stdout.splitlines()
        check(len(lines) == 3, lines)
        return [device for device in json.loads(lines[-1])["devices"] if device["pid"] in ends]

    def moves():
        devices = rates_of_last_look()
        check(len(devices) == 2, devices)
        check(all(0.3 <= device["seconds"] for device in devices), devices)
        return all(device["per_second"]["packets_in"] > 0 for device in devices)

    wait_until(moves, "nothing moves")
    text = run("stat", "--watch", 0.1, "--count", 2).stdout
    check_width(text)
    check(text.count("    PID PROGRAM") == 2, text)
    check("per second since each was opened" in text and "per second over" in text, text)


def parsed(text):
    """The samples of a text in the format of Prometheus, checked: {(name, labels): value}, types."""
    samples, types, helps, finished, current = {}, {}, set(), set(), None
    for line in text.splitlines():
        comment = re.fullmatch(r"# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)", line)
        if comment:
            kind, name, rest = comment.groups()
            check(name not in finished, f"{name} is in two places")
            if name != current:
                finished.add(current)
                current = name
            if kind == "HELP":
                check(name not in helps, line)
                helps.add(name)
            else:
                check(rest in ("counter", "gauge") and name not in types, line)
                types[name] = rest
            continue
        if line.startswith("#"):
            continue
        match = re.fullmatch(r"([a-zA-Z_:][a-zA-Z0-9_:]*)\{(.*)\} (\S+)", line)
        check(match, f"no sample: {line!r}")
        name, labels, value = match.groups()
        check(name == current and name in helps and name in types, f"{line} stands apart")
        check(re.fullmatch(r'(?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*"(?:,|$))+', labels), line)
        pairs = tuple(re.findall(r'([a-z_]+)="((?:[^"\\]|\\.)*)"', labels))
        check(len({key for key, _ in pairs}) == len(pairs), line)
        check((name, pairs) not in samples, f"twice: {line}")
        samples[name, pairs] = float(value)
        check(types[name] == "gauge" or name.endswith("_total"), line)
    check(set(types) == helps, (types, helps))
    return samples, types


@case()
def prometheus():
    ends = pids(*start_endless("pingpong", "--transport", "ud"))
    wait_until(lambda: all(pid in shown()[0] and shown()[0][pid][0]["packets_in"] > 100
                           for pid in ends), "no packets were counted")
    with holding(block(DEAD)):
        text = run("stat", "--prometheus").stdout
    samples, types = parsed(text)
    for pid in ends:
        mine = {(name, dict(labels).get("reason")): value for (name, labels), value in samples.items()
                if dict(labels)["pid"] == str(pid)}
        check(mine["diwarp_rx_datagrams_total", None] > 100, mine)
        check(mine["diwarp_queue_pairs", None] == 1, mine)
        check(("diwarp_drops_total", "crc") in mine, mine)
        check(("diwarp_engine_work_seconds_total", None) in mine, mine)
    check(types["diwarp_queue_pairs"] == "gauge", types)
    check(types["diwarp_rx_datagrams_total"] == "counter", types)
    check(re.search(rf"^# Process {os.getpid()} holds the counters of", text, re.MULTILINE), text)


def files_of_all():
    return {folder: set(os.listdir(folder)) for folder in ("/dev/shm",) if os.path.isdir(folder)}


@case()
def killed():
    """Nothing stays behind."""
    before = files_of_all()
    ends = start_endless("pingpong", "--transport", "ud")
    numbers = pids(*ends)
    wait_until(lambda: all(pid in shown()[0] for pid in numbers), "a process is not shown")
    for end in ends:
        end.kill()
    devices, problems, _ = shown()
    for pid in numbers:
        check(pid not in devices and pid not in problems, (devices, problems))
    _, problems, _ = shown(*numbers, status=1)
    for pid in numbers:
        check(problems[pid] == f"Process {pid} does not run.", problems)
    for folder, names in before.items():
        left = {name for name in set(os.listdir(folder)) - names if "diwarp" in name}
        check(not left, left)


@case()
def ended():
    """A program that has come to its end has none."""
    server, address = start_server("pingpong", "127.0.0.1:0")
    run("pingpong", "--connect", address, "--iterations", 20, "--max-loss", 100)
    server.end(0)
    check(server.process.pid not in shown()[0], shown())


@case()
def kept_private():
    os.environ["DIWARP_COUNTERS"] = "private"
    hidden = pids(*start_endless("pingpong", "--transport", "ud"))
    del os.environ["DIWARP_COUNTERS"]
    open_ones = pids(*start_endless("pingpong", "--transport", "ud"))
    wait_until(lambda: all(pid in shown()[0] for pid in open_ones), "a process is not shown")
    devices, _, _ = shown()
    check(not set(hidden) & set(devices), devices)
    _, problems, _ = shown(*hidden, status=1)
    for pid in hidden:
        check("has no diwarp device whose counters are shared" in problems[pid], problems)


def bad_files():
    """What a process may hold in place of its counters, by name: contents, seals, and what is said."""
    whole = block(os.getpid())
    return {
        "cut": (whole[:64], SEALS, "are cut: there are no more than 64 bytes"),
        "empty": (b"", SEALS, "are cut: there are no more than 0 bytes"),
        "version": (block(os.getpid(), layout=2), SEALS,
                    r"are of another version of diwarp \(layout 2, here 1\)"),
        "unsealed": (whole, fcntl.F_SEAL_GROW, "are not sealed"),
        "garbage": (bytes(4096), SEALS, "do not begin as counters do"),
        "lying": (whole[:20] + b"\xff" * 8 + whole[28:], SEALS, "are malformed"),
        "long": (whole + bytes(1 << 20), SEALS, "are longer than any are"),
    }


@case(*((kind,) for kind in bad_files()))
def bad(kind):
    """It says so, and shows the rest."""
    contents, seals, message = bad_files()[kind]
    good, _ = start_endless("pingpong", "--transport", "ud")
    wait_until(lambda: good.process.pid in shown()[0], "the good one is not shown")
    with holding(contents, seals):
        devices, problems, _ = shown()
        check(re.search(f"The counters of process {os.getpid()} {message}", problems[os.getpid()]),
              problems)
        check(good.process.pid in devices and os.getpid() not in devices, devices)
        text = run("stat", "--once").stdout
        check_width(text)
        check(f"process {os.getpid()}" in text and f" {good.process.pid} " in text, text)


@case()
def of_a_dead_process():
    """Counters that another process still holds: it says whose they were, and shows the rest."""
    good, _ = start_endless("pingpong", "--transport", "ud")
    wait_until(lambda: good.process.pid in shown()[0], "the good one is not shown")
    with holding(block(DEAD)):
        devices, problems, _ = shown()
        check(problems[os.getpid()] == f"Process {os.getpid()} holds the counters of process {DEAD}, "
              "which has ended.", problems)
        check(good.process.pid in devices and os.getpid() not in devices, devices)
    with holding(block(os.getppid())):  # a parent's, say, which shows them itself
        devices, problems, _ = shown()
        check(os.getpid() not in problems and os.getpid() not in devices, (devices, problems))


@case()
def one_file_twice():
    """A process with several descriptors of its counters has them once."""
    with holding(block(os.getpid())) as file:
        again = os.dup(file)
        [device] = shown()[0][os.getpid()]
        check(device["address"] == "192.0.2.1" and device["bytes_in"] == 5, device)
        os.close(again)


def become_nobody():
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def need_root():
    if os.geteuid() != 0:
        raise Skipped("only root can run programs as another user")


def as_nobody(*options, status=0):
    done = subprocess.run([tool("stat"), *map(str, options)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=PATIENCE, preexec_fn=become_nobody)
    check(done.returncode == status, done)
    return done


@case()
def another_user():
    """Others' counters are out of reach: it says so, and shows the rest."""
    need_root()
    roots, _ = start_endless("pingpong", "--transport", "ud")
    pid = roots.process.pid
    wait_until(lambda: pid in shown()[0], "root's is not shown")
    # Nobody's own server waits for a client, and shows no device before one comes.
    told = json.loads(as_nobody("--json").stdout)
    check(all(device["pid"] != pid for device in told["devices"]), told)
    check(told["other_users_left_out"] is True, told)
    check("Processes of other users are not shown" in as_nobody("--once").stdout, "the table")
    done = as_nobody(pid, "--json", status=1)
    [problem] = json.loads(done.stdout)["problems"]
    check("is another user's" in problem["message"], problem)
    check_sentence("stat", done.stderr, f"process {pid} is another user's")
    # The file itself, by whatever way it is reached.
    done = subprocess.run(["cat", f"/proc/{pid}/fd/0"], capture_output=True, preexec_fn=become_nobody)
    check(done.returncode != 0, "nobody reads root's descriptors")


@case()
def root_and_others():
    """Root sees its own processes, and with --all those of others."""
    need_root()
    nobodys = subprocess.Popen(
        [tool("pingpong"), "--loopback", "--iterations", "1000000000", "--max-loss", "100"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        preexec_fn=become_nobody)
    try:
        def family():
            with open(f"/proc/{nobodys.pid}/task/{nobodys.pid}/children") as file:
                return {nobodys.pid, *map(int, file.read().split())}
        wait_until(lambda: family() & set(shown("--all")[0]), "nobody's is not shown")
        devices, _, told = shown()
        check(not family() & set(devices) and told["other_users_left_out"], devices)
    finally:
        nobodys.kill()
        nobodys.wait()


class Terminal:
    """diwarp-stat on a terminal of 80 columns and 24 lines."""

    def __init__(self, *options):
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(self.slave)
        # In a group of its own that has a parent in this session: others are never stopped.
        self.process = subprocess.Popen([tool("stat"), *map(str, options)], stdin=self.slave,
                                        stdout=self.slave, stderr=self.slave,
                                        preexec_fn=lambda: os.setpgid(0, 0))
        self.output = ""

    def read(self):
        ready, _, _ = select.select([self.master], [], [], 0.1)
        if ready:
            self.output += os.read(self.master, 65536).decode()

    def wait_for(self, count, pattern):
        def there():
            self.read()
            return len(re.findall(pattern, self.output)) >= count
        wait_until(there, f"{pattern!r} did not come {count} times")

    def state(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0]

    def end(self, status, pages=1):
        def over():
            self.read()
            return self.process.poll() is not None
        try:
            wait_until(over, "diwarp-stat did not end")
            self.read()
        finally:
            self.process.kill()
        check(self.process.wait() == status, f"{self.process.returncode}: {self.output!r}")
        check(termios.tcgetattr(self.slave) == self.before, "the terminal is not as it was")
        check(self.output.count("\033[?1049h") == pages, "it entered no second page")
        last = self.output.rindex("\033[?1049l")
        check(last > self.output.rindex("PID PROGRAM"), "it did not leave its page")
        check("\033[?25h" in self.output[:last], "the cursor is gone")
        os.close(self.master)
        os.close(self.slave)
        return self.output[last:]


@case()
def screen_that_stops():
    """Ctrl-Z gives the terminal back until the process goes on."""
    with holding(block(os.getpid())):
        terminal = Terminal("--watch", 60)
        terminal.wait_for(1, rf" {os.getpid()} ")
        check(termios.tcgetattr(terminal.slave) != terminal.before, "it has no keys of its own")
        terminal.process.send_signal(signal.SIGTSTP)
        terminal.wait_for(1, r"\033\[\?25h\033\[\?1049l")
        wait_until(lambda: terminal.state() == "T", "it does not stop")
        check(termios.tcgetattr(terminal.slave) == terminal.before, "the terminal is not as it was")
        terminal.process.send_signal(signal.SIGCONT)
        terminal.wait_for(2, rf" {os.getpid()} ")
        terminal.wait_for(2, r"\033\[\?1049h\033\[\?25l")
        check(termios.tcgetattr(terminal.slave) != terminal.before, "the keys are not its own again")
        terminal.process.send_signal(signal.SIGHUP)
        terminal.end(128 + signal.SIGHUP, pages=2)


@case()
def screen_that_is_too_short():
    """It says how much is missing."""
    with contextlib.ExitStack() as stack:
        for device in range(1, 21):
            stack.enter_context(holding(block(os.getpid(), device=device)))
        terminal = Terminal(os.getpid(), "--watch", 60)
        terminal.wait_for(1, r"more lines")
        page = re.sub(r"\033\[[?0-9]*[a-zA-Z]", "", terminal.output.split("\033[H")[1]).split("\r\n")
        whole = len(run("stat", os.getpid(), "--once").stdout.splitlines())
        check(len(page) == 24 and page[-1] == f"{whole - 23} more lines", page)
        os.write(terminal.master, b"q")
        terminal.end(0)


@case(("q",), ("interrupt",), ("hangup",))
def screen(ending):
    """A page that is drawn again and again, until the user ends it; the terminal is as before."""
    end, _ = start_endless("pingpong", "--transport", "ud")
    pid = end.process.pid
    wait_until(lambda: pid in shown()[0], "the process is not shown")
    terminal = Terminal("--watch", 0.1)
    terminal.wait_for(3, rf" {pid} diwarp-ping")
    pages = terminal.output.split("\033[H")[1:]
    for page in pages[:2]:
        lines = re.sub(r"\033\[[?0-9]*[a-zA-Z]", "", page).split("\r\n")
        check(len(lines) <= 24, page)
        check_width("\n".join(lines))
    if ending == "q":
        os.write(terminal.master, b"xq")
        check(terminal.end(0).endswith("1049l"), "it says more than that it ends")
    else:
        number = signal.SIGHUP if ending == "hangup" else signal.SIGINT
        terminal.process.send_signal(number)
        check("Interrupted by the user." in terminal.end(128 + number), "no word")


@case()
def nobody_reads():
    """A watch ends when its output does."""
    process = Process("stat", "--watch", 0.05)
    process.wait_for("device")
    process.process.stdout.close()
    check(process.process.wait(timeout=PATIENCE) == 128 + signal.SIGPIPE, process.process.returncode)


@case()
def wrong_options():
    for options, words in ((("--json", "--prometheus"), "choose"),
                           (("--once", "--watch", 1), "contradicts"),
                           (("--once", "--count", 1), "contradicts"),
                           (("--prometheus", "--watch", 1), "scraper"),
                           (("--watch", 0), "seconds"), (("--watch", -1), "seconds"),
                           (("--watch", "nan"), "seconds"), (("--watch", 1e9), "seconds"),
                           (("--watch", "soon"), "--watch"),
                           (("0",), "above 0"), (("word",), "PID")):
        check_sentence("stat", run("stat", *options, status=1).stderr, words)


if __name__ == "__main__":
    sys.exit(main())
