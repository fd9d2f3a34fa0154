# SPDX-License-Identifier: Apache-2.0
"""Runs an experiment: at each point its lanes in turn, round after round, until they settle."""
import contextlib
import os
import random
import subprocess

from .basics import Refusal, Skipped
from .experiment import counted
from .networks import NETWORKS, OPTIONS, refuse_hosts, refuse_unable, why_no_namespaces
from .output import NOT_ENDED
from .quantities import short
from .scene import Scene
from .work import Failed, Stage, matches

FALLBACKS = ("built-in", "loopback")  # where no namespaces can be had
SHAPES = ("mtu", "rate", "queue")  # without these a network still loses what it is to lose
LOSING = ("loss", "every", "corrupt")  # with these it is no surprise that nothing arrives
GIVE_UP_CELL = 2  # failures of a lane at a point, after which it is left alone there
GIVE_UP_LANE = 2  # points in a row at which it always failed, after which it is left alone


class NotIntended(Skipped):
    """The experiment itself leaves a lane out at a point."""


class Networks:
    """Finds and makes the networks that lanes want; notes what was used in place of what."""

    def __init__(self, wanted, explicit, asked=None):
        """`explicit`: chosen by the user, who has it or a refusal. `asked` are the options that the
        user set, as opposed to the experiment; None: all."""
        self.wanted, self.explicit, self.asked = wanted, explicit, asked
        self.notes, self._no_namespaces = [], None

    def no_namespaces(self):
        """Why there are none here; "" if there are."""
        if self._no_namespaces is None:
            self._no_namespaces = why_no_namespaces()
        return self._no_namespaces

    def candidates(self, lane):
        names = [lane.network] if lane.network else list(self.wanted)
        if not self.explicit:
            names += [name for name in FALLBACKS if name not in names]
        return names

    def open(self, lane, settings, seed, hosts, stack):
        """The first network of those wanted that can be made. Skipped with the reasons if none."""
        reasons = []
        for name in self.candidates(lane):
            try:
                made = self.make(name, self.fitting(name, settings), seed, hosts, stack)
            except (Skipped, Refusal, AssertionError, OSError) as error:
                reason = " ".join(str(error).split())
                if self.explicit and not lane.network:
                    raise Refusal(reason) from error
                reasons.append(f"{name}: {reason}")
                continue
            if reasons:
                self.note(f"The network {name} is used: " + "; ".join(reasons))
            return made
        raise Skipped("no network can be had: " + "; ".join(reasons))

    def fitting(self, name, settings):
        """The settings; of a network that nobody asked for, without those that only shape it; of
        one that the user chose, without those of the experiment that it cannot do."""
        unable = unable_of(name, settings)
        if self.explicit and name in self.wanted:
            left_out = [option for option in unable if not self.is_asked(option)]
        elif name in self.wanted or name not in FALLBACKS:
            return settings
        else:
            left_out = [option for option in unable if option in SHAPES]
        if left_out:
            self.note(f"The network {name} leaves out: {', '.join(left_out)}")
        return {option: value for option, value in settings.items() if option not in left_out}

    def is_asked(self, option):
        return self.asked is None or option in self.asked

    def possible(self, points, overrides):
        """Of the points of an experiment those that a network which the user chose can be asked
        for. Refusal where there are none, and where it cannot do what the user set."""
        if not self.explicit:
            return points
        name = self.wanted[0]
        refuse_unable(name, overrides)
        for point in points:
            refuse_unable(name, {option: point[option] for option in unable_of(name, point)
                                 if self.is_asked(option)})
        kept = [point for point in points if not unable_of(name, point)]
        if points and not kept:
            refuse_unable(name, network_settings_in(points[0]))
        if len(kept) < len(points):
            lacking = dict.fromkeys(option for point in points
                                    for option in unable_of(name, point))
            self.note(f"The network {name} has no {', '.join(lacking)}: the points that need it "
                      "are left out")
        return kept

    def check_hosts(self, hosts):
        """Refusal where the network that the user chose has not so many."""
        if self.explicit:
            refuse_hosts(self.wanted[0], hosts)

    def make(self, name, settings, seed, hosts, stack):
        refuse_unable(name, settings)
        refuse_hosts(name, hosts)
        kind = NETWORKS[name]
        if not kind.needs_namespaces:
            return kind(None, settings, seed, hosts)
        if self.no_namespaces():
            raise Skipped("there are no network namespaces here, without root or user namespaces "
                          f"({self.no_namespaces()})")
        user = os.geteuid()
        with contextlib.ExitStack() as own:  # a network that is not made whole leaves nothing
            scene = own.enter_context(Scene(ahead=False))
            if user != 0:
                bring_loopback_up()
            made = kind(scene, settings, seed, hosts)
            stack.push(own.pop_all())
        return made

    def note(self, text):
        if text not in self.notes:
            self.notes.append(text)


def bring_loopback_up():
    """Who became root in namespaces of its own is in a new network, without a loopback."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=False, capture_output=True)


def unable_of(name, settings):
    """The options of a network that these ask for and this one has not."""
    return [option for option, value in settings.items()
            if value and option in OPTIONS and option not in NETWORKS[name].can]


def network_settings_in(point):
    return {name: value for name, value in point.items() if name in OPTIONS}


def network_settings(experiment, point, overrides):
    """What a network is asked for at a point; zero asks for nothing."""
    return {**experiment.settings, **overrides, **network_settings_in(point)}


def describe(point):
    return " ".join(f"{name} {short(value)}" for name, value in point.items()) or "one point"


class Runner:
    """One run of one experiment. Rows go to the results and to the output as they come."""

    def __init__(self, experiment, results, output, networks, progress, rounds, seed,
                 overrides=None, limit=None, volume=1 << 20):
        self.experiment, self.results, self.output = experiment, results, output
        self.networks, self.progress, self.rounds = networks, progress, rounds
        self.seed, self.overrides, self.limit = seed, overrides or {}, limit
        self.volume = volume
        self.barren = {}  # lane: points in a row at which it failed always

    def run(self):
        for settings, points in self.groups():
            self.hosts = self.experiment.hosts([point for _, point in points])
            with contextlib.ExitStack() as stack:
                made = {}  # of this group: network by the lane's choice
                for index, point in points:
                    self.run_point(index, point, settings, made, stack)
                    self.output.write_json(self.results, False, NOT_ENDED)

    def groups(self):
        """(settings, [(index, point)]): points that share their networks."""
        found = []
        for index, point in enumerate(self.results.points()):
            settings = network_settings(self.experiment, point, self.overrides)
            for other, points in found:
                if other == settings:
                    points.append((index, point))
                    break
            else:
                found.append((settings, [(index, point)]))
        return found

    def run_point(self, index, point, settings, made, stack):
        self.progress.point(describe(point))
        lanes = {}
        for lane in self.experiment.lanes:
            try:
                lanes[lane.name] = (lane, self.stage(lane, point, settings, made, stack))
            except Skipped as reason:
                self.results.obstacles[lane.name, index] = str(reason)
                if isinstance(reason, NotIntended):
                    self.results.intended.add((lane.name, index))
        for _ in range(self.rounds.warmup):
            self.turn(lanes, point, 0)
        failures = dict.fromkeys(lanes, 0)
        for number in range(1, self.rounds.most + 1):
            left = {name: one for name, one in lanes.items()
                    if failures[name] < GIVE_UP_CELL and not self.is_over(name, point, number)}
            if not left:
                break
            for name in self.turn(left, point, number):
                failures[name] += 1
        for name in lanes:
            barren = not any(row["status"] == "ok" for row in self.results.of(name, point))
            self.barren[name] = self.barren.get(name, 0) + 1 if barren else 0
        self.progress.over(len(self.experiment.lanes))

    def is_over(self, name, point, number):
        return number > self.rounds.least and \
            self.results.is_settled(name, point, self.rounds.settle)

    def stage(self, lane, point, settings, made, stack):
        """Where a lane runs at a point. Skipped if it cannot."""
        if not matches(point, lane.only):
            raise NotIntended(f"it is for other values of {', '.join(lane.only)}")
        if self.barren.get(lane.name, 0) >= GIVE_UP_LANE:
            raise Skipped("it failed at the points before")
        if lane.network not in made:
            made[lane.network] = self.networks.open(lane, settings, self.seed, self.hosts, stack)
        network = made[lane.network]
        whole = counted({**self.experiment.settings, **self.overrides, **point}, self.volume)
        stage = Stage(network, whole, self.limit)
        obstacle = lane.work.obstacle(stage)
        if obstacle:
            raise Skipped(obstacle)
        if network.environment and lane.work.streams():
            raise Skipped("the network built-in impairs datagrams alone, and this runs over TCP")
        return stage

    def turn(self, lanes, point, number):
        """Each lane once; the names of those that failed. Round 0 does not count."""
        failed = []
        for name, (lane, stage) in lanes.items():
            self.progress.show(f"{describe(point)}, round {number} of at most {self.rounds.most}, "
                               f"{name}")
            row = self.once(lane, stage, point, number)
            if row["status"] != "ok":
                failed.append(name)
            if number:
                self.results.add(row)
                self.output.write_row(row)
        return failed

    def once(self, lane, stage, point, number):
        network = stage.network
        network.reseed(self.seed_of(lane.name, number))
        row = {"lane": lane.name, "point": point, "network": network.name, "round": number,
               "status": "ok", "why": "", "values": {}}
        before, dropped = network.counted(), network.dropped()
        try:
            measured = lane.work.run(stage)
        except Failed as reason:
            row.update(status="failed", why=str(reason))
            return row
        row["values"] = {value.name: pick(value, measured) for value in self.experiment.values}
        if not any(value is not None for value in row["values"].values()):
            row.update(status="failed", why="its rows have none of the experiment's values")
        self.count(row, network, before, measured)
        if row["status"] == "ok" and came_to_nothing(point, measured) and \
                not self.lost_any(row, network, dropped, measured):
            row.update(status="failed", why="nothing valid arrived, though no loss was asked for "
                                            "and none was counted")
        return row

    @staticmethod
    def lost_any(row, network, before, measured):
        """Whether packets were, or may have been, lost on purpose or for want of room."""
        if any(network.get(name) for name in LOSING) or row.get("net_lost"):
            return True
        return network.dropped() != before or any(columns(measured, "overflowed"))

    def count(self, row, network, before, measured):
        if network.counts_rows and (impaired := columns(measured, "offered", "impaired")):
            offered, lost = sum(impaired), sum(columns(measured, "dropped", "impaired"))
        elif before is not None:
            offered, lost = (now - then for now, then in zip(network.counted(), before))
        else:
            return
        row.update(net_offered=offered, net_lost=lost)
        self.results.count(network.name, network.get("loss"), offered, lost)

    def seed_of(self, lane, number):
        """The same for the same run, lane and round."""
        return random.Random(f"{self.seed} {lane} {number}").randrange(1, 1 << 40)


def columns(row, name, within=""):
    """The numbers of this name, of whichever part of a lane's work; only those within an object, if
    that is named."""
    return [value for column, value in row.items()
            if (path := column.removesuffix(".sum").split("."))[-1] == name
            and (not within or path[-2:-1] == [within]) and isinstance(value, (int, float))]


def came_to_nothing(point, row):
    """Whether a row counts valid bytes, and has none of messages that have some."""
    valid = columns(row, "valid_bytes")
    return bool(valid) and not any(valid) and point.get("size") != 0


def pick(value, row):
    """The first of a value's columns that the row has as a number."""
    for column in value.columns:
        found = row.get(column)
        if isinstance(found, (int, float)) and not isinstance(found, bool):
            return found
    return None
