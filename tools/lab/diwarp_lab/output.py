# SPDX-License-Identifier: Apache-2.0
"""Files of a run: results.csv grows with each row, results.json is replaced as a whole, so a run
that is killed leaves both readable. docs/lab.md documents them; schema.json is the JSON's."""
import contextlib
import csv
import errno
import json
import os

from .basics import Refusal
from .points import combinations, is_number
from .quantities import short

SCHEMA = 1
NOT_ENDED = "the run had not ended"


def refuse_results_in(folder):
    if any(os.path.exists(os.path.join(folder, name)) for name in ("results.csv", "results.json")):
        raise Refusal(f"{folder} has results already: name another folder with --out, or move them "
                      "away.")


class Output:
    """The folder of one run."""

    def __init__(self, folder, run, experiment):
        self.folder, self.run, self.experiment = folder, run, experiment
        self.made = not os.path.exists(folder)
        with told(folder):
            os.makedirs(folder, exist_ok=True)
            refuse_results_in(folder)
            self.rows = open(self.path("results.csv"), "x", newline="")

    def path(self, name):
        return os.path.join(self.folder, name)

    def begin(self, results):
        """Before the first row there is a document that tells that the run has not ended."""
        self.write_json(results, False, NOT_ENDED)
        points = results.points()
        self.names = list(points[0]) if points else []
        self.columns = ["experiment", "network", "lane", *self.names, "round", "status", "why",
                        *(value.name for value in self.experiment.values), "net_offered",
                        "net_lost"]
        self.write_line(self.columns)

    def write_row(self, row):
        values = [row["values"].get(value.name) for value in self.experiment.values]
        self.write_line([self.experiment.name, row["network"], row["lane"],
                         *(row["point"].get(name) for name in self.names), row["round"],
                         row["status"], row["why"], *values, row.get("net_offered"),
                         row.get("net_lost")])

    def write_line(self, cells):
        with told(self.folder):
            csv.writer(self.rows, lineterminator="\n").writerow(cells)
            self.rows.flush()

    def write_json(self, results, complete, ended):
        """The whole of what is known; `ended` tells why, if a run is not complete."""
        self.write_text("results.json", json.dumps(
            document(self.experiment, self.run, results, complete, ended), indent=1, allow_nan=False))

    def write_text(self, name, text):
        self.write_bytes(name, text.encode())

    def write_bytes(self, name, data):
        """A file is there as a whole or, as before, not at all."""
        new = self.path(f".{name}.new")
        with told(self.folder):
            try:
                with open(new, "wb") as file:
                    file.write(data)
                os.replace(new, self.path(name))
            except BaseException:  # signals raise others than errors
                if os.path.exists(new):
                    os.remove(new)
                raise

    def remove(self, *names):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                os.remove(self.path(name))

    def discard(self):
        """Of a run that was refused before it measured anything: the folder is as it was."""
        self.close()
        self.remove("results.csv", "results.json")
        if self.made:
            with contextlib.suppress(OSError):  # someone else put something there
                os.rmdir(self.folder)

    def close(self):
        try:
            self.rows.close()
        except OSError:
            pass  # what was flushed is there


class told:
    """Makes a sentence of an error of the file system."""

    def __init__(self, folder):
        self.folder = folder

    def __enter__(self):
        return self

    def __exit__(self, _, error, __):
        if not isinstance(error, OSError):
            return
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise Refusal(f"The disk under {self.folder} is full: free some room, or name another "
                          "folder with --out. What was written before is still there.") from error
        raise Refusal(f"{self.folder} cannot be written: {error.strerror}. Name another folder "
                      "with --out.") from error


def document(experiment, run, results, complete, ended):
    return {"schema": SCHEMA, "kind": "diwarp-lab", "experiment": experiment.name,
            "title": experiment.title, "complete": complete, "ended": ended, "run": run,
            "values": [{"name": value.name, "unit": value.unit, "better": value.better}
                       for value in experiment.values],
            "cells": list(results.cells()),
            "losses": [{"network": network, "asked_percent": asked, "offered": offered,
                        "lost": lost}
                       for (network, asked), (offered, lost) in results.counts.items()],
            "published": [line for one in experiment.published
                          for line in compare(one, experiment, results)],
            "missing": [{"title": title, "why": why} for title, why in experiment.missing]}


def compare(one, experiment, results):
    """A line for each combination of what the command line added to the points: the file's own
    function knows nothing of that, and would mix them."""
    for fixed in combinations(experiment.added, results.points()):
        where = ", ".join(f"{name} {short(value)}" for name, value in fixed.items())
        here, failure = computed(one.here, results.within(fixed))
        yield {"title": f"{one.title} ({where})" if where else one.title,
               "published": one.published, "here": here, "why": failure or one.why}


def computed(function, results):
    """(the rounded number, why there is none). The function is the file's, and may do anything."""
    try:
        here = function(results)
        return (None, "") if here is None else (finite(here), "")
    except Exception as error:
        return None, f"It could not be computed: {type(error).__name__}: {error}"


def finite(number):
    if not is_number(number):
        raise ValueError(f"{number!r} is no number")
    return round(number, 2)
