# SPDX-License-Identifier: Apache-2.0
"""What lanes do: programs that run between the hosts of a network, and the rows that they print.

A Work has `run(stage)`, which returns one row, a flat dictionary, or raises Failed with a sentence;
and says in `obstacle(stage)` why it cannot run, before anything is tried."""
import copy
import json
import math
import os
import re
import select
import shlex
import string
import subprocess
import sys
import tempfile
import time

from .basics import printable, where
from .points import is_number, wanted_values
from .scene import end_with

OUTPUT_LIMIT = 16 << 20  # bytes that a program may print
LIMIT = 60  # seconds that a program may take, unless its lane says otherwise
PROBE_LIMIT = 20  # seconds of these for --help
HERE = os.path.dirname(os.path.abspath(__file__))


class Failed(Exception):
    """Why one run of a lane came to nothing, in a sentence; it may have a program's words."""

    def __init__(self, text):
        super().__init__(printable(text))


class NotThere(Failed):
    """There is no such program."""


def flat(value, prefix=""):
    """{"half_rtt_us": {"p50": 1}} is {"half_rtt_us.p50": 1}. Lists are left out."""
    found = {}
    for name, inner in value.items():
        if isinstance(inner, dict):
            found.update(flat(inner, f"{prefix}{name}."))
        elif not isinstance(inner, list):
            found[prefix + name] = inner
    return found


def placeholders_in(text):
    """The names in an option text; ValueError where it is none."""
    if not isinstance(text, str):
        raise ValueError(f"options are a text, not {text!r}")
    try:
        parts = [part for part in string.Formatter().parse(text) if part[1] is not None]
        shlex.split(text)
    except ValueError as error:
        raise ValueError(f"{text!r} cannot be read as options: {error}")
    for _, name, form, conversion in parts:
        if not name.isidentifier() or form or conversion:
            raise ValueError(f"{text!r}: braces have the name of a point, as in {{size}}, and "
                             "nothing else")
    return [name for _, name, _, _ in parts]


def write_option(value):
    return f"{value:g}" if isinstance(value, float) else str(value)


def fill(text, point):
    """The words of an option text, with the point's values in place of {name}."""
    values = {name: write_option(value) for name, value in point.items()}
    try:
        return shlex.split(text.format(**values))
    except ValueError as error:
        raise Failed(f"{text.format(**values)!r} cannot be read as options: {error}")


class Stage:
    """Where a Work runs: a network's hosts, a point, and how long it may take."""

    def __init__(self, network, point, limit=None):
        self.network, self.point, self.limit = network, point, limit

    def space(self, host):
        return self.network.hosts[host].space

    def address(self, host):
        return self.network.hosts[host].address


class Running:
    """A program that runs, for at most so many seconds; its output is kept up to a limit."""

    def __init__(self, words, space=None, environment=None, limit=LIMIT):
        self.name = os.path.basename(words[0])
        if self.name.startswith("python") and len(words) > 3:
            self.name = words[3]
        self.deadline, self.limit = time.monotonic() + limit, limit
        self.output, self.errors = bytearray(), tempfile.TemporaryFile()
        parent = os.getpid()

        def prepare():
            if space:
                space.enter(parent)
            else:
                end_with(parent)

        try:
            self.process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.errors,
                env={**os.environ, **(environment or {})}, preexec_fn=prepare)
        except OSError as error:
            self.errors.close()
            kind = NotThere if isinstance(error, FileNotFoundError) else Failed
            raise kind(f"{self.name} cannot be started: {error.strerror}")

    def read_some(self, purpose="end"):
        """False at the end of its output. The purpose is told where it takes too long."""
        left = self.deadline - time.monotonic()
        ready, _, _ = select.select([self.process.stdout], [], [], max(left, 0))
        if not ready:
            self.kill()
            raise Failed(f"{self.name} did not {purpose} within {self.limit:g} s, and was killed"
                         f"{self.said()}")
        chunk = os.read(self.process.stdout.fileno(), 1 << 16)
        self.output += chunk
        if len(self.output) > OUTPUT_LIMIT:
            self.kill()
            raise Failed(f"{self.name} printed more than {OUTPUT_LIMIT >> 20} MiB, and was killed")
        return bool(chunk)

    def wait_for(self, word):
        """What follows a word in its output."""
        while True:
            found = re.search(re.escape(word).encode() + rb" (\S+)\s", self.output)
            if found:
                return found[1].decode(errors="replace")
            if not self.read_some(f'print "{word}"'):
                raise Failed(f'{self.name} never printed "{word}", and {self.how_it_ended()[0]}'
                             f"{self.said()}")

    def how_it_ended(self):
        """(in words, whether well), within the time that it has."""
        try:
            status = self.process.wait(max(self.deadline - time.monotonic(), 1))
        except subprocess.TimeoutExpired:
            self.kill()
            return f"did not end within {self.limit:g} s, and was killed", False
        if status < 0:
            return f"was killed by signal {-status}", False
        return f"ended with status {status}", status == 0

    def finish(self):
        """All that it printed, once it has ended well."""
        while self.read_some():
            pass
        what, well = self.how_it_ended()
        if not well:
            raise Failed(f"{self.name} {what}{self.said()}")
        return self.output.decode(errors="replace")

    def said(self):
        """": " and the last line of its errors, if there is one."""
        size = self.errors.seek(0, os.SEEK_END)
        self.errors.seek(max(size - 4000, 0))
        text = self.errors.read(4000).decode(errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return f": {lines[-1]}" if lines else ""

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self.errors.close()


def json_in(name, text):
    """What a program printed as JSON. NaN and Infinity, which Python takes, are none."""
    def constant(word):
        raise Failed(f"{name} printed {word}, which is no JSON")

    def number(word):
        if not math.isfinite(float(word)):
            raise Failed(f"{name} printed {word[:60]}, which is too large a number")
        return float(word)

    def whole(word):
        number(word)
        return int(word)

    try:
        return json.loads(text, parse_constant=constant, parse_float=number,
                          parse_int=whole)
    except ValueError:
        start = text.strip()[:60]
        raise Failed(f"{name} printed {start!r}, which is no JSON" if start
                     else f"{name} printed nothing")


def rows_in(name, text):
    """The rows that a program printed: JSON, a list of objects or one object."""
    found = json_in(name, text)
    rows = found if isinstance(found, list) else [found]
    if isinstance(found, dict) and isinstance(found.get("rows"), list):
        rows = found["rows"]
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise Failed(f"{name} printed JSON that is no row and no list of rows")
    return rows


known_options = {}  # of a program: (the options that its --help names, why there are none)


def options_of(program, limit=PROBE_LIMIT):
    """The options that a program's --help names; Failed where it cannot tell."""
    if program not in known_options:
        try:
            with Running([program, "--help"], limit=limit) as probe:
                probe.name += " --help"
                known_options[program] = (set(re.findall(r"--[a-z][\w-]*", probe.finish())), None)
        except NotThere:
            known_options[program] = (None, f"there is no {os.path.basename(program)} in "
                                            f"{os.path.dirname(program) or 'PATH'}")
        except Failed as reason:
            known_options[program] = (None, str(reason))
    known, why = known_options[program]
    if why:
        raise Failed(why)
    return known


def lacking(program, texts, limit=None):
    """Why a program cannot be run with these option texts; "": it can."""
    try:
        known = options_of(program, min(limit or PROBE_LIMIT, PROBE_LIMIT))
    except Failed as reason:
        return str(reason)
    missing = [word for text in texts for word in re.findall(r"(?<!\S)--[a-z][\w-]*", text)
               if word not in known]
    return f"{os.path.basename(program)} has no {', '.join(sorted(set(missing)))}" \
        if missing else ""


def checked_limit(seconds):
    if not is_number(seconds) or not 0 < seconds <= 1e6:
        raise ValueError(f"limit is a number of seconds above 0, not {seconds!r}")
    return seconds


MOST = 16  # that a count which varies may come to, for the hosts that it takes
MOST_PROGRAMS = 1000  # that a lane may run of a kind


def checked_count(name, count):
    """A number of programs, or the name of the point that has it."""
    if isinstance(count, str) and count.isidentifier():
        return count
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_PROGRAMS:
        raise ValueError(f"{name} is a whole number from 1 to {MOST_PROGRAMS}, or the name of a "
                         f"point, not {count!r}")
    return count


def checked_ends(ends):
    if not isinstance(ends, (list, tuple)) or len(ends) != 2 or \
            not all(type(end) is int and 0 <= end < MOST for end in ends):
        raise ValueError(f"ends are the numbers of two hosts, from 0 to {MOST - 1}, not {ends!r}")
    return tuple(ends)


def checked_works(kind, parts, *unable):
    """Lanes' work, and nothing that this kind cannot run."""
    for name, part in parts.items():
        if not isinstance(part, Work):
            raise ValueError(f"{name!r} of {kind}() needs something to run: pair(...), "
                             "program(...)")
        if isinstance(part, unable):
            raise ValueError(f"{kind}() cannot run {name!r}, whose parts run one after the other")
    if not parts:
        raise ValueError(f"{kind}() needs something to run, as in {kind}(a=pair(...))")
    return parts


class Work:
    """What a lane does at a point. What its maker is given wrongly is a ValueError."""
    texts = ()
    parts = {}  # works by their names, where it is made of some

    def hosts(self, point=None):
        """How many it takes at a point; without one, at most."""
        return 2

    def placeholders(self):
        return [name for text in self.texts for name in placeholders_in(text)] + self.counts()

    def limits(self):
        """`only` of each of its parts."""
        return [limits for part in self.parts.values()
                for limits in (getattr(part, "only", {}), *part.limits())]

    def counts(self):
        """Names of the points that are numbers of programs."""
        return []

    def obstacle(self, stage):
        return ""

    def streams(self):
        """Whether it runs over TCP."""
        return any(re.search(r"--transport[ =]rc\b", text) for text in self.texts)

    def run(self, stage):
        with_begun = self.begin(stage)
        try:
            return with_begun.finish()
        finally:
            with_begun.kill()

    def begin(self, stage):
        raise NotImplementedError


SUMMED = ("mb_per_s", "messages_per_s", "valid_bytes", "received", "sent", "lost")
MEANS = ("valid_percent", "loss_percent")  # of as many messages each
# What the rows of a process have of all of it.
OF_CLIENT = ("processor.client.total_s", "impaired.offered", "impaired.dropped", "overflowed")


CLIENT_TIME, SERVER_TIME = "processor.client.total_s", "processor.server.total_s"


def bandwidth_of(rows):
    """Valid bytes of all, over the time from when the first began to when the last one ended: not all
    may have run at all of that time. 10^6 a second; None where they do not tell."""
    if not rows or not all(isinstance(one.get(name), (int, float)) for one in rows
                           for name in ("valid_bytes", "seconds", "ended_s")):
        return None
    began, ended = period_of(rows)
    valid = sum(total(one, "valid_bytes") for one in rows)
    return valid / (ended - began) / 1e6 if ended > began else None


def period_of(rows):
    """(when the first began, when the last ended), seconds of the host's clock."""
    begun = [one.get("began_s", one["ended_s"] - one["seconds"]) for one in rows]
    return min(begun), max(one["ended_s"] for one in rows)


def total(row, name):
    """Of all whose rows were merged into this one."""
    return row.get(name + ".sum", row[name])


def merge(rows, apart=()):
    """One row of the flat ones of several receivers or clients: the first one's, with sum and least
    of what adds up, and the bandwidth of all together. `apart` are columns of processes that each
    row has for itself: added up."""
    row = dict(rows[0])
    for name in MEANS:
        if all(isinstance(one.get(name), (int, float)) for one in rows):
            row[name] = sum(one[name] for one in rows) / len(rows)
    for name in SUMMED:
        if all(isinstance(one.get(name), (int, float)) for one in rows):
            row[name + ".sum"] = sum(total(one, name) for one in rows)
            row[name + ".least"] = min(one.get(name + ".least", one[name]) for one in rows)
    bandwidth = bandwidth_of(rows)
    if bandwidth is not None:
        row["mb_per_s.together"] = bandwidth
        row["began_s"], row["ended_s"] = period_of(rows)
    for name in apart:
        if all(isinstance(one.get(name), (int, float)) for one in rows):
            row[name] = sum(one[name] for one in rows)
    row["rows"] = len(rows)
    return row


def count_at(count, point):
    """A count, or the value of the point that it names."""
    if isinstance(count, str):
        return point[count] if point else MOST
    return count


class Pair(Work):
    """diwarp-TOOL: a server on the second host and on, a client on the first one."""

    def __init__(self, tool, client, server="", receivers=1, clients=1, ends=(0, 1), limit=LIMIT,
                 streams=None, only=None):
        if not isinstance(tool, str) or not tool.isidentifier():
            raise ValueError(f"a pair needs the name of a tool, such as bandwidth, not {tool!r}")
        self.tool, self.client, self.server = tool, client, server
        self.receivers = checked_count("receivers", receivers)
        self.clients = checked_count("clients", clients)
        self.ends, self.limit = checked_ends(ends), checked_limit(limit)
        self.texts = (client, server)
        self.only = {name: wanted_values(name, values) for name, values in (only or {}).items()}
        self.on_streams = streams
        self.placeholders()

    def hosts(self, point=None):
        return max(*self.ends, self.ends[1] + count_at(self.receivers, point) - 1) + 1

    def counts(self):
        return [count for count in (self.receivers, self.clients) if isinstance(count, str)]

    def streams(self):
        return super().streams() if self.on_streams is None else self.on_streams

    def program(self):
        return os.path.join(where.tools, f"diwarp-{self.tool}")

    def obstacle(self, stage):
        return lacking(self.program(), self.texts, stage.limit)

    def begin(self, stage):
        return BegunPair(self, stage)


class BegunPair:
    """Servers that listen, and clients that run."""

    def __init__(self, pair, stage):
        self.pair, self.stage, self.running = pair, stage, []
        try:
            addresses = [self.serve(pair.ends[1] + number)
                         for number in range(count_at(pair.receivers, stage.point))]
            self.servers = len(addresses)
            self.clients = [self.connect(addresses)
                            for _ in range(count_at(pair.clients, stage.point))]
        except BaseException:
            self.kill()
            raise

    def start(self, host, *words):
        running = Running([self.pair.program(), *words], self.stage.space(host),
                          self.stage.network.environment, self.stage.limit or self.pair.limit)
        self.running.append(running)
        return running

    def serve(self, host):
        """The address at which a server listens."""
        server = self.start(host, "--server", f"{self.stage.address(host)}:0",
                            *fill(self.pair.server, self.stage.point))
        return server.wait_for("listening at")

    def connect(self, addresses):
        return self.start(self.pair.ends[0], "--connect", ",".join(addresses), "--json", "-",
                          *fill(self.pair.client, self.stage.point))

    def finish(self):
        rows = [flat(row) for client in self.clients
                for row in rows_in(client.name, client.finish())]
        apart = [*OF_CLIENT] if len(self.clients) > 1 else []
        return merge(rows, apart + ([SERVER_TIME, "overflowed"] if self.servers > 1 else []))

    def goes_on(self):
        return all(client.process.poll() is None for client in self.clients)

    def kill(self):
        for running in self.running:
            with running:
                pass


class Program(Work):
    """One program on the first host, which prints rows. A name without a slash is diwarp's, if it
    begins so, else one of PATH."""

    def __init__(self, text, row=None, column="", limit=LIMIT, streams=False):
        self.text, self.row, self.column = text, row or {}, column
        self.limit, self.texts, self.on_streams = checked_limit(limit), (text,), streams
        self.placeholders()
        if not text.strip():
            raise ValueError("a program needs a name")
        if not isinstance(self.row, dict) or not isinstance(column, str):
            raise ValueError(f"a program's row is {{name: value}}, and its column a name, not "
                             f"{row!r} and {column!r}")

    def hosts(self, point=None):
        return 1

    def streams(self):
        return self.on_streams

    def words(self, point):
        words = fill(self.text, point)
        if words[0].startswith("diwarp-"):
            words[0] = os.path.join(where.tools, words[0])
        return words

    def obstacle(self, stage):
        words = self.words(stage.point)
        if "diwarp-" not in words[0]:
            return ""
        return lacking(words[0], [" ".join(words[1:])], stage.limit)

    def begin(self, stage):
        return BegunProgram(self, stage)


class BegunProgram:
    def __init__(self, program, stage):
        self.program = program
        self.running = Running(program.words(stage.point), stage.space(0),
                               stage.network.environment, stage.limit or program.limit)

    def finish(self):
        rows = rows_in(self.running.name, self.running.finish())
        wanted = self.program.row.items()
        for row in rows:
            if all(row.get(name) == value for name, value in wanted):
                return self.with_value(flat(row))
        raise Failed(f"{self.running.name} printed no row with {dict(wanted)}")

    def with_value(self, row):
        """The column that the program's Work asks for is the row's "value"."""
        if not self.program.column:
            return row
        if self.program.column not in row:
            raise Failed(f"{self.running.name} printed no {self.program.column}: "
                         f"{row.get('not_measured', 'its row has other columns')}")
        return {**row, "value": row[self.program.column]}

    def kill(self):
        with self.running:
            pass


PLAIN_KINDS = ("udp", "tcp", "count")


class Plain(Pair):
    """plain.py: sockets without diwarp, between two hosts."""

    def __init__(self, kind, options="", limit=LIMIT):
        if kind not in PLAIN_KINDS:
            raise ValueError(f"plain is one of {', '.join(PLAIN_KINDS)}, not {kind!r}")
        super().__init__(kind, options, "", limit=limit)
        self.kind = kind

    def streams(self):
        return self.kind == "tcp"

    def obstacle(self, stage):
        return ""

    def begin(self, stage):
        return BegunPlain(self, stage)


class BegunPlain(BegunPair):
    def start(self, host, *words):
        program = [sys.executable, "-B", os.path.join(HERE, "plain.py"), self.pair.kind]
        running = Running([*program, *words], self.stage.space(host), {},
                          self.stage.limit or self.pair.limit)
        self.running.append(running)
        return running


class Together(Work):
    """Several at once; the values of each have its name and a point before theirs."""

    def __init__(self, parts):
        self.parts = self.checked(parts)
        self.texts = tuple(text for part in parts.values() for text in part.texts)

    def counts(self):
        return [name for part in self.parts.values() for name in part.counts()]

    def hosts(self, point=None):
        return max(part.hosts(point) for part in self.parts.values())

    def streams(self):
        return any(part.streams() for part in self.parts.values())

    def obstacle(self, stage):
        return next((why for why in (part.obstacle(stage) for part in self.parts.values()) if why),
                    "")

    @staticmethod
    def checked(parts):
        return checked_works("together", parts, Sequence)

    def begin(self, stage):
        return BegunTogether((name, lambda part=part: part.begin(stage))
                             for name, part in self.parts.items())


class BegunTogether:
    """Works that run at once. `beginnings`: (name, what begins it)."""

    def __init__(self, beginnings):
        self.begun = []
        try:
            for name, begin in beginnings:
                self.begun.append((name, begin()))
        except BaseException:
            self.kill()
            raise

    def finish(self):
        rows = {name: one.finish() for name, one in self.begun}
        whole = {f"{name}.{column}": value for name, row in rows.items()
                 for column, value in row.items()}
        bandwidth = bandwidth_of([*rows.values()])
        return whole if bandwidth is None else {**whole, "mb_per_s.together": bandwidth}

    def kill(self):
        for _, one in self.begun:
            one.kill()


class Many(Work):
    """The same pair so many times at once, each with programs of its own. With fan "in" each client
    has a host of its own and the servers share one; with "out" the other way round."""
    FANS = {"": lambda number: (0, 1), "in": lambda number: (number + 1, 0),
            "out": lambda number: (0, number + 1)}

    def __init__(self, count, pair, fan=""):
        if not isinstance(pair, Pair):
            raise ValueError(f"many() takes a pair(...), not {pair!r}")
        if fan not in self.FANS:
            raise ValueError(f'fan is "in" or "out", not {fan!r}')
        self.count, self.pair, self.fan = checked_count("many()", count), pair, fan
        self.texts = pair.texts

    def hosts(self, point=None):
        if not self.fan:
            return 2
        return max(max(self.FANS[self.fan](n)) for n in range(count_at(self.count, point))) + 1

    def counts(self):
        return self.pair.counts() + ([self.count] if isinstance(self.count, str) else [])

    def streams(self):
        return self.pair.streams()

    def obstacle(self, stage):
        return self.pair.obstacle(stage)

    def begin(self, stage):
        return BegunMany((number, lambda number=number: self.one(number).begin(stage))
                         for number in range(count_at(self.count, stage.point)))

    def one(self, number):
        pair = copy.copy(self.pair)
        pair.ends = self.FANS[self.fan](number)
        return pair


class BegunMany(BegunTogether):
    def finish(self):
        return merge([one.finish() for _, one in self.begun], (*OF_CLIENT, SERVER_TIME))


class Beside(Work):
    """A pair beside another one, which is begun first and ended afterwards: the row is the first's,
    and the other one ran all the time."""

    def __init__(self, pair, other):
        for one in (pair, other):
            if not isinstance(one, Pair):
                raise ValueError(f"beside() takes two of pair(...) and plain(...), not {one!r}")
        self.parts = {"pair": pair, "other": other}
        self.pair, self.other = pair, other
        self.texts = pair.texts + other.texts

    def hosts(self, point=None):
        return max(self.pair.hosts(point), self.other.hosts(point))

    def counts(self):
        return self.pair.counts() + self.other.counts()

    def streams(self):
        return self.pair.streams() or self.other.streams()

    def obstacle(self, stage):
        return self.pair.obstacle(stage) or self.other.obstacle(stage)

    def run(self, stage):
        other = self.other.begin(stage)
        try:
            row = self.pair.run(stage)
            if not other.goes_on():
                raise Failed("what was to run beside it ended first")
            return row
        finally:
            other.kill()


class Sequence(Together):
    """The same, one after the other; a part with `only` at the points that it names."""

    @staticmethod
    def checked(parts):
        return checked_works("sequence", parts)

    def run(self, stage):
        return {f"{name}.{column}": value for name, part in self.parts.items()
                if matches(stage.point, getattr(part, "only", {}))
                for column, value in part.run(stage).items()}


def matches(point, only):
    """Whether a point has one of the values that each name is limited to."""
    return all(point.get(name) in wanted for name, wanted in only.items())


def pair(tool, client, server="", **more):
    return Pair(tool, client, server, **more)


def program(text, **more):
    return Program(text, **more)


def plain(kind, options="", **more):
    return Plain(kind, options, **more)


def together(**parts):
    return Together(parts)


def beside(pair, other):
    return Beside(pair, other)


def many(count, pair, fan=""):
    return Many(count, pair, fan)


def sequence(**parts):
    return Sequence(parts)


WORDS = {"pair": pair, "program": program, "plain": plain, "together": together,
         "beside": beside, "sequence": sequence, "many": many}
