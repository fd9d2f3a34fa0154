# SPDX-License-Identifier: Apache-2.0
"""Plots of figures, as SVG and PNG. matplotlib is loaded late: it starts threads, and a process
that has some cannot enter a user namespace."""
import contextlib
import importlib.util
import io
import math
import os
import tempfile

from .networks import PERCENTS
from .points import combinations
from .quantities import short

# From dark to light, so that they differ in grey, too; each has a marker and a stroke of its own.
COLOURS = ("#1b1b3a", "#b5179e", "#2a9df4", "#e9a13b", "#2a9d55", "#8d99ae", "#7b2d26", "#0b5d6b")
MARKERS = "osD^vP*X"
STROKES = ("-", "--", "-.", ":")


def why_not():
    """Why nothing can be drawn; "": it can."""
    if importlib.util.find_spec("matplotlib") is None:
        return "There are no plots, as there is no matplotlib here: install python3-matplotlib"
    return ""


def doubles(values):
    """Whether an axis of these wants to be logarithmic: they grow by factors, perhaps from zero."""
    numbers = sorted(value for value in values if isinstance(value, (int, float)) and value >= 0)
    above_zero = [value for value in numbers if value > 0]
    if len(above_zero) < 2 or len(numbers) != len(values):
        return False
    factors = [b / a for a, b in zip(above_zero, above_zero[1:])]
    return min(factors) >= 1.5


def set_logarithmic(axis, places):
    """Zero has a place one step before the least number above it."""
    if min(places) > 0:
        axis.set_xscale("log", base=2)
    else:
        axis.set_xscale("symlog", base=2, linthresh=min(x for x in places if x > 0))


def panels(figure, results):
    """(title, points) for each panel: one for each value of `per`, and of whatever else varies, so
    that a panel has one point for each x."""
    points = results.within(figure.where).points()
    others = [name for name in (points[0] if points else ()) if name not in (figure.x, figure.per)
              and len({point[name] for point in points}) > 1]
    names = [figure.per, *others] if figure.per else others
    return [(", ".join(f"{name} {short(value)}" for name, value in fixed.items()),
             [point for point in points if fixed.items() <= point.items()])
            for fixed in combinations(names, points)]


def series(figure, lane, points, results):
    """(x, summary) for each point that the lane has."""
    return [(point.get(figure.x), one) for point in points
            if (one := results.summary(figure.y, lane.name, point))]


def draw(figure, results):
    """{"svg": bytes, "png": bytes}; nothing where nothing was measured."""
    picture = make_picture(figure, results)
    if picture is None:
        return {}
    made = {kind: rendered(picture, kind) for kind in ("svg", "png")}
    close(picture)
    return made


def load():
    """matplotlib.pyplot. While it is loaded it keeps what it knows of fonts in a folder of the
    user's; where that cannot be written, in one that is removed afterwards."""
    home = os.environ.get("MPLCONFIGDIR") or os.path.expanduser("~")
    with contextlib.ExitStack() as stack:
        if not os.access(home, os.W_OK | os.X_OK):
            os.environ["MPLCONFIGDIR"] = stack.enter_context(tempfile.TemporaryDirectory())
        import matplotlib
        matplotlib.use("Agg")
        matplotlib.rcParams.update({"svg.hashsalt": "diwarp", "svg.fonttype": "none"})
        from matplotlib import pyplot
    return pyplot


def close(picture):
    from matplotlib import pyplot
    pyplot.close(picture)


def make_picture(figure, results):
    """matplotlib's, which is to be closed; None where nothing was measured."""
    pyplot = load()
    shown = [(title, drawn) for title, points in panels(figure, results)
             if (drawn := [(lane, line) for lane in results.experiment.lanes
                           if (line := series(figure, lane, points, results))])]
    if not shown:
        return None
    columns = min(len(shown), 3)
    lines = math.ceil(len(shown) / columns)
    picture, axes = pyplot.subplots(lines, columns, squeeze=False,
                                    figsize=(max(1.2 + 4.2 * columns, 6.4), 0.9 + 3.3 * lines))
    for axis in axes.flat[len(shown):]:
        axis.set_visible(False)
    for axis, (title, drawn) in zip(axes.flat, shown):
        draw_panel(axis, figure, drawn, results)
        axis.set_title(title, fontsize=10)
    finish(picture, axes.flat[:len(shown)], figure)
    return picture


def draw_panel(axis, figure, drawn, results):
    lanes = [lane.name for lane in results.experiment.lanes]
    places = {x for _, line in drawn for x, _ in line}
    if figure.x == "lane" or len(places) == 1:
        draw_bars(axis, drawn, lanes)
        if figure.x != "lane":
            axis.set_xlabel(f"{axis_name(figure.x)}: {short(*places)}")
    else:
        draw_lines(axis, figure, drawn, lanes)
    highs = [one["median"] for _, line in drawn for _, one in line]
    if min(highs) > 0 and max(highs) / min(highs) > 30:
        axis.set_yscale("log")
    else:
        axis.set_ylim(bottom=0)
    if max(highs) >= 1e5 and min(highs) >= 1:
        axis.yaxis.set_major_formatter(engineering())
    value = results.experiment.value(figure.y)
    axis.set_ylabel(f"{value.name.replace('_', ' ')}" + (f" ({value.unit})" if value.unit else ""))
    axis.grid(True, which="major", alpha=0.3)


def engineering():
    """100k, 20M: no powers beside the axis."""
    from matplotlib.ticker import EngFormatter
    return EngFormatter(sep="")


def draw_lines(axis, figure, drawn, lanes):
    places = list(dict.fromkeys(x for _, line in drawn for x, _ in line))
    logarithmic = doubles(places)
    numeric = all(isinstance(x, (int, float)) for x in places)
    for lane, line in drawn:
        style = lanes.index(lane.name)
        xs = [x if numeric else places.index(x) for x, _ in line]
        parts = {name: [one[name] for _, one in line] for name in ("low", "median", "high")}
        axis.plot(xs, parts["median"], label=lane.name, color=COLOURS[style % len(COLOURS)],
                  marker=MARKERS[style % len(MARKERS)], markersize=5,
                  linestyle=STROKES[style % len(STROKES)])
        axis.fill_between(xs, parts["low"], parts["high"], alpha=0.2,
                          color=COLOURS[style % len(COLOURS)])
    if logarithmic:
        set_logarithmic(axis, places)
    if logarithmic or not numeric:
        axis.set_xticks(places if numeric else range(len(places)),
                        [short(x) for x in places], rotation=45 if len(places) > 6 else 0)
        axis.minorticks_off()
    axis.set_xlabel(axis_name(figure.x))


def axis_name(name):
    """With the unit, where the name has one."""
    unit = "bytes" if name in ("size", "mtu") else "%" if name in PERCENTS else ""
    return f"{name} ({unit})" if unit else name


def draw_bars(axis, drawn, lanes):
    """A bar for each lane, with its quartiles: for one value of x, too."""
    for place, (lane, line) in enumerate(drawn):
        one = line[0][1]
        style = lanes.index(lane.name)
        axis.bar(place, one["median"], color=COLOURS[style % len(COLOURS)], width=0.7,
                 yerr=[[one["median"] - one["low"]], [one["high"] - one["median"]]], capsize=4,
                 edgecolor="black")
    axis.set_xticks(range(len(drawn)), [lane.name for lane, _ in drawn], rotation=30, ha="right")


def finish(picture, axes, figure):
    picture.suptitle(figure.title, fontsize=12)
    rows = draw_legend(picture, axes)
    height = picture.get_size_inches()[1]
    picture.tight_layout(rect=(0, (0.22 * rows + 0.1) / height if rows else 0, 1, 1))


def draw_legend(picture, axes):
    """Below the panels, in as many columns as there is room for; the number of its lines. Some
    panels may lack lanes."""
    found = {}
    for axis in axes:
        found.update({label: handle for handle, label in zip(*axis.get_legend_handles_labels())})
    if not found:
        return 0
    column = 0.7 + 0.068 * max(map(len, found))  # inches: the line, and text of 9 points
    columns = min(len(found), max(int(picture.get_size_inches()[0] / column), 1))
    picture.legend(found.values(), found.keys(), loc="lower center", ncols=columns, frameon=False,
                   fontsize=9)
    return math.ceil(len(found) / columns)


def rendered(picture, kind):
    file = io.BytesIO()
    picture.savefig(file, format=kind, dpi=130,
                    metadata={"Date": None} if kind == "svg" else None)
    return file.getvalue()
