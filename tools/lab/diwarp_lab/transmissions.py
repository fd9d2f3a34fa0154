# SPDX-License-Identifier: Apache-2.0
"""One connection's transmissions, as --transmissions of diwarp-bandwidth and diwarp-pingpong writes
them: which there were, where the connection stood still, and a plot."""
import collections
import csv
import os

from . import plots
from .basics import Refusal

COLUMNS = ("seconds", "event", "number", "in_flight", "early", "window", "rate", "round_trip_us")
# The causes, and how each is shown.
CAUSES = {"first": ("#8d99ae", "."), "lost": ("#b5179e", "x"), "probe": ("#e9a13b", "^"),
          "recalled": ("#7b2d26", "s")}
ACKNOWLEDGED = "acknowledged"
STALLS = 5  # that are told

Event = collections.namedtuple("Event", COLUMNS)


def read(path):
    """The events of a file. Refusal with a sentence where it is none."""
    with open(path, newline="", encoding="utf-8", errors="replace") as file:
        lines = csv.reader(file)
        if tuple(next(lines, ())) != COLUMNS:
            raise Refusal(f"{path} is no file of --transmissions.")
        events = []
        for number, words in enumerate(lines, 2):
            try:
                second, event, *numbers = words
                events.append(Event(float(second), event, *map(float, numbers)))
            except (TypeError, ValueError):
                raise Refusal(f"{path}: line {number} has no event of a connection.") from None
    if not events:
        raise Refusal(f"{path} has no transmission.")
    return events


def counts(events):
    """{event: how many there are}, causes first."""
    found = collections.Counter(event.event for event in events)
    return {name: found[name] for name in (*CAUSES, ACKNOWLEDGED) if found[name]}


def stalls(events):
    """(seconds that it lasted, when it began) of each time that a new number took to be acknowledged
    while some were in flight, the longest first. The last one may last to the end."""
    found, since, highest, sent = [], None, -1, None
    for event in events:
        if event.event == "first":
            if sent is not None and event.number != sent + 1:  # in another association
                highest = event.number - 1
            sent = event.number
        moved = event.event == ACKNOWLEDGED and event.number > highest
        if moved and since is not None:
            found.append((event.seconds - since, since))
        if moved:
            highest = event.number
            since = event.seconds if event.in_flight or event.early else None
        elif since is None:
            since = event.seconds
    if since is not None and events[-1].seconds > since:
        found.append((events[-1].seconds - since, since))
    return sorted(found, reverse=True)


def describe(events):
    """Lines for a terminal."""
    yield ", ".join(f"{count} {name}" for name, count in counts(events).items())
    for seconds, since in stalls(events)[:STALLS]:
        yield f"no news of the next number for {seconds * 1e3:.2f} ms from {since:.6f} s on"


def draw(events, title):
    """matplotlib's picture, which is to be closed."""
    pyplot = plots.load()
    picture, (numbers, window, rate) = pyplot.subplots(3, 1, sharex=True, figsize=(10, 9),
                                                       gridspec_kw={"height_ratios": (3, 1, 1)})
    for cause, (colour, marker) in CAUSES.items():
        of_cause = [event for event in events if event.event == cause]
        if of_cause:
            numbers.plot([event.seconds for event in of_cause],
                         [event.number for event in of_cause], marker, color=colour, markersize=3,
                         label=f"{cause} ({len(of_cause)})")
    told = [event for event in events if event.event == ACKNOWLEDGED]
    numbers.plot([event.seconds for event in told], [event.number for event in told],
                 color="#2a9d55", linewidth=0.8, label=ACKNOWLEDGED)
    numbers.set_ylabel("number")
    times = [event.seconds for event in events]
    window.plot(times, [event.window for event in events], color="#1b1b3a", label="window")
    window.plot(times, [event.in_flight for event in events], color="#2a9df4", linewidth=0.8,
                label="in flight")
    window.set_ylabel("datagrams")
    rate.plot(times, [event.rate for event in events], color="#0b5d6b", label="pacing rate")
    rate.set_ylabel("datagrams/s")
    trip = rate.twinx()
    trip.plot(times, [event.round_trip_us for event in events], color="#e9a13b", linewidth=0.8,
              label="round trip")
    trip.set_ylabel("us")
    rate.set_xlabel("seconds")
    for axis in (numbers, window, rate):
        axis.grid(True, alpha=0.3)
        axis.legend(loc="upper left", fontsize=8)
    trip.legend(loc="upper right", fontsize=8)
    numbers.set_title(title, fontsize=10)
    picture.tight_layout()
    return picture


def show(path):
    """Tells of the file, and draws PATH.png beside it where there is matplotlib."""
    events = read(path)
    for line in describe(events):
        print(line)
    reason = plots.why_not()
    if reason:
        print(f"{reason}.")
        return
    picture = draw(events, os.path.basename(path))
    with open(f"{path}.png", "wb") as file:
        file.write(plots.rendered(picture, "png"))
    plots.close(picture)
    print(f"Plot: {path}.png")
