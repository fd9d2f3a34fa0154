# SPDX-License-Identifier: Apache-2.0
"""The results of one experiment: rows as they come, and what figures and reports ask of them."""
import copy

from .summaries import settled, summary


class Results:
    """Rows of values by lane and point, and what could not be measured."""

    def __init__(self, experiment, points):
        self.experiment, self._points = experiment, points
        self.rows = []  # {"lane", "point", "network", "round", "status", "why", values ...}
        self.obstacles = {}  # (lane, index of the point): why it was not run
        self.intended = set()  # those obstacles that are the experiment's own, by `only`
        self.counts = {}  # (network, asked percent): [offered, lost]

    def points(self):
        return self._points

    def within(self, fixed):
        """The same results at those of the points that have these values."""
        part = copy.copy(self)
        part._points = [point for point in self._points if fixed.items() <= point.items()]
        return part

    def add(self, row):
        self.rows.append(row)

    def of(self, lane, point):
        return [row for row in self.rows if row["lane"] == lane and row["point"] == point]

    def values(self, name, lane, point):
        return [row["values"][name] for row in self.of(lane, point)
                if row["status"] == "ok" and row["values"].get(name) is not None]

    def summary(self, name, lane, point):
        return summary(self.values(name, lane, point))

    def median(self, name, lane, point):
        found = self.summary(name, lane, point)
        return found["median"] if found else None

    def is_settled(self, lane, point, percent):
        """Of every value that the lane has; the first of the experiment's decides where a
        percentile at the far end would never settle."""
        first = self.experiment.values[0].name
        return settled(self.values(first, lane, point), percent)

    def is_whole(self):
        """Whether all was measured that the experiment wants."""
        return bool(self.rows) and all(row["status"] == "ok" for row in self.rows) and \
            set(self.obstacles) <= self.intended

    def count(self, network, asked, offered, lost):
        total = self.counts.setdefault((network, asked), [0, 0])
        total[0] += offered
        total[1] += lost

    def cells(self):
        """What the JSON has: one entry for each lane and point."""
        for index, point in enumerate(self._points):
            for lane in self.experiment.lanes:
                rows = self.of(lane.name, point)
                yield {"lane": lane.name, "point": point,
                       "network": rows[0]["network"] if rows else None,
                       "not_run": self.obstacles.get((lane.name, index)),
                       "rounds": sum(row["status"] == "ok" for row in rows),
                       "failures": [row["why"] for row in rows if row["status"] != "ok"],
                       "values": {value.name: {**found, "rounds": self.values(
                           value.name, lane.name, point)}
                                  for value in self.experiment.values
                                  if (found := self.summary(value.name, lane.name, point))}}
