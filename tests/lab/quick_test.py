#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every experiment in its quick form, with diwarp's own programs; and all in one report."""
import json
import os
import subprocess
import sys

from lab import LAB, case, check, main, path, where, write
from diwarp_lab import experiment

PATIENCE = 110
# Not the lab's fault: what a tool or a network has not, and what diwarp-compare does not measure on a
# busy machine. Each experiment allows all messages to be lost, and waits for 20 s or more: that a
# program fails is a defect, on a busy machine as well.
EXCUSES = ("has no --", "impairs datagrams alone", "it is for other values",
           "no network can be had", "not measured", "is not installed")


def run(*options):
    done = subprocess.run(
        ["/usr/bin/python3", "-B", os.path.join(LAB, "diwarp-lab"), "--quick", "--tools",
         where.tools, "--out", path("out"), *options], stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=PATIENCE,
        env={**os.environ, "DIWARP_LAB_LOCK": f"test-{os.getpid()}"})
    print(done.stdout)
    check(done.returncode in (0, 3), done.stderr)


def check_results(folder):
    with open(os.path.join(folder, "results.json")) as file:
        found = json.load(file)
    check(found["complete"] and found["run"]["quick"], found["ended"])
    check(any(cell["values"] for cell in found["cells"]) or all_excused(found), found["cells"])
    for cell in found["cells"]:
        for why in cell["failures"] + ([cell["not_run"]] if cell["not_run"] else []):
            check(any(excuse in why for excuse in EXCUSES), f"{cell['lane']}: {why}")
    check("<html" in open(os.path.join(folder, "report.html")).read(), "no report")
    return found


def all_excused(found):
    return all(cell["not_run"] for cell in found["cells"])


@case(*((name,) for name in experiment.names()
        if not experiment.load(experiment.find(name)).combined))
def experiment_runs(name):
    run(name)
    found = check_results(path("out"))
    check(found["experiment"] == name, found["experiment"])


@case()
def figures_are_one_report():
    """With lanes enough to compare one published number."""
    run("figures", "--lanes", "^(UD Send|RC Send|neither)$", "--rounds", "1")
    check_results(path("out/latency"))
    with open(path("out/report.md")) as file:
        text = file.read()
    for wanted in ("Published, and here", "-18.1 %", "+33.4 %", "not built yet", "MPI",
                   "](latency/latency.svg)" if "no matplotlib" not in text else "no matplotlib"):
        check(wanted in text, f"{wanted!r} is not in {text}")


@case()
def the_experiment_of_the_document_runs():
    """docs/lab.md has one of a page."""
    with open(os.path.join(LAB, "..", "..", "docs", "lab.md")) as file:
        text = file.read()
    body = text.split("```python experiment\n")[1].split("```")[0]
    name = write("mine.py", body)
    run(name)
    found = check_results(path("out"))
    check([cell["lane"] for cell in found["cells"]] == ["UD", "RC"] * 2, found["cells"])
    check("| UD beside RC at 1 % loss | +50 % |" in open(path("out/report.md")).read(), "report")


if __name__ == "__main__":
    sys.exit(main())
