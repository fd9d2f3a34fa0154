#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The parts of the lab that touch no network: files of experiments, statistics, output, reports."""
import csv
import io
import json
import os
import sys

from lab import case, check, main, path, refused, where, write
from diwarp_lab import experiment, machine, networks, output, plots, progress, report, selfcheck
from diwarp_lab.basics import Refusal
from diwarp_lab.quantities import parse_number, short
from diwarp_lab.results import Results
from diwarp_lab.summaries import deviations, settled, summary

GOOD = '''"""How it goes
And more about it."""
network("veth", mtu=9000)
points(size=["1K", "64K"], loss=[0, 1])
quick_points(size=["1K"])
value("speed", "mb_per_s", unit="MB/s")
lane("a", pair("bandwidth", "--size {size} --iterations {count}"))
lane("b", pair("bandwidth", "--size {size}"))
figure("speed", "speed", x="size", per="loss")
published("a against b", "+20 %", change("speed", "a", "b", size=upto("1K")), why="luck")
missing("MPI", "needs an MPI")
'''


def loaded(text=GOOD):
    return experiment.load(write("one.py", text))


@case()
def a_file_names_lanes_points_and_figures():
    one = loaded()
    check(one.title == "How it goes" and one.text == "And more about it.", one)
    check([lane.name for lane in one.lanes] == ["a", "b"], one.lanes)
    check(len(one.point_list(False)) == 4 and len(one.point_list(True)) == 2, one.points)
    check(one.point_list(False)[0] == {"size": 1024, "loss": 0}, one.point_list(False))
    check(one.settings == {"mtu": 9000} and one.networks == ("veth",), one)


MISTAKES = {
    "syntax": ("value('a')\nlane(", 2, "never closed"),
    "unknown_word": ("value('a')\n\nline('x')", 3, "line"),
    "unknown_network": ("network('token-ring')", 1, "token-ring"),
    "unknown_option": ("\nnetwork('veth', colour=3)", 2, "colour"),
    "wrong_percent": ("points(loss=[120])", 1, "at most 100"),
    "no_list": ("points(size=4)", 1, "list of values"),
    "no_lane": ("value('a')", 1, "no lane"),
    "two_lanes": ("lane('a', program('x'))\nlane('a', program('x'))", 2, "already"),
    "no_work": ("\nlane('a', 'x')", 2, "something to run"),
    "unknown_placeholder": ("\n\nlane('a', program('x {size}'))", 3, "{size}"),
    "count_of_no_size": ("lane('a', program('x {count}'))", 1, "takes a size in points()"),
    "figure_of_nothing": ("lane('a', program('x'))\nfigure('f', 'speed', x='lane')", 2, "speed"),
    "figure_of_a_path": ("value('s')\nfigure('a/b', 's', x='lane')", 2, "no name of a file"),
    "figure_above": ("figure('..', 's', x='lane')", 1, "no name of a file"),
    "figure_of_no_letters": ("figure('a\\0', 's', x='lane')", 1, "no name of a file"),
    "figure_of_many_letters": ("figure(300 * 'x', 's', x='lane')", 1, "no name of a file"),
    "figure_over_nothing": ("value('s')\nlane('a', program('x'))\nfigure('f', 's', x='size')", 3,
                            "size"),
    "published_lane": ("value('s')\nlane('a', program('x'))\npublished('p', '1', "
                       "change('s', 'a', 'c'))", 3, "'c'"),
    "only_of_a_number": ("points(size=[1])\nlane('a', program('x'), only={'size': 1})", 2,
                         "a list of values"),
    "better": ("value('s', better='green')", 1, "green"),
    "rounds": ("rounds(least=3, most=2)", 1, "least"),
    "combined_rounds": ("\ncombine('loss', rounds=0)", 2, "least"),
    "size_of_letters": ("\npoints(size=['abc'])", 2, "size needs whole numbers from 0"),
    "size_of_another_unit": ("points(size=['4Q'])", 1, "'4Q'"),
    "half_a_stream": ("points(streams=[0.5])", 1, "streams needs whole numbers"),
    "no_clients": ("points(clients=[0])", 1, "from 1"),
    "count_by_a_text": ("points(n=['x'])\n\nlane('a', pair('bandwidth', '', clients='n'))", 3,
                        "counts by n"),
    "count_by_a_text_together": ("points(n=['x'])\n\nlane('a', together(a=many('n', "
                                 "pair('bandwidth', ''))))", 3, "counts by n"),
    "every_half": ("points(every=[1.5])", 1, "every is a whole number"),
    "a_placeholder_with_a_form": ("\nlane('a', program('x {size:>q}'))", 2, "nothing else"),
    "a_brace_alone": ("\nlane('a', program('x {size'))", 2, "cannot be read as options"),
    "a_quote_alone": ("\nlane('a', program(\"x 'y\"))", 2, "No closing quotation"),
    "options_of_a_number": ("lane('a', pair('bandwidth', 5))", 1, "options are a text, not 5"),
    "a_limit_of_text": ("lane('a', program('x', limit='5'))", 1, "limit is a number of seconds"),
    "no_client": ("lane('a', pair('bandwidth', '', clients=0))", 1, "clients is a whole number"),
    "no_receiver": ("lane('a', pair('bandwidth', '', receivers=0))", 1, "from 1 to 1000"),
    "none_of_many": ("lane('a', many(0, pair('bandwidth', '')))", 1, "many() is a whole number"),
    "many_programs": ("lane('a', many(2, program('x')))", 1, "many() takes a pair(...)"),
    "fan_up": ("lane('a', many(2, pair('bandwidth', ''), fan='up'))", 1, "not 'up'"),
    "one_end": ("lane('a', pair('bandwidth', '', ends=(5,)))", 1, "ends are the numbers of two"),
    "no_program": ("\n\nlane('a', program(' '))", 3, "a program needs a name"),
    "nothing_together": ("lane('a', together())", 1, "together() needs something to run"),
    "a_text_in_sequence": ("lane('a', sequence(b='x'))", 1, "'b' of sequence() needs"),
    "a_sequence_together": ("lane('a', together(b=sequence(c=program('x'))))", 1, "cannot run 'b'"),
    "take_of_text": ("published('p', '1', change('s', 'a', 'b', take='max'))", 1, "not 'max'"),
    "times_nothing": ("published('p', '1', change('s', 'a', 'b', times=0))", 1, "other than 0"),
    "no_value": ("points(size=[1])\nlane('a', program('x'))", 1, "there is no value"),
    "settle_of_text": ("rounds(settle='x')", 1, "rounds settle within 0 to 100 percent"),
    "rounds_of_text": ("rounds(least='3')", 1, "1 <= least"),
    "a_part_for_no_point": ("value('s')\nlane('a', sequence(b=pair('bandwidth', '', only={'size': "
                            "[1]})))", 2, "only for some 'size'"),
    "value_of_lists": ("value('s', ['a', 'b'])", 1, "are texts"),
    "value_of_the_table": ("value('round')", 1, "every table has"),
    "points_of_the_table": ("points(status=[1])", 1, "every table has"),
    "a_point_twice": ("points(k=[1, '1'])", 1, "k has 1 twice"),
    "a_size_twice": ("points(size=[1024, '1K'])", 1, "twice"),
    "published_number": ("published('t', -18.1, max)", 1, "are texts"),
    "published_reason": ("published('t', '1', max, why=None)", 1, "are texts"),
    "missing_reason": ("missing(None, 5)", 1, "are texts"),
    "row_of_a_list": ("lane('a', program('x', row=['v']))", 1, "a program's row"),
    "column_of_a_list": ("lane('a', program('x', column=['v']))", 1, "a program's row"),
    "plain_kind": ("lane('a', plain('udpx'))", 1, "plain is one of"),
    "pair_of_nothing": ("lane('a', pair(None, ''))", 1, "the name of a tool"),
    "beside_many": ("lane('a', beside(pair('bandwidth', ''), many(2, pair('bandwidth', ''))))", 1,
                    "beside() takes two"),
    "every_0th": ("network('switch', every=0)", 1, "not each 0th"),
    "lanes_and_combined": ("value('s')\nlane('a', program('x'))\ncombine('loss')", 2,
                           "has lanes, or combines"),
    "exit": ("value('a')\nimport sys\nsys.exit(3)", 3, "sys.exit(3) would end the lab"),
    "in_a_function": ("def f():\n    return 1 / 0\nx = 2\nf()", 2, "ZeroDivisionError"),
}


@case(*((name,) for name in MISTAKES))
def a_mistake_is_told_with_its_line(name):
    text, line, told = MISTAKES[name]
    reason = refused(experiment.Mistake, lambda: loaded(text), told)
    check(reason.startswith(f"{path('one.py')}:{line}: "), reason)


@case()
def experiments_that_are_not_there_are_refused():
    refused(Refusal, lambda: experiment.find("lost"), "lost", "loss")
    refused(Refusal, lambda: experiment.load(path("none.py")), "none.py")


@case()
def every_experiment_of_the_lab_can_be_loaded():
    for name in experiment.names():
        one = experiment.load(experiment.find(name))
        check(one.title and (one.point_list(True) or one.combined), name)
        for other, _ in one.combined:
            check(other in experiment.names(), other)


@case()
def numbers_are_read_as_users_write_them():
    for text, value in (("64", 64), ("4K", 4096), ("1M", 1 << 20), ("0.5", 0.5), (7, 7)):
        check(parse_number(text) == value, text)
    for text in ("", "x", "1e9", "-1", "1KB", "nan", "9" * 400, "9" * 19, "1" + "0" * 10 + "G"):
        refused(ValueError, lambda: parse_number(text))
    shown = [short(value) for value in (64, 4096, 0.5, 1500, "x")]
    check(shown == ["64", "4K", "0.5", "1500", "x"], shown)


@case()
def limits_of_lanes_and_figures_are_read_as_points_are():
    one = loaded("""
points(size=["1K", "2K"], who=["a"])
value("speed")
lane("a", program("x"), only={"size": ["1K"], "who": ["a"]})
lane("b", program("x"), only={"size": upto("1K")})
figure("f", "speed", x="who", where={"size": "2K"})
""")
    check(one.lanes[0].only == {"size": [1024], "who": ["a"]}, one.lanes[0])
    check(1024 in one.lanes[1].only["size"] and 2048 not in one.lanes[1].only["size"], one.lanes[1])
    check(one.figures[0].where == {"size": 2048}, one.figures[0])
    one = loaded("""
points(size=["1K", "2K"])
value("speed")
lane("a", sequence(b=pair("bandwidth", "", only={"size": ["1K"]}), c=program("x")))
""")
    check(one.lanes[0].work.parts["b"].only == {"size": [1024]}, one.lanes[0])


@case()
def rounds_settle_when_no_quartile_moves():
    check(not settled([1, 1, 1], 5), "too few")
    check(settled([10, 10, 10, 10], 5), "all the same")
    check(not settled([10, 10, 10, 20, 30], 5), "they grow")
    found = summary([4, 1, 3, 2])
    check((found["low"], found["median"], found["high"]) == (1.75, 2.5, 3.25), found)
    check(summary([]) is None, "nothing")


@case()
def a_share_is_off_by_standard_deviations():
    check(deviations(100, 10000, 0.01) == 0, "as asked")
    check(round(deviations(150, 10000, 0.01), 2) == 5.03, deviations(150, 10000, 0.01))
    check(deviations(1, 100, 0) > 1e9 and deviations(0, 100, 0) == 0, "none asked for")
    check(selfcheck.Count("n", 1, 10000, 140).holds(), "4 deviations")
    check(not selfcheck.Count("n", 1, 10000, 160).holds(), "6 deviations")
    check(not selfcheck.Count("n", 1, 0, 0).holds(), "nothing was sent")
    check(selfcheck.Count("n", 1, 10000, 100, 101, 10000).holds(), "one more found no room")
    check(not selfcheck.Count("n", 1, 10000, 100, 79, 10000).holds(), "one came that was lost")


@case()
def networks_refuse_what_they_cannot_do():
    networks.refuse_unable("switch", {"loss": 1, "burst": 3})
    networks.refuse_unable("loopback", {"loss": 0})
    refused(Refusal, lambda: networks.refuse_unable("loopback", {"loss": 1}), "loopback", "loss",
            "switch")
    refused(Refusal, lambda: networks.refuse_unable("router", {"delay": 5}), "router", "delay")
    refused(ValueError, lambda: networks.setting("mtu", "100"), "576")


def results_of(one):
    results = Results(one, one.point_list(False))
    for point in results.points():
        for lane, speed in (("a", 120), ("b", 100)):
            for number in range(1, 4):
                results.add({"lane": lane, "point": point, "network": "veth", "round": number,
                             "status": "ok", "why": "", "values": {"speed": speed + number}})
    results.obstacles["b", 3] = "there is no b"
    results.count("veth", 1, 1000, 11)
    return results


RUN = {"lab_commit": "abc", "version": "1", "machine": {
    "processor": "p", "processors": 2, "kernel": "6", "system": "Debian", "tcp": "cubic"}, "seed": 1,
    "quick": False, "command": "diwarp-lab one", "begun": "now", "options": {}, "notes": [],
    "busy": 0.0, "busy_limit": 0.1}


def write_table():
    one = loaded()
    results = results_of(one)
    made = output.Output(path("out"), RUN, one)
    made.begin(results)
    for row in results.rows:
        made.write_row(row)
    made.close()
    return made, results


@case()
def the_table_is_tidy():
    made, results = write_table()
    with open(path("out/results.csv"), newline="") as file:
        rows = list(csv.DictReader(file))
    check(len(rows) == 24 and rows[0]["lane"] == "a" and rows[0]["size"] == "1024", rows[0])
    check(all(float(row["speed"]) > 100 and None not in row for row in rows), rows)
    made.write_json(results, True, "")
    refused(Refusal, write_table, "has results already")
    os.remove(path("out/results.json"))
    refused(Refusal, write_table, "has results already")


@case()
def a_document_tells_before_the_first_row_that_the_run_has_not_ended():
    one = loaded()
    made = output.Output(path("out"), RUN, one)
    made.begin(Results(one, one.point_list(False)))
    made.close()
    with open(path("out/results.json")) as file:
        found = json.load(file)
    check(not found["complete"] and found["ended"] == "the run had not ended", found)
    made.discard()
    check(not os.path.exists(path("out")), "a run that was discarded leaves its folder")


@case()
def results_are_whole_if_only_the_experiment_left_something_out():
    one = loaded()
    results = Results(one, one.point_list(False))
    check(not results.is_whole(), "no rows")
    results.add({"status": "ok"})
    results.obstacles["a", 0] = "it is for other values"
    results.intended.add(("a", 0))
    check(results.is_whole(), "as intended")
    results.obstacles["a", 1] = "there is no tool"
    check(not results.is_whole(), "an obstacle")


@case()
def pandas_reads_the_table():
    try:
        import pandas
    except ImportError:
        print("SKIPPED: there is no pandas here (python3-pandas)")
        return
    write_table()
    table = pandas.read_csv(path("out/results.csv"))
    medians = table.groupby(["lane", "size"]).speed.median()
    check(medians["a", 1024] == 122, medians)


@case()
def the_document_keeps_to_its_schema():
    one = loaded()
    whole = output.document(one, RUN, results_of(one), False, "the run was interrupted")
    check(whole["published"][0]["here"] == 19.61, whole["published"])
    check_schema(whole)


def check_schema(whole):
    with open(os.path.join(os.path.dirname(output.__file__), "schema.json")) as file:
        schema = json.load(file)
    try:
        import jsonschema
    except ImportError:
        print("SKIPPED: there is no jsonschema here (python3-jsonschema)")
        return
    jsonschema.validate(json.loads(json.dumps(whole)), schema)


@case()
def a_report_tells_what_differs_and_what_is_missing():
    one = loaded()
    results = results_of(one)
    whole = output.document(one, RUN, results, False, "the run was interrupted")
    part = report.Part(one, results, whole, {"speed": ("Speed", b"<?xml?><svg>x</svg>")})
    text = report.write(report.Markdown(), one.title, [part])
    for wanted in ("partial: the run was interrupted", "| a against b | +20 % | +19.6 % | luck |",
                   "MPI: needs an MPI", "b: there is no b", "| 1K | 0 | 122", "1.100 %"):
        check(wanted in text, f"{wanted!r} is not in {text}")
    page = report.write(report.Html(one.title), one.title, [part])
    check("<svg>x</svg>" in page and "<?xml" not in page and "src=" not in page, page)


@case()
def what_the_command_line_adds_to_the_points_has_lines_and_panels_of_its_own():
    one = loaded()
    one.points["delay"], one.added = [0, 3], ["delay"]
    results = Results(one, one.point_list(False))
    for point in results.points():
        for lane, speed in (("a", 120 + 80 * (point["delay"] > 0)), ("b", 100)):
            results.add({"lane": lane, "point": point, "network": "veth", "round": 1,
                         "status": "ok", "why": "", "values": {"speed": speed}})
    whole = output.document(one, RUN, results, True, "")
    check([(line["title"], line["here"]) for line in whole["published"]] ==
          [("a against b (delay 0)", 20), ("a against b (delay 3)", 100)], whole["published"])
    found = plots.panels(one.figures[0], results)
    check([title for title, _ in found] == ["loss 0, delay 0", "loss 0, delay 3",
                                            "loss 1, delay 0", "loss 1, delay 3"], found)
    for _, points in found:
        line = plots.series(one.figures[0], one.lanes[0], points, results)
        check([x for x, _ in line] == [1024, 65536], line)


FUNCTIONS = {"raises": (lambda results: 1 / 0, "ZeroDivisionError"),
             "text": (lambda results: "x", "'x' is no number"),
             "nan": (lambda results: float("nan"), "nan is no number")}


@case(*((name,) for name in FUNCTIONS))
def a_comparison_that_cannot_be_computed_says_why(name):
    one = loaded()
    one.published[0].here, told = FUNCTIONS[name]
    whole = output.document(one, RUN, results_of(one), True, "")
    line = whole["published"][0]
    check(line["here"] is None and told in line["why"], line)
    check_schema(whole)


@case()
def figures_are_drawn():
    if plots.why_not():
        print(f"SKIPPED: {plots.why_not()}")
        return
    one = loaded()
    made = plots.draw(one.figures[0], results_of(one))
    check(b"<svg" in made["svg"] and made["png"].startswith(b"\x89PNG"), made)
    check(plots.draw(one.figures[0], Results(one, one.point_list(False))) == {}, "nothing measured")


def made_up(one):
    """Results of every lane at every point."""
    results = Results(one, one.point_list(False))
    for point in results.points():
        for number, lane in enumerate(one.lanes, 1):
            for turn in range(3):
                values = {value.name: 10 * number + turn for value in one.values}
                results.add({"lane": lane.name, "point": point, "network": "x", "round": turn + 1,
                             "status": "ok", "why": "", "values": values})
    return results


@case(*((name,) for name in experiment.names()))
def all_of_a_figure_is_within_its_picture(name):
    """Titles, labels, and a legend of all lanes, which nothing overlaps."""
    if plots.why_not():
        print(f"SKIPPED: {plots.why_not()}")
        return
    one = experiment.load(experiment.find(name))
    for figure in one.figures:
        picture = plots.make_picture(figure, made_up(one))
        whole = picture.bbox
        panels = [axis for axis in picture.axes if axis.get_visible()]
        boxes = [axis.get_tightbbox(picture.canvas.get_renderer()) for axis in panels]
        legends = [legend.get_window_extent() for legend in picture.legends]
        for box in boxes + legends:
            check(whole.x0 <= box.x0 and box.x1 <= whole.x1 and whole.y0 <= box.y0 and
                  box.y1 <= whole.y1, f"{figure.name}: {box} is not within {whole}")
        check(not any(legend.overlaps(box) for legend in legends for box in boxes), figure.name)
        if legends:
            texts = [text.get_text() for text in picture.legends[0].get_texts()]
            check(texts == [lane.name for lane in one.lanes], texts)
        check(all(axis.lines or axis.patches for axis in panels), f"{figure.name}: an empty panel")
        plots.close(picture)


@case()
def a_combined_experiment_may_set_the_rounds_of_all():
    one = loaded("combine('loss', rounds=3)")
    check((one.combined_rounds.least, one.combined_rounds.most) == (3, 3), one.combined_rounds)
    check(loaded("combine('loss')").combined_rounds is None, "the experiments' own")


@case()
def axes_double_where_sizes_do():
    check(plots.doubles([1024, 4096, 65536]) and plots.doubles([1, 2]), "sizes")
    check(plots.doubles([0, 0.1, 1, 5]), "losses, from zero")
    check(not plots.doubles([0, 5]) and not plots.doubles([2]), "few")
    check(not plots.doubles([1500, 1600, 1700]) and not plots.doubles(["a", 1, 2, 4]), "others")


@case()
def colours_differ_in_grey():
    """Of those that are near each other in grey, markers and strokes differ."""
    def grey(colour):
        red, green, blue = (int(colour[at:at + 2], 16) for at in (1, 3, 5))
        return 0.299 * red + 0.587 * green + 0.114 * blue

    first = [grey(colour) for colour in plots.COLOURS[:4]]
    check(all(abs(a - b) >= 18 for at, a in enumerate(first) for b in first[:at]), first)
    check(len(set(plots.MARKERS)) == len(plots.COLOURS) == len(set(plots.COLOURS)), "markers")


@case()
def progress_tells_the_time_left():
    now = [0]
    shown = io.StringIO()
    line = progress.Progress("loss", 4, shown, lambda: now[0])
    check(line.left() is None, "nothing known")
    now[0] = 60
    line.over(1)
    check(line.text("x") == "loss: x, 1 of 4 done, about 3 min 00 s left", line.text("x"))
    line.point("x")
    check(shown.getvalue().endswith("left\n"), shown.getvalue())


@case()
def the_machine_is_described():
    found = machine.describe()
    check(found["processors"] >= 1 and found["kernel"], found)
    check(0 <= machine.work_of_others(0.05) <= os.cpu_count() + 0.5, "work")


VERSIONS = {"told": ("echo diwarp-info 0.1.0", "0.1.0"), "none": ("exit 0", ""),
            "rubbish": (r"printf '\377\033\n'", ""), "dies": ("echo diwarp-info 3; exit 1", "")}


@case(*((name,) for name in VERSIONS))
def the_version_is_that_of_the_programs(name):
    script, version = VERSIONS[name]
    where.tools = where.folder
    write("diwarp-info", f"#!/bin/sh\n{script}\n", True)
    check(machine.version() == version, machine.version())


@case()
def a_report_does_not_take_the_labs_commit_for_the_programs():
    shown = dict(report.circumstances(RUN))
    check(shown["Lab"] == "commit abc" and "diwarp 1; of which commit" in shown["Programs"], shown)


if __name__ == "__main__":
    sys.exit(main())
