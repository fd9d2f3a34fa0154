#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""diwarp-lab as users run it, and what goes wrong around it: a clear sentence, partial results that
are kept and marked, nothing left behind."""
import contextlib
import csv
import ctypes
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time

from lab import LAB, Skipped, case, check, fake, main, path, wait_until, where, write

PATIENCE = 60
NEW_MOUNTS, NEW_USER = 0x20000, 0x10000000
libc = ctypes.CDLL(None, use_errno=True)

TEXT = '''"""An example"""
network({networks})
points(size=[1, 2, 3])
rounds(least=2, most=2, warmup=0)
value("speed", "mb_per_s", unit="MB/s")
lane("a", pair("bandwidth", "--size {{size}}"))
lane("b", pair("bandwidth", "--size {{size}}"))
figure("speed", "speed", x="size")
'''
ROW = 'print(json.dumps([{"mb_per_s": 5}]))'
SLOW = 'open(os.path.dirname(__file__) + "/begun", "a").write("x")\ntime.sleep(0.3)\n' + ROW


def prepare(client=ROW, networks='"loopback"'):
    """Programs that stand in for diwarp's, and an experiment with them."""
    fake("bandwidth", client)
    return write("one.py", TEXT.format(networks=networks))


def begin(*options, variables=None, **more):
    """In its quick form it does not wait for an idle machine."""
    os.makedirs(path("temporary"), exist_ok=True)
    environment = {**os.environ, "DIWARP_LAB_LOCK": f"test-{os.getpid()}",
                   "TMPDIR": path("temporary"), **(variables or {})}
    return subprocess.Popen(
        ["/usr/bin/python3", "-B", os.path.join(LAB, "diwarp-lab"), "--tools", where.folder,
         "--quick", *map(str, options)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, env=environment, **more)


def lab(*options, status=0, **more):
    process = begin(*options, **more)
    try:
        out, errors = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    check(process.returncode == status, f"status {process.returncode}, not {status}: {out}{errors}")
    return out, errors


def sentence(errors, *parts):
    """The last line of the errors is the lab's own, and has these parts."""
    line = (errors.strip().splitlines() or [""])[-1]
    check(line.startswith("diwarp-lab: ") and "Traceback" not in errors, errors)
    for part in parts:
        check(part in line, f"{part!r} is not in {line!r}")


def results(folder="out"):
    with open(path(f"{folder}/results.json")) as file:
        return json.load(file)


@case()
def a_run_writes_table_document_plots_and_report():
    one = prepare()
    lab(one, "--out", path("out"))
    found = results()
    check(found["complete"] and found["ended"] == "" and len(found["cells"]) == 6, found)
    check(found["cells"][0]["values"]["speed"]["median"] == 5, found["cells"][0])
    run = found["run"]
    check(run["seed"] == 1 and run["machine"]["kernel"] and run["command"], run)
    with open(path("out/results.csv"), newline="") as file:
        check(len(list(csv.DictReader(file))) == 12, "rows")
    for name in ("report.md", "report.html"):
        check("An example" in open(path(f"out/{name}")).read(), name)
    drawn = os.path.exists(path("out/speed.svg"))
    check(drawn or "no matplotlib" in run["notes"][0], run["notes"])


@case()
def the_list_names_experiments_and_networks():
    out, _ = lab("--list")
    for name in ("loss", "figures", "latency", "switch", "built-in"):
        check(f"\n  {name} " in out, out)


WRONG = {
    "no_experiment": ([], "Name an experiment"),
    "unknown": (["lost"], "no experiment lost"),
    "network": (["loss", "--network", "x"], "no network x"),
    "option": (["loss", "--loss", "200"], "at most 100"),
    "unable": (["loss", "--network", "loopback", "--loss", "1"], "loopback has no loss"),
    "not_these_points": (["loss", "--network", "veth", "--points", "loss=1"], "veth has no loss"),
    "letters": (["loss", "--points", "size=abc"], "size needs whole numbers"),
    "percent": (["loss", "--points", "loss=200"], "at most 100"),
    "every": (["loss", "--every", "0"], "not each 0th"),
    "every_half": (["loss", "--every", "1.5"], "a whole number"),
    "points": (["loss", "--points", "speed=3"], "one of loss, size"),
    "lanes": (["loss", "--lanes", "quux"], "No lane matches"),
    "lanes_of_all": (["figures", "--lanes", "quux"], "No lane matches"),
    "points_of_none": (["figures", "--points", "colour=1"], "--points needs NAME=A,B"),
    "points_twice": (["loss", "--points", "size=1K,1024"], "twice"),
    "loss_twice": (["loss", "--loss", "1,1"], "twice"),
    "hosts": (["broadcast", "--network", "router"], "router has 2 hosts"),
    "self_check_of_bursts": (["loss", "--self-check", "--burst", "5"], "without --burst"),
    "volume": (["loss", "--volume", "much"], "not a number"),
    "self_check": (["loss", "--self-check", "--loss", "0"], "above 0"),
}


@case(*((name,) for name in WRONG))
def wrong_usage_is_refused(name):
    prepare()
    options, told = WRONG[name]
    _, errors = lab(*options, "--out", path("out"), status=1)
    sentence(errors, told)
    check(not os.path.exists(path("out")), "it leaves a folder, which the next run is refused for")


RANGES = {"rounds": (0, 5000, -1, "x"), "limit": (-1, 0, "nan", "inf"), "packets": (-5, 0),
          "seed": (-1, 0.5)}


@case(*((name,) for name in RANGES))
def a_number_out_of_its_range_is_wrong_usage(name):
    prepare()
    for value in RANGES[name]:
        _, errors = lab("loss", f"--{name}={value}", "--out", path("out"), status=2)
        sentence(errors, f"--{name}", str(value))


@case()
def the_version_is_told():
    out, _ = lab("--version")
    check(re.fullmatch(r"diwarp-lab \d+\.\d+\.\d+\n", out), out)


@case()
def the_list_fits_a_terminal():
    out, _ = lab("--list")
    check(max(map(len, out.splitlines())) < 80, out)


@case(("--list",), ("--help",), ("--version",))
def a_full_standard_output_is_told(option):
    with open("/dev/full", "w") as full:
        done = subprocess.run(["/usr/bin/python3", "-B", os.path.join(LAB, "diwarp-lab"), option],
                              stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
    check(done.returncode == 1, done.returncode)
    sentence(done.stderr, "Standard output cannot be written", "No space left")


@case()
def a_list_without_standard_output_is_refused():
    lab_list = f"exec /usr/bin/python3 -B {shlex.quote(os.path.join(LAB, 'diwarp-lab'))} --list >&-"
    done = subprocess.run(["sh", "-c", lab_list], stderr=subprocess.PIPE, text=True,
                          timeout=PATIENCE)
    check(done.returncode == 1, done.returncode)
    sentence(done.stderr, "Standard output cannot be written", "Bad file descriptor")


@case()
def it_ends_quietly_when_nobody_reads():
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as closed:
        done = subprocess.run(["/usr/bin/python3", "-B", os.path.join(LAB, "diwarp-lab"), "--list"],
                              stdout=closed, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
    check(done.returncode == 141 and not done.stderr, done)


@case()
def an_interrupt_while_it_is_loaded_ends_it_quietly():
    """A module that it imports is interrupted as by Ctrl-C."""
    write("argparse.py", "raise KeyboardInterrupt\n")
    done = subprocess.run(["/usr/bin/python3", "-B", os.path.join(LAB, "diwarp-lab"), "--list"],
                          env={**os.environ, "PYTHONPATH": where.folder}, capture_output=True,
                          text=True, timeout=PATIENCE)
    check(done.returncode == 130 and not done.stderr, done)


@case()
def nothing_measured_is_not_all_measured():
    """Programs that die before anything is tried."""
    one = prepare()
    fake("bandwidth", "", 'sys.exit("diwarp-bandwidth: no library")')
    out, _ = lab(one, "--out", path("out"), status=3)
    check("--help ended with status 1: diwarp-bandwidth: no library" in out, out)
    check(not any(cell["rounds"] for cell in results()["cells"]), results())


@case()
def what_an_experiment_leaves_out_is_no_failure():
    prepare()
    text = TEXT.format(networks='"loopback"')
    text = text.replace('lane("b", ', 'lane("b", only={"size": [1]}, how=')
    lab(write("only.py", text), "--out", path("out"))
    check(sum(bool(cell["not_run"]) for cell in results()["cells"]) == 2, results())


@case()
def an_experiments_settings_are_left_out_of_a_network_that_lacks_them():
    """The user chose it; the report says what is missing."""
    one = prepare(networks='"switch", rate="10M", delay=5')
    lab(one, "--network", "loopback", "--out", path("out"))
    notes = results()["run"]["notes"]
    check("The network loopback leaves out: rate, delay" in notes, notes)
    _, errors = lab(one, "--network", "loopback", "--delay", "5", "--out", path("more"), status=1)
    sentence(errors, "loopback has no delay")
    check(not os.path.exists(path("more")), "it leaves a folder")


@case()
def an_experiment_that_exits_is_told():
    prepare()
    _, errors = lab(write("ends.py", "import sys\nsys.exit(3)\n"), status=1)
    sentence(errors, "ends.py:2: ", "sys.exit(3)")


@case()
def a_killed_run_is_marked_and_not_overwritten():
    """Before its first whole point."""
    one = prepare(SLOW)
    process = begin(one, "--out", path("out"))
    try:
        wait_until(lambda: begun() > 0 or process.poll() is not None, "nothing runs")
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)
    check(not results()["complete"], results())
    wait_until(lambda: not programs(), f"left behind: {programs()}")
    os.remove(path("out/results.json"))
    with open(path("out/results.csv")) as file:
        before = file.read()
    _, errors = lab(one, "--out", path("out"), status=1)
    sentence(errors, "has results already")
    check(open(path("out/results.csv")).read() == before, "it was overwritten")


@case()
def matplotlib_leaves_nothing_where_no_home_is_writable():
    need_root()
    one = prepare()
    os.chmod(where.folder, 0o777)
    os.chmod(path("diwarp-bandwidth"), 0o755)
    os.makedirs(path("temporary"), exist_ok=True)
    os.chmod(path("temporary"), 0o777)

    def become_user():
        os.environ.pop("MPLCONFIGDIR", None)
        os.setgid(65534)
        os.setuid(65534)

    _, errors = lab(one, "--out", path("out"), preexec_fn=become_user)
    check("created a temporary" not in errors, errors)
    check(not os.listdir(path("temporary")), os.listdir(path("temporary")))


@case()
def a_mistake_in_an_experiment_is_told_with_its_line():
    prepare()
    _, errors = lab(write("bad.py", "value('a')\nlain('x')\n"), status=1)
    sentence(errors, "bad.py:2: ")


@case()
def no_tools_are_refused():
    os.mkdir(path("empty"))
    _, errors = lab("loss", "--tools", path("empty"), status=1)
    sentence(errors, "no diwarp-bandwidth", "--tools")


@case()
def results_are_not_overwritten():
    one = prepare()
    lab(one, "--out", path("out"))
    _, errors = lab(one, "--out", path("out"), status=1)
    sentence(errors, "has results already")


@case()
def a_lane_that_fails_makes_results_incomplete_and_keeps_the_others():
    one = prepare('if "2" in sys.argv: sys.exit("diwarp-bandwidth: The port is in use.")\n' + ROW)
    out, _ = lab(one, "--out", path("out"), status=3)
    check("The port is in use" in out, out)
    failures = [cell["failures"] for cell in results()["cells"] if cell["point"]["size"] == 2]
    check(len(failures) == 2 and all("status 1" in one[0] for one in failures), failures)
    check(sum(cell["rounds"] for cell in results()["cells"]) == 8, results())


@case()
def two_labs_at_once():
    one = prepare(SLOW)
    first = begin(one, "--out", path("first"))
    try:
        wait_until(lambda: os.path.exists(path("begun")), "the first one does not run")
        _, errors = lab(one, "--out", path("second"), status=1)
        sentence(errors, "Another diwarp-lab runs on this host", str(first.pid))
        check(not os.path.exists(path("second")), "it wrote something")
        first.communicate(timeout=PATIENCE)
        check(first.returncode == 0, first.returncode)
    finally:
        first.kill()
    lab(one, "--out", path("third"))


def programs():
    """Processes of this case's folder."""
    found = []
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            with open(f"/proc/{int(entry)}/cmdline", "rb") as file:
                if where.folder.encode() in file.read() and int(entry) != os.getpid():
                    found.append(int(entry))
    return found


ENDS = {"interrupt": (signal.SIGINT, 130), "terminate": (signal.SIGTERM, 143),
        "kill": (signal.SIGKILL, -9)}


@case(*((name, network) for name in ENDS for network in ("loopback", "switch")))
def a_run_that_is_ended_keeps_what_it_has_and_leaves_nothing(name, network):
    """Once there is a whole point, in the midst of a program."""
    number, status = ENDS[name]
    one = prepare(SLOW, f'"{network}"')
    if network == "switch":
        os.symlink(os.path.join(TOOLS, "diwarp-switch"), path("diwarp-switch"))
    process = begin(one, "--out", path("out"))
    try:
        wait_until(lambda: begun() > 4 or process.poll() is not None, "nothing runs")
        process.send_signal(number)
        _, errors = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    check(process.returncode == status, f"{process.returncode}: {errors}")
    wait_until(lambda: not programs(), f"left behind: {programs()}")
    check(not os.listdir(path("temporary")), os.listdir(path("temporary")))
    found = results()
    check(not found["complete"] and found["ended"], found)
    check(any(cell["rounds"] for cell in found["cells"]), found["cells"])
    if name != "kill":
        sentence(errors, "interrupted")
        check("partial: the run was interrupted" in open(path("out/report.md")).read(), "report")


STOP = "import os, signal; os.kill(os.getpid(), signal.%s)\n"
REPORTING = """
from diwarp_lab import report
class Stopping(report.Markdown):
    def __init__(self):
        report.Markdown = Stopping.__base__
        {stop}


if report.Markdown.__name__ != "Stopping":
    report.Markdown = Stopping
"""
STOPS = {"SIGTERM": 143, "SIGHUP": 129, "SIGINT": 130}


@case(*((when, name) for when in ("drawing", "reporting") for name in STOPS))
def a_run_that_is_ended_after_its_last_row_is_marked(when, name):
    """While it loads what draws, or begins to write its report."""
    one, stop = prepare(), STOP % name
    more = {}
    if when == "drawing":
        write("matplotlib.py", stop)
        more = {"PYTHONPATH": where.folder}
    else:
        with open(one, "a") as file:
            file.write(REPORTING.format(stop=stop))
    out, errors = lab(one, "--out", path("out"), status=STOPS[name], variables=more)
    sentence(errors, "interrupted")
    found = results()
    check(not found["complete"] and found["ended"] == "the run was interrupted", found["ended"])
    check("partial: the run was interrupted" in open(path("out/report.md")).read(), "report")
    check_listed(out)


def check_listed(out, folder="out"):
    """What the last line names is there, and nothing else that is the reader's."""
    listed = {name.rpartition("/")[2] for name in out.split("Results: ")[1].split("\n")[0].split(", ")}
    there = {name for name in os.listdir(path(folder)) if not name.endswith((".svg", ".png"))}
    check(listed == there, f"{listed} are listed, {there} are there")


def begun():
    try:
        return os.path.getsize(path("begun"))
    except OSError:
        return 0


@case()
def a_run_may_be_killed_at_any_moment():
    one = prepare(SLOW)
    for number in range(12):
        process = begin(one, "--out", path(f"out{number}"))
        time.sleep(0.05 + 0.15 * number)
        process.kill()
        process.communicate(timeout=PATIENCE)
        wait_until(lambda: not programs(), f"left behind: {programs()}")
        check(not os.listdir(path("temporary")), os.listdir(path("temporary")))
        if os.path.exists(path(f"out{number}/results.json")):
            check(not results(f"out{number}")["complete"], number)


def in_namespaces(flags, *actions):
    """What a child does before it becomes the lab: namespaces of its own, and something in them."""
    def prepare_child():
        if libc.unshare(flags) != 0:
            os._exit(77)
        for action in actions:
            action()
    return prepare_child


def mount(source, target, kind, flags, data=None):
    if libc.mount(source.encode(), target.encode(), kind and kind.encode(), flags,
                  data and data.encode()) != 0:
        os._exit(77)


PRIVATE, BIND = 0x44000, 0x1000  # MS_REC | MS_PRIVATE, MS_BIND
BIND_WITHOUT_DEVICES = 0x1024  # MS_BIND | MS_REMOUNT | MS_NODEV


def need_root():
    if os.geteuid() != 0:
        raise Skipped("this needs root")


@case()
def a_full_disk_is_told_and_what_was_written_stays():
    """A file system of 32 KiB, which the pictures do not fit in."""
    need_root()
    if subprocess.run(["/usr/bin/python3", "-c", "import matplotlib"],
                      capture_output=True).returncode != 0:
        raise Skipped("there is no matplotlib here, whose pictures fill the disk")
    one = prepare()
    os.mkdir(path("small"))
    keep = os.open(path("small"), os.O_RDONLY)

    def small_disk():
        mount("none", "/", None, PRIVATE)
        mount("tmpfs", path("small"), "tmpfs", 0, "size=32k")

    wrapped = write("look.sh", f'/usr/bin/python3 -B {LAB}/diwarp-lab "$@"; status=$?\n'
                               f'cp -r {path("small")} {path("copy")}; exit $status\n')
    process = subprocess.run(
        ["sh", wrapped, "--quick", "--tools", where.folder, one, "--out", path("small/out")],
        capture_output=True, text=True, timeout=PATIENCE,
        env={**os.environ, "DIWARP_LAB_LOCK": "full"},
        preexec_fn=in_namespaces(NEW_MOUNTS, small_disk))
    os.close(keep)
    check(process.returncode == 1, f"{process.returncode}: {process.stderr}")
    sentence(process.stderr, "The disk under", "is full", "--out")
    with open(path("copy/out/results.csv"), newline="") as file:
        check(len(list(csv.DictReader(file))) == 12, "the table is not whole")
    found = results("copy/out")
    check(found["cells"] and not found["complete"] and "is full" in found["ended"], found["ended"])
    check_listed(process.stdout, "copy/out")


MISSING = {"nft": ("router", "there is no nft here"),
           "ethtool": ("router", "there is no ethtool here"),
           "ip": ("veth", "there is no ip here"),
           "tun": ("switch", "no TAP devices can be made")}


@case(*((name,) for name in MISSING))
def another_network_serves_where_this_is_missing(missing):
    network, told = MISSING[missing]
    need_root()
    hidden = "/dev/net" if missing == "tun" else \
        subprocess.run(["sh", "-c", f"PATH=$PATH:/usr/sbin:/sbin command -v {missing}"],
                       capture_output=True, text=True).stdout.strip()
    if not hidden:
        raise Skipped(f"there is no {missing} here")
    write("nothing", "")

    def hide():
        mount("none", "/", None, PRIVATE)
        if missing == "tun":
            mount(hidden, hidden, None, BIND)
            mount("none", hidden, None, BIND_WITHOUT_DEVICES)
            return
        for name in {hidden, os.path.realpath(hidden)}:
            mount(path("nothing"), name, None, BIND)

    one = prepare(networks=f'"{network}"')
    lab(one, "--out", path("out"), preexec_fn=in_namespaces(NEW_MOUNTS, hide))
    notes = " ".join(results()["run"]["notes"])
    check(told in notes and "The network built-in is used" in notes, notes)
    _, errors = lab(one, "--network", network, "--out", path("strict"), status=1,
                    preexec_fn=in_namespaces(NEW_MOUNTS, hide))
    sentence(errors, told)


def become_nobody():
    """A user of a user namespace in which no others may be made."""
    with open("/proc/self/uid_map", "w") as file:
        file.write("65534 0 1")
    with open("/proc/sys/user/max_user_namespaces", "w") as file:
        file.write("0")


@case()
def without_root_and_user_namespaces_the_built_in_network_serves():
    need_root()
    one = prepare(networks='"switch"')
    out, _ = lab(one, "--out", path("out"), preexec_fn=in_namespaces(NEW_USER, become_nobody))
    notes = " ".join(results()["run"]["notes"])
    check("without root or user namespaces" in notes and "built-in is used" in notes, notes)
    check(notes.split(":")[0] in out, out)
    _, errors = lab(one, "--network", "switch", "--out", path("strict"), status=1,
                    preexec_fn=in_namespaces(NEW_USER, become_nobody))
    sentence(errors, "no network namespaces here, without root or user namespaces")


@case()
def a_user_without_root_has_networks_of_user_namespaces():
    need_root()
    one = prepare(networks='"veth"')
    os.chmod(where.folder, 0o777)
    os.chmod(path("diwarp-bandwidth"), 0o755)

    def become_user():
        os.setgid(65534)
        os.setuid(65534)

    lab(one, "--out", path("out"), preexec_fn=become_user)
    found = results()
    if found["run"]["notes"] and "user namespaces" in found["run"]["notes"][0]:
        raise Skipped(found["run"]["notes"][0])
    check({cell["network"] for cell in found["cells"]} == {"veth"}, found["run"]["notes"])


@case()
def without_matplotlib_there_are_no_plots_and_it_is_told():
    """A Python that does not see Debian's packages."""
    one = prepare()
    process = subprocess.run(
        ["/usr/bin/python3", "-S", "-B", os.path.join(LAB, "diwarp-lab"), "--tools", where.folder,
         "--quick", one, "--out", path("out")], capture_output=True, text=True, timeout=PATIENCE,
        env={**os.environ, "DIWARP_LAB_LOCK": f"test-{os.getpid()}"})
    check(process.returncode == 0 and "python3-matplotlib" in process.stdout, process)
    check("There are no plots" in open(path("out/report.md")).read(), "report")


TOOLS = None

TRANSMISSIONS = """seconds,event,number,in_flight,early,window,rate,round_trip_us
0.000000,first,1,0,0,10,0,100.0
0.000100,first,2,1,0,10,0,100.0
0.000300,acknowledged,0,1,1,10,9000,110.0
0.000310,lost,1,1,1,10,9000,110.0
0.002510,probe,1,1,1,10,9000,110.0
0.002700,acknowledged,2,0,0,12,9000,120.0
"""


@case()
def transmissions_of_a_connection_are_told_and_plotted():
    file = write("sent.csv", TRANSMISSIONS)
    out, _ = lab("--transmissions", file)
    check("2 first, 1 lost, 1 probe, 2 acknowledged" in out, out)
    check("2.40 ms from 0.000300 s on" in out, out)
    if "Plot: " in out:
        with open(file + ".png", "rb") as picture:
            check(picture.read(4) == b"\x89PNG", "no picture")
    else:
        check("install python3-matplotlib" in out, out)


@case()
def a_stall_that_lasts_to_the_end_is_told():
    file = write("silent.csv", TRANSMISSIONS + "0.003000,first,3,0,0,12,9000,120.0\n"
                                               "0.503000,probe,3,1,0,12,9000,120.0\n")
    out, _ = lab("--transmissions", file)
    check("500.00 ms from 0.003000 s on" in out, out)


@case()
def an_association_that_begins_anew_has_numbers_of_its_own():
    file = write("anew.csv", TRANSMISSIONS.replace(",1,", ",9001,").replace(",2,", ",9002,")
                 + "0.003000,first,7,0,0,10,0,100.0\n"
                   "0.003100,acknowledged,7,0,0,11,9000,100.0\n"
                   "0.010000,first,8,0,0,11,9000,100.0\n"
                   "0.010100,acknowledged,8,0,0,12,9000,100.0\n")
    out, _ = lab("--transmissions", file)
    check("0.10 ms from 0.010000 s on" in out, out)
    check("from 0.003000 s on" in out and "7.1" not in out, out)


@case()
def a_file_without_transmissions_is_refused():
    for text, part in (("a,b\n", "is no file of --transmissions"),
                       (TRANSMISSIONS.splitlines()[0] + "\n", "has no transmission"),
                       (TRANSMISSIONS + "1,2\n", "line 8")):
        _, errors = lab("--transmissions", write("other.csv", text), status=1)
        sentence(errors, part)


if __name__ == "__main__":
    if "--tools" in sys.argv:
        TOOLS = os.path.abspath(sys.argv[sys.argv.index("--tools") + 1])
    sys.exit(main())
