# SPDX-License-Identifier: Apache-2.0
"""Experiments: their parts, and the words in which an experiment's file names them.

A file is Python. The words below are there without an import; docs/lab.md tells what each takes.
Whatever is wrong with a file is a Mistake that names the file's line.
"""
import itertools
import os
import sys
import traceback
from dataclasses import dataclass, field

from . import work
from .basics import Refusal
from .networks import NETWORKS, setting
from .points import (Wrong, above, is_number, number_or_text, point_values, upto, wanted_values,
                     whole_number)
from .quantities import parse_number

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "experiments")
BETTER = ("higher", "lower", "neither")


class Mistake(Refusal):
    """A mistake in an experiment's file."""

    def __init__(self, path, line, text):
        super().__init__(f"{path}:{line}: {text}")
        self.line = line


@dataclass
class Value:
    """A number that rows have, and that is plotted and compared."""
    name: str
    columns: tuple
    unit: str
    better: str
    line: int


@dataclass
class Lane:
    """One way to do what all lanes do."""
    name: str
    work: object
    network: str
    only: dict
    line: int


@dataclass
class Figure:
    name: str
    y: str
    x: str
    per: str
    where: dict
    title: str
    line: int


@dataclass
class Published:
    """A number that was published, how the one here is computed, and why they differ."""
    title: str
    published: str
    here: object
    why: str
    line: int


@dataclass
class Rounds:
    least: int = 5
    most: int = 15
    settle: float = 5.0  # percent, as settled() has it
    warmup: int = 1


@dataclass
class Experiment:
    name: str
    path: str
    title: str = ""
    text: str = ""
    networks: tuple = ("loopback",)
    settings: dict = field(default_factory=dict)
    points: dict = field(default_factory=dict)
    quick_points: dict = field(default_factory=dict)
    added: list = field(default_factory=list)  # those of the points that its file has not
    volumes: tuple = (1 << 24, 1 << 20)  # bytes of a run and of a quick one, for {count}
    rounds: Rounds = field(default_factory=Rounds)
    quick_rounds: Rounds = field(default_factory=lambda: Rounds(least=2, most=2, warmup=0))
    values: list = field(default_factory=list)
    lanes: list = field(default_factory=list)
    figures: list = field(default_factory=list)
    published: list = field(default_factory=list)
    missing: list = field(default_factory=list)
    combined: list = field(default_factory=list)
    combined_rounds: Rounds = None  # of each of these, in place of its own

    def point_list(self, quick):
        """A dictionary for each combination of what varies; the last name varies fastest."""
        varying = {**self.points, **self.quick_points} if quick else self.points
        return [dict(zip(varying, combination))
                for combination in itertools.product(*varying.values())]

    def value(self, name):
        return next(value for value in self.values if value.name == name)

    def hosts(self, points):
        """How many a network has that serves all lanes at all points."""
        return max((lane.work.hosts(point) for lane in self.lanes for point in points), default=2)


LEAST_COUNT, MOST_COUNT = 10, 20000  # messages


def counted(point, volume):
    """A point with {count}: how many messages of its size make the volume."""
    if "size" not in point:
        return point
    count = int(volume) // max(int(point["size"]), 1)
    return {**point, "count": min(max(count, LEAST_COUNT), MOST_COUNT)}


def line_here():
    """The line of the experiment's file that uses a word: its caller's caller."""
    return sys._getframe(2).f_lineno


class Words:
    """The words of one file, which fill one experiment."""

    def __init__(self, experiment):
        self.experiment = experiment

    def all(self):
        own = {name: getattr(self, name) for name in (
            "network", "points", "quick_points", "volume", "rounds", "quick_rounds", "value",
            "lane", "figure", "published", "missing", "combine")}
        return {**own, **work.WORDS, "change": change, "upto": upto, "above": above}

    def network(self, *names, **settings):
        for name in names:
            if name not in NETWORKS:
                raise Wrong(f"there is no network {name!r}, but {', '.join(NETWORKS)}")
        self.experiment.networks = names or self.experiment.networks
        self.experiment.settings = {name: setting(name, text) for name, text in settings.items()}

    def points(self, **lists):
        for name in lists:
            refuse_reserved(name)
        self.experiment.points = {name: point_values(name, values)
                                  for name, values in lists.items()}

    def quick_points(self, **lists):
        for name in lists:
            if name not in self.experiment.points:
                raise Wrong(f"quick_points() has {name!r}, which points() before it has not")
        self.experiment.quick_points = {name: point_values(name, values)
                                        for name, values in lists.items()}

    def volume(self, normal, quick="1M"):
        """Bytes of a run, which make {count} of {size}."""
        self.experiment.volumes = (parse_number(normal), parse_number(quick))

    def rounds(self, least=5, most=15, settle=5.0, warmup=1):
        self.experiment.rounds = checked_rounds(Rounds(least, most, settle, warmup))

    def quick_rounds(self, least=2, most=2, settle=5.0, warmup=0):
        self.experiment.quick_rounds = checked_rounds(Rounds(least, most, settle, warmup))

    def value(self, name, *columns, unit="", better="higher"):
        if better not in BETTER:
            raise Wrong(f"better is one of {', '.join(BETTER)}, not {better!r}")
        self.refuse_second("value", name, self.experiment.values)
        refuse_reserved(name)
        need_texts("the columns of a value", columns)
        self.experiment.values.append(Value(name, columns or (name,), unit, better, line_here()))

    def lane(self, name, how, network="", only=None):
        if not isinstance(how, work.Work):
            raise Wrong(f"the lane {name!r} needs something to run: pair(...), program(...), "
                        "together(...)")
        if network and network not in NETWORKS:
            raise Wrong(f"there is no network {network!r}, but {', '.join(NETWORKS)}")
        self.refuse_second("lane", name, self.experiment.lanes)
        limits = {point: wanted_values(point, values) for point, values in (only or {}).items()}
        self.experiment.lanes.append(Lane(name, how, network, limits, line_here()))

    def figure(self, name, y, x, per="", where=None, title=""):
        self.refuse_second("figure", name, self.experiment.figures)
        if not is_file_name(name):
            raise Wrong(f"the figure {name!r} has no name of a file: no more than {LONGEST_NAME} "
                        "letters, no / and no dot at the beginning")
        chosen = {point: point_values(point, [value])[0] for point, value in (where or {}).items()}
        self.experiment.figures.append(
            Figure(name, y, x, per, chosen, title or name, line_here()))

    def published(self, title, number, here, why=""):
        if not callable(here):
            raise Wrong(f"{title!r} needs how it is computed here: change(...)")
        need_texts("title, number and reason of published()", (title, number, why))
        self.experiment.published.append(Published(title, number, here, why, line_here()))

    def missing(self, title, why):
        need_texts("title and reason of missing()", (title, why))
        self.experiment.missing.append((title, why))

    def combine(self, *names, rounds=None):
        line = line_here()
        self.experiment.combined.extend((name, line) for name in names)
        if rounds is not None:
            self.experiment.combined_rounds = checked_rounds(Rounds(rounds, rounds, warmup=0))

    @staticmethod
    def refuse_second(kind, name, existing):
        if not isinstance(name, str) or not name:
            raise Wrong(f"a {kind} needs a name")
        if any(one.name == name for one in existing):
            raise Wrong(f"there is a {kind} {name!r} already")


LONGEST_NAME = 60
# Columns that the table has in any case.
RESERVED = ("experiment", "network", "lane", "round", "status", "why", "net_offered", "net_lost")


def refuse_reserved(name):
    if name in RESERVED:
        raise Wrong(f"{name!r} is a column that every table has: choose another name")


def need_texts(what, values):
    for value in values:
        if not isinstance(value, str):
            raise Wrong(f"{what} are texts, not {value!r}")


def is_file_name(name):
    """Whether a figure may have it: its pictures are files of this name."""
    return len(name) <= LONGEST_NAME and name.isprintable() and "/" not in name and \
        not name.startswith(".")


def checked_rounds(rounds):
    if not all(isinstance(number, int) for number in (rounds.least, rounds.most, rounds.warmup)) or \
            not 1 <= rounds.least <= rounds.most <= 1000 or not 0 <= rounds.warmup <= 100:
        raise Wrong("rounds need 1 <= least <= most <= 1000, and 0 to 100 for a warm-up")
    if not is_number(rounds.settle) or not 0 <= rounds.settle <= 100:
        raise Wrong(f"rounds settle within 0 to 100 percent, not {rounds.settle!r}")
    return rounds


def check_counts(experiment, lane):
    """What a lane takes for a number of programs."""
    for name in lane.work.counts():
        for value in experiment.points.get(name, []) + experiment.quick_points.get(name, []):
            try:
                whole_number(name, value)
            except Wrong as error:
                raise Wrong(f"the lane {lane.name!r} counts by {name}: {error}", lane.line)


def check_whole(experiment):
    """What can be seen only when the file has been read to its end."""
    if experiment.lanes and experiment.combined:
        raise Wrong("a file has lanes, or combines experiments that have some", experiment.lanes[0].line)
    if not experiment.lanes and not experiment.combined:
        raise Wrong("there is no lane: name at least one, as in lane(\"ud\", pair(...))", 1)
    values = [value.name for value in experiment.values]
    for lane in experiment.lanes:
        known = {**experiment.points, **experiment.settings}
        if "size" in known:
            known["count"] = None
        for name in lane.work.placeholders():
            if name not in known:
                what = "which takes a size in points()" if name == "count" else \
                    "which is in no points()"
                raise Wrong(f"the lane {lane.name!r} uses {{{name}}}, {what}", lane.line)
        check_counts(experiment, lane)
        for name in (name for only in (lane.only, *lane.work.limits()) for name in only):
            if name not in experiment.points:
                raise Wrong(f"the lane {lane.name!r} is only for some {name!r}, which is in no "
                            "points()", lane.line)
    for figure in experiment.figures:
        if figure.y not in values:
            raise Wrong(f"the figure {figure.name!r} shows {figure.y!r}, which is no value()",
                        figure.line)
        for name in (figure.x, figure.per, *figure.where):
            if name and name != "lane" and name not in experiment.points:
                raise Wrong(f"the figure {figure.name!r} has {name!r}, which is in no points()",
                            figure.line)
    for one in experiment.published:
        for name in getattr(one.here, "values", ()):
            if name not in values:
                raise Wrong(f"{one.title!r} compares {name!r}, which is no value()", one.line)
        for name in getattr(one.here, "lanes", ()):
            if name not in [lane.name for lane in experiment.lanes]:
                raise Wrong(f"{one.title!r} compares {name!r}, which is no lane()", one.line)
    if experiment.lanes and not values:
        raise Wrong("there is no value: name what is measured, as in value(\"latency\", "
                    "\"half_rtt_us.p50\")", 1)


def load(path):
    """The experiment of a file. Mistake where it is wrong."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise Refusal(f"The experiment {path} cannot be read: {error}.")
    experiment = Experiment(os.path.splitext(os.path.basename(path))[0], path)
    names = Words(experiment).all()
    try:
        exec(compile(text, path, "exec"), names)
        check_whole(experiment)
    except SyntaxError as error:
        raise Mistake(path, error.lineno or 1, error.msg)
    except (Wrong, ValueError) as error:
        raise Mistake(path, getattr(error, "line", None) or line_in(path, error), str(error))
    except SystemExit as error:
        raise Mistake(path, line_in(path, error),
                      f"sys.exit({error.code!r}) would end the lab: an experiment only describes")
    except Exception as error:
        raise Mistake(path, line_in(path, error), f"{type(error).__name__}: {error}")
    about = (names.get("__doc__") or experiment.name).strip()
    experiment.title, _, experiment.text = (part.strip() for part in about.partition("\n"))
    return experiment


def line_in(path, error):
    """The last line of the file that led to an error."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__)
             if frame.filename == path]
    return lines[-1] if lines else 1


def names():
    """Those of the experiments that come with the lab."""
    return sorted(name[:-3] for name in os.listdir(FOLDER)
                  if name.endswith(".py") and not name.startswith("_"))


def find(name):
    """The file of an experiment that is named, or whose path is given."""
    if name.endswith(".py") or os.sep in name:
        return name
    if name not in names():
        raise Refusal(f"There is no experiment {name}: there are {', '.join(names())}, and files "
                      "that end in .py.")
    return os.path.join(FOLDER, name + ".py")


# What published() computes from results: functions of the results, with what they compare.

def mean(numbers):
    return sum(numbers) / len(numbers)


def change(value, lane, against, times=1, take=mean, **at):
    """By how many percent the lane's median differs from that of the lane `against`, times a
    number: the mean (or max, min) over the points that `at` leaves. A function of the results;
    None where there are none."""
    if not is_number(times) or times == 0:
        raise Wrong(f"times is a number other than 0, not {times!r}")
    if not callable(take):
        raise Wrong(f"take is a function of numbers, such as max, not {take!r}")
    chosen = {name: limit if hasattr(limit, "__contains__") and not isinstance(limit, str)
              else (number_or_text(limit),) for name, limit in at.items()}

    def compute(results):
        pairs = [(results.median(value, lane, point), results.median(value, against, point))
                 for point in results.points()
                 if all(point.get(name) in limit for name, limit in chosen.items())]
        changes = [100 * (ours / theirs / times - 1) for ours, theirs in pairs
                   if ours is not None and theirs]
        return take(changes) if changes else None

    compute.values, compute.lanes = (value,), (lane, against)
    return compute
