#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs processes that do random RDMA operations with each other, kills, stops and limits them, and
fails with a message where a byte is wrong, something is stuck, a process ends by itself, or memory
or descriptors grow. See README.md."""
import argparse
import collections
import json
import os
import random
import selectors
import signal
import subprocess
import sys
import tempfile
import time

TURN = 0.05  # seconds
MOST_INPUT = 1 << 20  # bytes that wait for a process; more are thrown away
SILENCE = 120  # seconds in which a process that is not stopped prints a line
LIMITED = 3  # status with which a process ends that cannot go on within its limits
WARM_UP = 10  # seconds of a life that growth does not look at
LEAST_LIFE = 30  # seconds of a life that growth looks at
MEMORY_MARGIN = 24 << 20  # bytes that the second half of a life may have more than the first
DESCRIPTOR_MARGIN = 16
END = 90  # seconds in which all that is posted comes to an end
LONGEST_WAIT = 180  # seconds for what --until names; the run then ends without it


class Finding(Exception):
    pass


class Process:
    """One place of the run: a process, and after it is killed the next one."""

    def __init__(self, soak, index):
        self.soak, self.index = soak, index
        self.address = f"127.{soak.net[0]}.{soak.net[1]}.{10 + index}"
        self.process = None
        self.addresses = None

    def start(self, limits=()):
        """In a session of its own: the system ends a background job that has stopped processes when
        the shell goes that began it."""
        self.life = self.soak.next_life()
        self.limits = list(limits)
        self.addresses = None  # of its listener and queue pairs, once it told them
        self.stopped = False
        self.input, self.output = bytearray(), bytearray()
        self.rounds = []  # (seconds, resident memory, descriptors)
        self.last = {}
        self.ended = self.found = False
        self.heard = time.monotonic()
        options = ["--address", self.address, "--seed", self.soak.seed, "--index", self.index,
                   "--life", self.life, *self.soak.options, *self.limits]
        self.name = f"process {self.index} (life {self.life})"
        path = os.path.join(self.soak.folder, f"{self.index}-{self.life}")
        self.log, self.errors = open(path + ".log", "wb"), open(path + ".err", "w+b")
        self.log.write((" ".join(map(str, options)) + "\n").encode())
        self.process = subprocess.Popen([self.soak.program, *map(str, options)], bufsize=0,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors, cwd=self.soak.folder,
                                        start_new_session=True)
        os.set_blocking(self.process.stdin.fileno(), False)
        os.set_blocking(self.process.stdout.fileno(), False)

    def alive(self):
        return self.process is not None

    def ready(self):
        return self.alive() and self.addresses is not None

    def say(self, line):
        """Queues a line. One that stopped reading gets no more offers than it can hold."""
        if self.alive() and len(self.input) < MOST_INPUT:
            self.input += line.encode() + b"\n"

    def write(self):
        while self.input:
            try:
                del self.input[:os.write(self.process.stdin.fileno(), self.input[:65536])]
            except (BlockingIOError, BrokenPipeError):
                return

    def read(self):
        """The lines that it has printed since."""
        try:
            while chunk := os.read(self.process.stdout.fileno(), 1 << 20):
                self.output += chunk
        except BlockingIOError:
            pass
        *lines, rest = self.output.split(b"\n")
        self.output = bytearray(rest)
        if lines:
            self.heard = time.monotonic()
        return [line.decode(errors="replace") for line in lines]

    def stop(self, stopped):
        os.kill(self.process.pid, signal.SIGSTOP if stopped else signal.SIGCONT)
        self.stopped = stopped
        self.heard = time.monotonic()

    def end(self):
        """Afterwards there is none. Its status."""
        status = self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.log.close()
        self.errors.close()
        self.process = None
        return status

    def kill(self):
        self.process.kill()
        self.end()

    def complaint(self):
        """The end of what it printed on standard error."""
        self.errors.seek(0)
        return " ".join(self.errors.read()[-600:].decode(errors="replace").split())


class Totals:
    """What all processes did, those included that are gone."""

    def __init__(self):
        self.counts, self.verified = collections.Counter(), 0

    def add(self, last):
        self.counts.update(last.get("counts", {}))
        self.verified += last.get("verified", 0)


class Soak:
    def __init__(self, arguments, folder):
        self.seed, self.folder = arguments.seed, folder
        self.seconds = arguments.minutes * 60
        self.awaited = arguments.until.split(",") if arguments.until else []
        self.program = os.path.abspath(os.path.join(arguments.programs, "soak_peer"))
        self.random = random.Random(arguments.seed)
        self.net = 1 + self.random.randrange(250), self.random.randrange(250)
        self.calm = arguments.calm
        self.limited = not arguments.no_limits
        self.options = ["--stuck", arguments.stuck, "--round", arguments.round]
        if arguments.core:
            self.options.append("--core")
        if arguments.plant:
            self.options += ["--plant", arguments.plant]
        self.lives = 0
        self.totals = Totals()
        self.events = collections.Counter()
        self.warm_up = min(WARM_UP, self.seconds / 4)
        self.least_life = min(LEAST_LIFE, self.seconds / 2)
        self.processes = [Process(self, index) for index in range(arguments.processes)]

    def next_life(self):
        self.lives += 1
        return self.lives

    # --- What processes say.

    def hear(self, process, line):
        if line.startswith("{"):
            return self.hear_round(process, line)
        verb, _, rest = line.partition(" ")
        if verb == "ready":
            process.addresses = rest
            self.introduce(process)
        elif verb == "to":
            index, life, text = rest.split(" ", 2)
            other = self.processes[int(index)]
            if other.alive() and other.life == int(life):
                other.say(f"from {process.index} {process.life} {text}")
        else:
            raise Finding(f"{process.name} printed {line[:200]!r}")

    def hear_round(self, process, line):
        process.log.write(line.encode() + b"\n")
        word = json.loads(line)
        if "finding" in word:
            process.found = True
            raise Finding(f"{process.name}: {word['finding']}: {word['message']}")
        process.last = word
        # Where no descriptor is left to ask with, it tells 0.
        if word["resident"] and word["descriptors"]:
            process.rounds.append((word["seconds"], word["resident"], word["descriptors"]))

    def introduce(self, process):
        for other in self.processes:
            if other is process or not other.ready():
                continue
            other.say(f"peer {process.index} {process.life} {process.addresses}")
            process.say(f"peer {other.index} {other.life} {other.addresses}")
            if other.stopped:
                process.say(f"paused {other.index}")

    def tell_others(self, process, verb):
        for other in self.processes:
            if other is not process:
                other.say(f"{verb} {process.index}")

    # --- What is done to processes.

    def limits(self):
        """Of a new life: mostly none. Without peers it has 17 descriptors and 68 MiB."""
        kind = self.random.randrange(5)
        if self.calm or not self.limited or kind > 1:
            return []
        self.events["limited"] += 1
        if kind == 0:
            return ["--descriptors", self.random.randrange(9, 30)]
        return ["--address-space", self.random.randrange(56, 96) << 20]

    def kill(self, process):
        self.events["kills"] += 1
        self.close_life(process)
        self.selector.unregister(process.process.stdout)
        process.kill()
        self.tell_others(process, "gone")

    def close_life(self, process):
        self.check_growth(process)
        self.totals.add(process.last)

    def disturb(self, now):
        """A kill or a stop each few seconds. Process 0 is not killed: it has to live long."""
        if self.calm or now < self.next_disturbance:
            return
        self.next_disturbance = now + self.random.uniform(1, 6)
        process = self.random.choice(self.processes[1:])
        if self.random.random() < 0.5:
            process = self.random.choice(self.processes)
            if process.alive() and not process.stopped:
                self.events["stops"] += 1
                process.stop(True)
                self.tell_others(process, "paused")
                process.until = now + self.random.choice((0.2, 1, 2, 5, 14))
        elif process.alive() and not process.stopped and process.ready():
            self.kill(process)
            process.until = now + self.random.choice((0, 0.5, 3))

    def keep(self, now):
        for process in self.processes:
            if not process.alive():
                if now >= process.until:
                    process.start(self.limits())
                    self.watch(process)
            elif process.stopped and now >= process.until:
                self.go_on(process)
            elif not process.stopped and now - process.heard > SILENCE:
                raise Finding(f"{process.name}: stuck: it printed nothing for {SILENCE} s")

    def go_on(self, process):
        process.stop(False)
        self.tell_others(process, "running")

    # --- The run.

    def watch(self, process):
        self.selector.register(process.process.stdout, selectors.EVENT_READ, process)

    def turn(self):
        """Hears what there is to hear, and hands it on."""
        for key, _ in self.selector.select(TURN):
            process = key.data
            for line in process.read():
                self.hear(process, line)
        for process in self.processes:
            if process.alive() and not process.stopped:
                process.write()
        for process in self.processes:
            if process.alive() and process.process.poll() is not None:
                self.ended(process)

    def ended(self, process):
        for line in process.read():
            self.hear(process, line)
        complaint, limited = process.complaint(), process.limits
        self.close_life(process)
        self.selector.unregister(process.process.stdout)
        status = process.end()
        if process.ended and status == 0:
            return
        if limited and status == LIMITED:
            self.events["ended within limits"] += 1
            self.tell_others(process, "gone")
            process.until = time.monotonic() + 0.5
            return
        how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
        raise Finding(f"{process.name} {how} ({' '.join(map(str, limited)) or 'no limits'}): "
                      f"crash: {complaint}")

    def check_growth(self, process):
        """The second half of a life has not much more than the first."""
        rounds = [entry for entry in process.rounds if entry[0] >= self.warm_up]
        if not rounds or rounds[-1][0] - rounds[0][0] < self.least_life / 2:
            return
        half = (rounds[0][0] + rounds[-1][0]) / 2
        first = [entry for entry in rounds if entry[0] < half]
        second = [entry for entry in rounds if entry[0] >= half]
        if not first or not second:
            return
        for field, what, margin in ((1, "bytes of memory", MEMORY_MARGIN),
                                    (2, "descriptors", DESCRIPTOR_MARGIN)):
            before = max(entry[field] for entry in first)
            after = max(entry[field] for entry in second)
            self.events[f"most {what}"] = max(self.events[f"most {what}"], before, after)
            if after > before + margin:
                raise Finding(f"{process.name}: growth: {after} {what} in the second half of its "
                              f"life, {before} in the first")

    def run(self):
        begun = time.monotonic()
        self.next_disturbance = begun + min(5, self.seconds / 10)
        with selectors.DefaultSelector() as self.selector:
            for process in self.processes:
                process.start()
                self.watch(process)
            try:
                while self.goes_on(time.monotonic() - begun):
                    self.turn()
                    now = time.monotonic()
                    self.disturb(now)
                    self.keep(now)
                self.finish()
            finally:
                for process in self.processes:
                    if process.alive():
                        self.wait_for_core(process)
                        self.totals.add(process.last)
                        process.kill()

    def happened(self, name):
        """How often something that is counted was done by a process or to one."""
        return self.totals.counts[name] + self.events[name] + sum(
            process.last.get("counts", {}).get(name, 0) for process in self.processes
            if process.alive())

    def goes_on(self, seconds):
        if seconds < self.seconds:
            return True
        return seconds < self.seconds + LONGEST_WAIT and not all(map(self.happened, self.awaited))

    def wait_for_core(self, process):
        deadline = time.monotonic() + 30
        while process.found and "--core" in self.options and process.process.poll() is None and \
                time.monotonic() < deadline:
            time.sleep(TURN)

    def finish(self):
        """All that is posted ends; then the processes do."""
        for process in self.processes:
            if process.alive() and process.stopped:
                self.go_on(process)
            process.say("end")
        self.wait_until(lambda process: process.last.get("ending") and
                        process.last.get("posted") == 0, "has not ended what it posted")
        for process in self.processes:
            process.ended = True
            process.say("close")
        self.wait_until(lambda process: False, "does not end")

    def wait_until(self, condition, what):
        deadline = time.monotonic() + END
        while True:
            waiting = [process for process in self.processes
                       if process.alive() and not condition(process)]
            if not waiting:
                return
            if time.monotonic() > deadline:
                raise Finding(f"{waiting[0].name}: stuck: it {what} within {END} s: "
                              f"{waiting[0].last}")
            self.turn()

    def summary(self):
        counts = self.totals.counts
        rows = sorted((name[5:], count) for name, count in counts.items()
                      if name.startswith("done."))
        print("operations, and how many of them failed:")
        for name, count in rows:
            failed = sum(value for key, value in counts.items()
                         if key.startswith(f"failed.{name}."))
            print(f"  {name:26} {count:10} {failed:8}")
        print(f"receives that were shared: {counts['shared']}; windows: {counts['windows']}")
        print(f"verified: {self.totals.verified} bytes; connections: {counts['connections']}; "
              f"regions: {counts['regions']}, ended in use: "
              f"{counts['regions-ended-in-use'] + counts['buffers-ended-in-use']}")
        print(f"refused when posted: {counts['refused.posting']}; kills: {self.events['kills']}; "
              f"stops: {self.events['stops']}; with limits: {self.events['limited']}, "
              f"ended by them: {self.events['ended within limits']}")
        print(f"most memory: {self.events['most bytes of memory'] >> 20} MiB; most descriptors: "
              f"{self.events['most descriptors']}")


def parse():
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=3, help="how long (default: 3)")
    parser.add_argument("--until", metavar="NAME,...",
                        help="goes on after that, for some minutes at most, until all of this has "
                             "happened: kills, stops, or a count of the logs (done.rc.write)")
    parser.add_argument("--seed", type=int, help="of everything random (default: a new one)")
    parser.add_argument("--programs", metavar="DIR", required=True, help="where soak_peer is")
    parser.add_argument("--processes", type=int, default=4, help="2 to 8 (default: 4)")
    parser.add_argument("--stuck", type=float, default=60,
                        help="seconds that an operation may take while all run (default: 60)")
    parser.add_argument("--round", type=float, default=1,
                        help="seconds between two lines of a process (default: 1)")
    parser.add_argument("--calm", action="store_true", help="kills, stops and limits nothing")
    parser.add_argument("--no-limits", action="store_true",
                        help="limits no process: sanitizers need memory and descriptors")
    parser.add_argument("--logs", metavar="DIR", help="where the lines of the processes go")
    parser.add_argument("--core", action="store_true",
                        help="a process that finds something ends with a core dump (ulimit -c)")
    parser.add_argument("--plant", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not 2 <= arguments.processes <= 8:
        parser.error("--processes: 2 to 8")
    if arguments.seed is None:
        arguments.seed = random.SystemRandom().randrange(1 << 31)
    return arguments


def main():
    arguments = parse()
    sys.stdout.reconfigure(line_buffering=True)  # what it found stands there if it is killed
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # kills the processes
    folder = arguments.logs or tempfile.mkdtemp(prefix="diwarp-soak-")
    os.makedirs(folder, exist_ok=True)
    print(f"seed {arguments.seed}, {arguments.minutes:g} minutes, logs in {folder}", flush=True)
    soak = Soak(arguments, folder)
    begun = time.monotonic()
    try:
        soak.run()
    except Finding as finding:
        soak.summary()
        print(f"FOUND after {time.monotonic() - begun:.0f} s: {finding}")
        print(f"(--seed {arguments.seed}; logs in {folder})")
        return 1
    soak.summary()
    print("nothing found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
