# SPDX-License-Identifier: Apache-2.0
"""The command line of diwarp-lab."""
import argparse
import datetime
import errno
import os
import re
import shlex
import shutil
import signal
import sys
import textwrap
import time

from . import experiment as experiments
from . import lock, machine, plots, report, selfcheck, transmissions
from .basics import Refusal, where
from .networks import NETWORKS, OPTIONS
from .output import NOT_ENDED, Output, document, refuse_results_in
from .progress import Progress
from .quantities import short
from .results import Results
from .runner import Networks, Runner

# Exit statuses; documented in docs/lab.md.
FINE, REFUSED, USAGE, INCOMPLETE = 0, 1, 2, 3
SIGNALLED = 128  # and the number of the signal
IDLE_PATIENCE = 5  # seconds to wait for an idle machine
REPORTS = ("report.md", "report.html")


class Interrupted(BaseException):
    """A signal asked for the end."""

    def __init__(self, number):
        super().__init__(signal.Signals(number).name)
        self.status = SIGNALLED + number


def whole(least, most):
    """Reads a whole number for argparse."""
    def read(text):
        try:
            number = int(text)
        except ValueError:
            number = None
        if number is None or not least <= number <= most:
            raise argparse.ArgumentTypeError(f"{text} is no whole number from {least} to {most}")
        return number
    return read


def seconds(text):
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not 0 < number <= 1e6:
        raise argparse.ArgumentTypeError(f"{text} is no number of seconds above 0")
    return number


def parser():
    made = argparse.ArgumentParser(
        prog="diwarp-lab", description="Runs experiments with diwarp: networks, programs in them, "
        "lanes in turn within each round, tables, plots and a report.",
        epilog="Network options take one value, or a list (0,1,5) that becomes points. Exit "
        "status: 0 all was measured, 1 refused, 2 wrong usage, 3 some lanes failed or a check does "
        "not hold, 130 interrupted, 143 ended by SIGTERM, 141 nobody reads the output.")
    made.add_argument("--version", action="version",
                      version=f"diwarp-lab {machine.lab_version()}")
    add = made.add_argument
    add("experiment", nargs="?", help="a name that --list shows, or the path of a file.py")
    add("--list", action="store_true", help="name the experiments and the networks, and end")
    add("--quick", action="store_true", help="few points and rounds, to see that all works")
    add("--out", metavar="FOLDER", help="where results go (default: diwarp-lab-EXPERIMENT-TIME)")
    add("--network", metavar="NAME", help=f"one of {', '.join(NETWORKS)} (default: the "
        "experiment's; built-in where there are no namespaces)")
    add("--lanes", metavar="REGEX", help="only lanes whose name matches")
    add("--points", metavar="NAME=A,B", action="append", default=[],
        help="other values of what varies; may be repeated")
    add("--rounds", metavar="N", type=whole(1, 1000), help="exactly so many rounds")
    add("--volume", metavar="BYTES", help="of a run, which make its number of messages: 16M")
    add("--limit", metavar="SECONDS", type=seconds, help="that one program may take")
    add("--seed", metavar="N", type=whole(0, 1 << 62), default=1,
        help="of all that is random (default 1)")
    add("--self-check", action="store_true", help="only prove that the loss that is asked for "
        "(default 0.1,1,3,7) is the loss that happens")
    add("--packets", metavar="N", type=whole(1, 10 ** 7), default=selfcheck.PACKETS,
        help=f"of each rate of --self-check (default {selfcheck.PACKETS})")
    add("--transmissions", metavar="FILE", help="only tell of a file that a tool's --transmissions "
        "wrote, and plot it as FILE.png")
    add("--tools", metavar="FOLDER", help="where diwarp's programs are")
    for name, (unit, _) in OPTIONS.items():
        add(f"--{name}", metavar="V", help=f"of the network: {unit}".replace("%", "%%"))
    return made


def settings_of(arguments):
    """{option: its values} of the network, as the command line has them."""
    found = {}
    for name in OPTIONS:
        text = getattr(arguments, name)
        if text is None:
            continue
        try:
            found[name] = experiments.point_values(name, text.split(","))
        except (experiments.Wrong, ValueError) as error:
            raise Refusal(f"--{name}: {error}.")
    return found


def change_points(experiment, arguments, settings):
    """What the command line says of points, lanes and rounds; what is left of `settings`."""
    left = {}
    for name, values in settings.items():
        if name in experiment.points or len(values) > 1:
            replace_points(experiment, name, values)
        else:
            left[name] = values[0]
    for text in arguments.points:
        name, split, values = text.partition("=")
        if not split or name not in experiment.points:
            raise Refusal(f"--points needs NAME=A,B with one of {', '.join(experiment.points)}, "
                          f"not {text}.")
        try:
            chosen = experiments.point_values(name, values.split(","))
        except (experiments.Wrong, ValueError) as error:
            raise Refusal(f"--points {text}: {error}.")
        replace_points(experiment, name, chosen)
    if arguments.lanes:
        choose_lanes(experiment, arguments.lanes)
    for lane in experiment.lanes:
        experiments.check_counts(experiment, lane)
    if arguments.rounds:
        for rounds in (experiment.rounds, experiment.quick_rounds):
            rounds.least = rounds.most = arguments.rounds
    return left


def volume_of(arguments, experiment):
    """Bytes of a run."""
    if not arguments.volume:
        return experiment.volumes[arguments.quick]
    try:
        return experiments.parse_number(arguments.volume)
    except ValueError as error:
        raise Refusal(f"--volume: {error}.")


def replace_points(experiment, name, values):
    if name not in experiment.points:
        experiment.added.append(name)
    experiment.points[name] = values
    experiment.quick_points.pop(name, None)


def choose_lanes(experiment, regex):
    try:
        chosen = [lane for lane in experiment.lanes if re.search(regex, lane.name)]
    except re.error as error:
        raise Refusal(f"--lanes is no regular expression: {error}.")
    experiment.lanes = chosen


def find_tools(given, program):
    """The folder of diwarp-bandwidth: the given one, the program's own, or one of PATH."""
    for folder in [given] if given else [os.path.dirname(os.path.abspath(program))]:
        if os.path.exists(os.path.join(folder, "diwarp-bandwidth")):
            return folder
    found = None if given else shutil.which("diwarp-bandwidth")
    if not found:
        raise Refusal("There is no diwarp-bandwidth " + (f"in {given}" if given else
                      "beside this program or in PATH") + ": build diwarp, and name the folder of "
                      "its programs with --tools.")
    return os.path.dirname(found)


def print_list():
    if sys.stdout is None:  # it was closed
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    print("Experiments:")
    for name in experiments.names():
        print_entry(name, experiments.load(experiments.find(name)).title)
    print("Networks:")
    for name, kind in NETWORKS.items():
        print_entry(name, f"{kind.about}; can: {', '.join(kind.can) or 'nothing'}")


def print_entry(name, text):
    print(textwrap.fill(text, 79, initial_indent=f"  {name:14}", subsequent_indent=" " * 16))


def busy(patience):
    """Processors' worth of others' work, once that is little or the seconds are up."""
    deadline = time.monotonic() + patience
    while True:
        found = machine.work_of_others()
        if found <= machine.BUSY or time.monotonic() > deadline:
            return found


class Prepared:
    """An experiment that can run as it was asked for."""

    def __init__(self, experiment, folder, results, networks, overrides, volume):
        self.experiment, self.folder, self.results = experiment, folder, results
        self.networks, self.overrides, self.volume = networks, overrides, volume


class Session:
    """All runs of one command."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.settings = settings_of(arguments)
        if arguments.network and arguments.network not in NETWORKS:
            raise Refusal(f"There is no network {arguments.network}: there are "
                          f"{', '.join(NETWORKS)}.")
        self.circumstances, self.begun = None, time.monotonic()
        self.parts, self.status = [], FINE
        self.left_out = []  # sentences

    def look_around(self):
        self.circumstances = {
            "lab_commit": machine.lab_commit(), "version": machine.version(),
            "machine": machine.describe(), "seed": self.arguments.seed,
            "quick": self.arguments.quick, "command": shlex.join(["diwarp-lab", *sys.argv[1:]]),
            "options": {name: value for name, value in vars(self.arguments).items()
                        if value not in (None, False, [])},
            "begun": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
            "busy": round(busy(0 if self.arguments.quick else IDLE_PATIENCE), 2),
            "busy_limit": machine.BUSY, "notes": []}
        if self.circumstances["busy"] > machine.BUSY:
            print(f"The machine is busy with {self.circumstances['busy']:.1f} processors' worth "
                  "of other work: figures will vary.", file=sys.stderr)

    def networks(self, experiment):
        names = (self.arguments.network,) if self.arguments.network else experiment.networks
        asked = {*self.settings, *(text.partition("=")[0] for text in self.arguments.points)}
        return Networks(names, bool(self.arguments.network), asked)

    def self_check(self, experiment):
        others = [name for name in self.settings if name != "loss"]
        if others:
            raise Refusal(f"--self-check proves --loss alone, without --{' and --'.join(others)}.")
        rates = self.settings.get("loss", list(selfcheck.RATES))
        if not all(0 < rate < 100 for rate in rates):
            raise Refusal("--self-check needs losses above 0 and below 100 percent.")
        networks = self.networks(experiment)
        networks.asked = None  # the losses are all that is asked for
        fine = selfcheck.run(networks, rates, self.arguments.seed, self.arguments.packets)
        for note in networks.notes:
            print(note)
        return FINE if fine else INCOMPLETE

    def run(self, path, folder):
        """An experiment, or all that it combines, each in a folder of its own. What is asked for is
        checked of all of them before the first one begins."""
        experiment = experiments.load(path)
        if not experiment.combined:
            return self.run_one(self.prepared(experiment, folder))
        parts = self.prepared_parts(path, experiment, folder)
        try:
            for part in parts:
                self.run_one(part)
        finally:
            self.write_whole(experiment, folder, parts)

    def prepared_parts(self, path, experiment, folder):
        """One that cannot be had is left out, and noted. Refusal where none is left."""
        parts, refusals = [], []
        for name, line in experiment.combined:
            if name not in experiments.names():
                raise experiments.Mistake(path, line, f"there is no experiment {name!r}")
            part = experiments.load(experiments.find(name))
            if part.combined:
                raise experiments.Mistake(path, line, f"{name!r} combines others itself")
            part.rounds = experiment.combined_rounds or part.rounds
            try:
                parts.append(self.prepared(part, os.path.join(folder, name)))
            except Refusal as reason:
                refusals.append((name, reason))
        if not parts:
            raise refusals[0][1]
        if refusals:
            self.status = INCOMPLETE
        for name, reason in refusals:
            self.left_out.append(f"The experiment {name} is left out: {reason}")
        return parts

    def prepared(self, experiment, folder):
        """All that can be checked of it before it runs."""
        names = ", ".join(lane.name for lane in experiment.lanes)
        overrides = change_points(experiment, self.arguments, dict(self.settings))
        if not experiment.lanes:
            raise Refusal(f"No lane matches {self.arguments.lanes}: there are {names}.")
        volume = volume_of(self.arguments, experiment)
        networks = self.networks(experiment)
        results = Results(experiment, networks.possible(
            experiment.point_list(self.arguments.quick), overrides))
        networks.check_hosts(experiment.hosts(results.points()))
        refuse_results_in(folder)
        return Prepared(experiment, folder, results, networks, overrides, volume)

    def run_one(self, prepared):
        experiment, results = prepared.experiment, prepared.results
        if self.circumstances is None:
            self.look_around()
        prepared.networks.notes[:0] = self.left_out
        run = {**self.circumstances, "notes": prepared.networks.notes}
        output = Output(prepared.folder, run, experiment)
        rounds = experiment.quick_rounds if self.arguments.quick else experiment.rounds
        progress = Progress(experiment.name, len(results.points()) * len(experiment.lanes))
        runner = Runner(experiment, results, output, prepared.networks, progress, rounds,
                        self.arguments.seed, prepared.overrides, self.arguments.limit,
                        prepared.volume)
        part = report.Part(experiment, results, None, {})
        ended, refused = NOT_ENDED, False
        try:
            output.begin(results)
            runner.run()
            progress.clear()
            self.finish_one(part, output, run, "")
            ended = ""
        except (Interrupted, KeyboardInterrupt):
            ended = "the run was interrupted"
            raise
        except Refusal as reason:
            ended, refused = str(reason).rstrip("."), True
            raise
        finally:
            progress.clear()
            if refused and not results.rows:
                output.discard()
            elif ended:
                self.finish_one(part, output, run, ended)
            output.close()

    def finish_one(self, part, output, run, ended):
        """Only with its last file the run is complete. `ended` tells why it never will be; for a
        second time, if that happened in here, and then nothing more is drawn."""
        run["seconds"] = round(time.monotonic() - self.begun, 1)
        figures = []
        if part.document is None:
            figures = self.figures_to_draw(part.experiment, run)
            self.parts.append(part)
        else:
            output.remove(*REPORTS)  # they tell of a whole run
        if not part.results.is_whole():
            self.status = INCOMPLETE
        part.document = document(part.experiment, run, part.results, not ended, ended)
        output.write_json(part.results, False, ended or NOT_ENDED)
        for figure in figures:
            drawn = plots.draw(figure, part.results)
            for kind, data in drawn.items():
                output.write_bytes(f"{figure.name}.{kind}", data)
            if drawn:
                part.pictures[figure.name] = (figure.title, drawn["svg"])
        self.write_report(output.write_text, part.experiment.title, [part])
        if not ended:
            output.write_json(part.results, True, "")

    @staticmethod
    def figures_to_draw(experiment, run):
        """None, and a note, where nothing can draw."""
        why_not = plots.why_not()
        if why_not and experiment.figures:
            run["notes"].append(why_not)
        return [] if why_not else experiment.figures

    def write_whole(self, experiment, folder, prepared):
        """The report of all parts; those of figures() have their pictures in their own folders."""
        if not self.parts:
            return
        begun = [part.experiment for part in self.parts]
        missing = [one.experiment.name for one in prepared if one.experiment not in begun]
        if missing:
            self.parts[0].document["run"]["notes"].append(
                f"This report is partial: it ended before {', '.join(missing)}.")
        first = self.parts[0]
        first.experiment.missing += experiment.missing
        parts = [report.Part(part.experiment, part.results, part.document,
                             {f"{part.experiment.name}/{name}": picture
                              for name, picture in part.pictures.items()})
                 for part in self.parts]
        writer = Output.__new__(Output)
        writer.folder = folder
        self.write_report(writer.write_text, experiment.title, parts)

    @staticmethod
    def write_report(write, title, parts):
        for name, writer in zip(REPORTS, (report.Markdown(), report.Html(title))):
            write(name, report.write(writer, title, parts))


def default_folder(path):
    name = os.path.splitext(os.path.basename(path))[0]
    return f"diwarp-lab-{name}-{datetime.datetime.now():%Y%m%d-%H%M%S}"


def summarize(session, folder):
    """What a user sees on a terminal: medians of the first value, and where the rest is."""
    for part in session.parts:
        value = part.experiment.values[0]
        print(f"{part.experiment.title}: {value.name}"
              f"{', ' + value.unit if value.unit else ''} (median)")
        width = max(len(lane.name) for lane in part.experiment.lanes) + 2
        for lane in part.experiment.lanes:
            shown = [(point, median) for point in part.results.points()
                     if (median := part.results.median(value.name, lane.name, point)) is not None]
            if shown:
                print(f"  {lane.name:{width}}" + ", ".join(
                    f"{' '.join(short(v) for v in point.values())}: {report.significant(median)}"
                    for point, median in shown[:6]) + (" ..." if len(shown) > 6 else ""))
        for text in report.not_run(part):
            print(f"  not measured: {text}")
        for text in report.warnings(part.document):
            print(f"  {text}")
    written = [name for name in ("results.csv", "results.json", *REPORTS)
               if os.path.exists(os.path.join(folder, name))]
    if written:
        print(f"Results: {folder}/{', '.join(written)}")


def end_by_signal(number, _):
    raise Interrupted(number)


def run(arguments, program):
    if arguments.list:
        print_list()
        return FINE
    if arguments.transmissions:
        transmissions.show(arguments.transmissions)
        return FINE
    if not arguments.experiment:
        raise Refusal("Name an experiment; --list shows them.")
    path = experiments.find(arguments.experiment)
    loaded = experiments.load(path)
    where.tools = find_tools(arguments.tools, program)
    session = Session(arguments)
    with lock.take():
        if arguments.self_check:
            return session.self_check(loaded)
        folder = arguments.out or default_folder(path)
        try:
            session.run(path, folder)
        finally:
            if session.parts:
                summarize(session, folder)
    return session.status


def guarded(program):
    """The exit status; what users can do something about is told in a sentence."""
    try:
        arguments = parser().parse_args()
        signal.signal(signal.SIGTERM, end_by_signal)
        signal.signal(signal.SIGHUP, end_by_signal)
        return run(arguments, program)
    except SystemExit as end:  # argparse's
        return end.code
    except (Refusal, experiments.Wrong) as reason:
        print(f"diwarp-lab: {reason}", file=sys.stderr)
        return REFUSED
    except (Interrupted, KeyboardInterrupt) as end:
        print("diwarp-lab: interrupted; what was measured before is kept, and marked as partial.",
              file=sys.stderr)
        return getattr(end, "status", SIGNALLED + signal.SIGINT)


def main(program):
    try:
        status = guarded(program)
        if sys.stdout:
            sys.stdout.flush()
        return status
    except BrokenPipeError:
        status = SIGNALLED + signal.SIGPIPE
    except OSError as error:
        what = error.filename or "Standard output"
        print(f"diwarp-lab: {what} cannot be written or read: {error.strerror}.", file=sys.stderr)
        status = REFUSED
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python writes what is left when it ends
    return status
