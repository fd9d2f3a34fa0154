#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""diwarp-compare as a user runs it. Called with the name of one case; --list names all. No figure is
checked: ratios depend on the host."""
import json
import os
import re
import shutil
import sys
from xml.etree import ElementTree

from harness import PATIENCE, Skipped, case, check, check_sentence, main, need_ipv6, path, run

SHORT = ("--rounds", 2, "--time", 5)


def listed():
    return [line.split()[0] for line in run("compare", "--list").stdout.splitlines()]


def check_spread(spread):
    order = [spread[name] for name in ("min", "low_quartile", "median", "high_quartile", "max")]
    check(0 <= order[0] and order == sorted(order), spread)


def check_row(row, rounds):
    check(row["title"] and row["unit"], row)
    check("not_measured" not in row, row)
    check(len(row["lane"]["rounds"]) == rounds, row)
    for lane in (row["lane"], row.get("baseline")):
        for end in ("near", "far") if lane else ():
            check(lane["processor"][end]["total_s"] >= 0, row)
    check((row["target"] is None) == (row["reached"] is None), row)
    if "baseline" in row:
        check(len(row["baseline"]["rounds"]) == rounds and min(row["baseline"]["rounds"]) > 0, row)
        check(min(row["lane"]["rounds"]) > 0, row)
    check_spread(row["ratio" if "baseline" in row else "value"])


# Only of programs that are not ours, and where the host forbids it, there may be no figure.
UNMEASURED = {"^(local-)?fabric-": r"fi_pingpong is not installed|fi_pingpong -p .* (failed:|in time)",
              "^local-ucx-": r"ucx_perftest is not installed|ucx_perftest: .* (failed:|in time)",
              "^idle-queue-pairs$": r"needs \d+ file descriptors",
              "^ud-.*-bandwidth$": "this kernel has no UDP_SEGMENT"}


def check_unmeasured(row):
    for name, reason in UNMEASURED.items():
        if re.match(name, row["name"]) and re.match(reason, row["not_measured"]):
            return
    raise AssertionError(row)


@case()
def all_rows():
    """Every row is in the table and in the JSON, with what it was measured on and how."""
    done = run("compare", "--rounds", 1, "--time", 5, "--json", path("all.json"),
               patience=5 * PATIENCE)
    with open(path("all.json")) as file:
        result = json.load(file)
    for name in ("kernel", "processor", "processors", "udp_gso_gro", "crc_backend",
                 "datagram_backend", "stream_backend", "rmem_max", "udp_receive_buffer"):
        check(name in result["machine"] and name in done.stdout, f"no {name}: {result['machine']}")
    check(result["settings"]["rounds"] == 1 and result["settings"]["milliseconds"] == 5, result)
    check([row["name"] for row in result["rows"]] == listed(), result["rows"])
    for row in result["rows"]:
        if "not_measured" in row:
            check_unmeasured(row)
        else:
            check_row(row, rounds=1)
        check(row["title"] in done.stdout, f"{row['title']} is not in the table: {done.stdout}")
    check(all(len(line) <= 80 for line in done.stdout.splitlines()), done.stdout)


@case()
def rows_are_chosen_by_name():
    names = [row["name"] for row in json.loads(run(
        "compare", *SHORT, "--only", "^(UD|rc)-send-latency", "--json", "-").stdout)["rows"]]
    check(names == ["ud-send-latency", "rc-send-latency"], names)


@case()
def plot():
    if not shutil.which("gnuplot"):
        done = run("compare", *SHORT, "--plot", path("plot.svg"), status=1)
        check_sentence("compare", done.stderr, "gnuplot-nox")
        raise Skipped("gnuplot is not installed (gnuplot-nox): no plot was made")
    run("compare", *SHORT, "--only", "^(ud|rc)-send-latency$", "--plot", path("plot.svg"))
    root = ElementTree.parse(path("plot.svg")).getroot()
    text = " ".join(root.itertext())
    check(root.tag.endswith("}svg"), root.tag)
    for title in ("UD Send 64 B / UDP", "RC Send 64 B / TCP"):
        check(title in text, f"{title} is not in the plot: {text}")


@case()
def libfabric():
    """Its providers against diwarp, where it is installed; else the rows say what to install."""
    result = json.loads(run("compare", *SHORT, "--only", "^fabric-.*-small$", "--json", "-").stdout)
    check(len(result["rows"]) == 4, result)
    if not shutil.which("fi_pingpong"):
        for row in result["rows"]:
            check("libfabric-bin" in row["not_measured"], row)
        raise Skipped("fi_pingpong is not installed (libfabric-bin): it was not run")
    check(re.match(r"\d+\.\d+", result["machine"]["libfabric"]), result["machine"])
    for row in result["rows"]:
        check_row(row, rounds=2)


# A server that never ends, and a client that has got its figure.
FI_PINGPONG = """#!/usr/bin/env python3
import socket, sys, time
if "-B" in sys.argv:
    listener = socket.create_server(("127.0.0.1", int(sys.argv[sys.argv.index("-B") + 1])))
    time.sleep(60)
print("bytes usec/xfer\\n64 5.82")
"""


@case()
def hung_server_of_libfabric():
    """Of its two ends the one is named that does not end."""
    with open(path("fi_pingpong"), "w") as file:
        file.write(FI_PINGPONG)
    os.chmod(path("fi_pingpong"), 0o755)
    os.environ["PATH"] = os.path.dirname(path("fi_pingpong")) + ":" + os.environ["PATH"]
    only = ("--only", "^fabric-tcp-small$", "--json", "-")
    row = json.loads(run("compare", *SHORT, *only).stdout)["rows"][0]
    check(row.get("not_measured") == "fi_pingpong -p tcp: its server did not end in time", row)


@case()
def ipv6():
    need_ipv6()
    only = "^(ud-send-latency|ud-rate-64|rc-write-bandwidth)$"
    rows = json.loads(run("compare", *SHORT, "--ipv6", "--only", only, "--json", "-").stdout)["rows"]
    check(len(rows) == 3, rows)
    for row in rows:
        check_row(row, rounds=2)


@case()
def size_beyond_a_datagram():
    """Of the lanes that are one datagram: what they cannot carry is told, and the rest is measured."""
    only = "^(ud-send-latency|rc-send-latency)$"
    rows = json.loads(run("compare", *SHORT, "--size", "100K", "--only", only, "--json").stdout)["rows"]
    check(rows[0]["not_measured"] == "a datagram carries at most 65507 bytes", rows)
    check("100 KiB" in rows[1]["title"], rows)
    check_row(rows[1], rounds=2)


@case()
def list_has_names_and_targets():
    lines = run("compare", "--list").stdout.splitlines()
    check(len(lines) >= 20 and len(set(listed())) == len(lines), lines)
    check(any(re.match(r"ud-send-latency +UD Send 64 B / UDP +<= 1\.15$", line) for line in lines),
          lines)


@case()
def wrong_options():
    for options, part in ((("--only", "no-such-row"), "no row's name"),
                          (("--only", "("), "not a regular expression"),
                          (("--rounds", 0), "--rounds"),
                          (("--time", 0), "--time"),
                          (("--size", 3), "--size needs one number"),
                          (("--size", "2M"), "--size needs one number"),
                          (("--size", "4,8"), "--size needs one number"),
                          (("--size", "big"), "not a size"),
                          (("--rounds", "some"), "--rounds"),
                          (("--cpus", "1"), "two processors"),
                          (("--cpus", "0,4000", "--only", "^ud-send-latency"), "processor 4000"),
                          (("--json", path("no/such/folder.json")), "cannot write"),
                          (("--plot", path("no/such/folder.svg")), "cannot write|gnuplot"),
                          (("--nonsense",), "nonsense")):
        check_sentence("compare", run("compare", *options, status=1).stderr, part)


if __name__ == "__main__":
    sys.exit(main())
