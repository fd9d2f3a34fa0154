# SPDX-License-Identifier: Apache-2.0
"""The report of a run: report.md with pictures beside it, and report.html, which has all in it."""
import html

from .progress import duration
from .quantities import short, significant

STYLE = """body{font:16px/1.5 sans-serif;max-width:62em;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;margin:1em 0}td,th{border:1px solid #ccc;padding:.25em .6em;
text-align:left}svg{max-width:100%;height:auto}.warn{background:#fff3cd;padding:.5em 1em}
code{background:#f4f4f4}"""


class Part:
    """What one experiment has to tell."""

    def __init__(self, experiment, results, document, pictures):
        self.experiment, self.results = experiment, results
        self.document, self.pictures = document, pictures


def warnings(document):
    run = document["run"]
    found = []
    if not document["complete"]:
        found.append(f"These results are partial: {document['ended']}.")
    if run.get("quick"):
        found.append("This was a quick run, to see that all works: no figures to quote.")
    if run.get("busy", 0) > run.get("busy_limit", 1):
        found.append(f"The machine was busy with {run['busy']:.1f} processors' worth of other "
                     "work: the figures vary more than their spread shows.")
    return found + run.get("notes", [])


def circumstances(run):
    machine = run["machine"]
    return [("Programs", f"diwarp {run['version'] or 'of unknown version'}; of which commit, they "
             "do not tell"),
            ("Lab", f"commit {run['lab_commit'] or 'unknown'}"),
            ("Machine", f"{machine['processor']} x {machine['processors']}"),
            ("Kernel", f"Linux {machine['kernel']} ({machine['system']}), TCP "
             f"{machine['tcp']}"),
            ("Seed", str(run["seed"])), ("Command", run["command"]), ("Begun", run["begun"]),
            *([("Took", duration(run["seconds"]))] if "seconds" in run else [])]


def seconds_of(parts):
    """From the beginning to the end of the last part."""
    found = [part.document["run"]["seconds"] for part in parts
             if "seconds" in part.document["run"]]
    return {"seconds": max(found)} if found else {}


def comparisons(document):
    """Lines of "published | here | why"."""
    return [(one["title"], one["published"],
             "not measured" if one["here"] is None else f"{one['here']:+.1f} %", one["why"])
            for one in document["published"]]


def table_of(part, value):
    """Medians and quartiles of a value: a line for each point, a column for each lane."""
    lanes = part.experiment.lanes
    names = list(part.results.points()[0]) if part.results.points() else []
    lines = []
    for point in part.results.points():
        cells = [cell(part.results.summary(value.name, lane.name, point)) for lane in lanes]
        if any(text != "-" for text in cells):
            lines.append([*(short(point[name]) for name in names), *cells])
    return [*names, *(lane.name for lane in lanes)], lines


def cell(found):
    if not found:
        return "-"
    return (f"{significant(found['median'])} ({significant(found['low'])} to "
            f"{significant(found['high'])})")


def not_run(part):
    """Sentences about what was not measured, each once."""
    found = {}
    for one in part.document["cells"]:
        for why in ([one["not_run"]] if one["not_run"] else []) + one["failures"]:
            found.setdefault((one["lane"], why), []).append(one["point"])
    total = len(part.results.points())
    return [f"{lane}: {why}" + (f" ({len(points)} of {total} points)" if total > 1 else "")
            for (lane, why), points in found.items()]


def losses(document):
    return [(one["network"], f"{one['asked_percent']:g} %",
             f"{100 * one['lost'] / max(one['offered'], 1):.3f} %",
             f"{one['lost']:,} of {one['offered']:,}") for one in document["losses"]]


class Markdown:
    """Writes a report as Markdown."""

    def __init__(self):
        self.lines = []

    def heading(self, text, level):
        self.lines += ["#" * level + " " + text, ""]

    def paragraph(self, text):
        self.lines += [text, ""]

    def warn(self, text):
        self.paragraph(f"**{text}**")

    def table(self, titles, rows):
        self.row(titles)
        self.row(["---"] * len(titles))
        for cells in rows:
            self.row(cells)
        self.lines.append("")

    def row(self, cells):
        self.lines.append("| " + " | ".join(text.replace("|", "\\|") for text in cells) + " |")

    def items(self, texts):
        self.lines += [f"- {text}" for text in texts] + [""]

    def picture(self, title, name, _):
        self.paragraph(f"![{title}]({name}.svg)")

    def text(self):
        return "\n".join(self.lines).rstrip() + "\n"


class Html:
    """Writes a report as one HTML file."""

    def __init__(self, title):
        self.parts = ["<!doctype html>", '<html lang="en"><meta charset="utf-8">',
                      f"<title>{html.escape(title)}</title><style>{STYLE}</style>"]

    def heading(self, text, level):
        self.parts.append(f"<h{level}>{html.escape(text)}</h{level}>")

    def paragraph(self, text):
        self.parts.append(f"<p>{html.escape(text)}</p>")

    def warn(self, text):
        self.parts.append(f'<p class="warn">{html.escape(text)}</p>')

    def table(self, titles, rows):
        self.parts.append("<table>" + self.row(titles, "th") +
                          "".join(self.row(cells, "td") for cells in rows) + "</table>")

    @staticmethod
    def row(cells, tag):
        return "<tr>" + "".join(f"<{tag}>{html.escape(text)}</{tag}>" for text in cells) + "</tr>"

    def items(self, texts):
        self.parts.append("<ul>" + "".join(f"<li>{html.escape(text)}</li>" for text in texts) +
                          "</ul>")

    def picture(self, title, _, svg):
        start = svg.find(b"<svg")
        self.parts.append(f"<figure>{svg[start:].decode()}</figure>")

    def text(self):
        return "\n".join(self.parts) + "\n"


def write(writer, title, parts):
    """The same report with either writer."""
    writer.heading(title, 1)
    first = parts[0].document
    for text in dict.fromkeys(text for part in parts for text in warnings(part.document)):
        writer.warn(text)
    writer.table(("", ""), circumstances({**first["run"], **seconds_of(parts)}))
    compared = [line for part in parts for line in comparisons(part.document)]
    if compared:
        writer.heading("Published, and here", 2)
        writer.table(("figure", "published", "here", "why they differ"), compared)
    missing = list(dict.fromkeys(one for part in parts for one in part.experiment.missing))
    if missing:
        writer.heading("Figures that need something that is not built yet", 2)
        writer.items([f"{name}: {why}" for name, why in missing])
    for part in parts:
        write_part(writer, part, alone=len(parts) == 1)
    return writer.text()


def write_part(writer, part, alone):
    if not alone:
        writer.heading(part.experiment.title, 2)
    if part.experiment.text:
        writer.paragraph(" ".join(part.experiment.text.split()))
    for name, (title, svg) in part.pictures.items():
        writer.picture(title, name, svg)
    for value in part.experiment.values:
        titles, lines = table_of(part, value)
        if lines:
            unit = f", {value.unit}" if value.unit else ""
            writer.paragraph(f"{value.name.replace('_', ' ')}{unit}: median, and quartiles")
            writer.table(titles, lines)
    if part.document["losses"]:
        writer.paragraph("Losses, counted at the network:")
        writer.table(("network", "asked for", "happened", "packets"), losses(part.document))
    lacking = not_run(part)
    if lacking:
        writer.paragraph("Not measured:")
        writer.items(lacking)
