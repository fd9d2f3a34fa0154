#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What each tool writes with --json, against tools/schema.json; the man pages and the completion of the
command line. Called with the name of one case; --list names all."""
import copy
import json
import os
import re
import shutil
import subprocess
import sys

from harness import (ENDLESS, PATIENCE, Process, Skipped, case, check, main, run, tool, wait_until)

DEVICE_TOOLS = ("pingpong", "bandwidth", "info", "compare", "takeover", "rping", "memory")
TOOLS = (*DEVICE_TOOLS, "stat")
DEAD = 2**22  # more than the number of any process
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools")


def validator():
    """Of Debian's python3-jsonschema, which another Python than Debian's finds only when told where."""
    for folder in ("", "/usr/lib/python3/dist-packages"):
        if folder:
            sys.path.append(folder)
        try:
            import jsonschema  # pylint: disable=import-outside-toplevel
        except ImportError:
            continue
        with open(os.path.join(FOLDER, "schema.json"), encoding="utf-8") as file:
            schema = json.load(file)
        jsonschema.Draft7Validator.check_schema(schema)
        return jsonschema.Draft7Validator(schema)
    raise Skipped("there is no jsonschema (python3-jsonschema): no output was checked")


def check_output(name, text):
    """The text is as the schema has it, and the schema would notice a change of its names."""
    schema = validator()
    values = json.loads(text)
    faults = [f"{list(fault.absolute_path)}: {fault.message}" for fault in schema.iter_errors(values)]
    check(not faults, faults)
    check(values["tool"] == f"diwarp-{name}", values["tool"])
    for place in (values, *values.get("rows", [])[:1]):
        for member in list(place):
            changed = copy.deepcopy(values)
            row = changed if place is values else changed["rows"][0]
            row[member + "_x"] = row.pop(member)
            optional = name == "bandwidth" and member in ("valid_percent", "receiver", "client", "gaps")
            check(optional or not schema.is_valid(changed), f"{member} is not in the schema")
    return values


def measured(name, *options):
    values = check_output(name, run(name, "--loopback", "--iterations", 20, "--max-loss", 100, *options,
                                    "--json").stdout)
    check(values["rows"], values)


@case(*[(transport, operation) for transport, operation in
        (("ud", "send"), ("ud", "write-record"), ("rd", "read"), ("rc", "atomic"), ("rc", "write"))])
def pingpong(transport, operation):
    measured("pingpong", "--transport", transport, "--op", operation)


@case(*[(kind,) for kind in ("plain", "streams", "bidirectional", "clients", "group")])
def bandwidth(kind):
    options = {"plain": (), "streams": ("--streams", 2), "bidirectional": ("--bidirectional",),
               "clients": ("--clients", 2), "group": ("--receivers", 2)}
    measured("bandwidth", *options[kind])


@case()
def compare():
    text = run("compare", "--rounds", 1, "--time", 5, "--only",
               "^(ud-send-latency|ud-record-bandwidth|ud-rate-64|ud-memory|fabric-udp-small)$",
               "--json").stdout
    check(len(check_output("compare", text)["rows"]) == 5, text)


@case()
def compare_of_another_size():
    done = run("compare", "--rounds", 1, "--time", 5, "--size", "2K", "--only",
               "^(ud-send-latency|rc-send-bandwidth)$", "--json")
    values = check_output("compare", done.stdout)
    check(values["settings"]["message_bytes"] == 2048, values["settings"])
    for row in values["rows"]:
        check("2 KiB" in row["title"] and row["target"] is None and row["reached"] is None, row)


@case()
def takeover():
    check_output("takeover", run("takeover", "--rounds", 20, "--json").stdout)


@case(("ud",), ("rc",))
def memory(transport):
    check_output("memory", run("memory", "--transport", transport, "--clients", 5, "--json").stdout)


@case()
def stat():
    server = Process("pingpong", "--loopback", "--iterations", ENDLESS["pingpong"], "--max-loss", 100)
    pid = server.process.pid

    def told():
        return run("stat", "--json").stdout
    wait_until(lambda: any(one["pid"] == pid for one in json.loads(told())["devices"]), "it is not shown")
    values = check_output("stat", told())
    schema = validator()
    for member in values["devices"][0]:
        less = copy.deepcopy(values)
        less["devices"][0].pop(member)
        check(not schema.is_valid(less), f"{member} is not in the schema")
    check_output("stat", run("stat", DEAD, "--json", status=1).stdout)


@case()
def info():
    check_output("info", run("info", "--json").stdout)


@case()
def rping():
    server = Process("rping", "--server", "--address", "127.0.0.1", "--port", 0, "--count", 5, "--json")
    while "listening at" not in server.errors():
        check(server.process.poll() is None, server.errors())
    port = re.search(r"listening at \S+:(\d+)", server.errors()).group(1)
    done = run("rping", "--client", "--address", "127.0.0.1", "--port", port, "--count", 5, "--json")
    server.end(0)
    check_output("rping", done.stdout)
    check_output("rping", server.output)


@case(*[(name,) for name in TOOLS])
def help_names_the_exit_codes(name):
    """As docs/tools.md does."""
    with open(os.path.join(FOLDER, "..", "docs", "tools.md"), encoding="utf-8") as file:
        document = file.read()
    text = run(name, "--help").stdout
    told = re.findall(r"^  (\d+)  ", text[text.index("Exit status:"):], re.MULTILINE)
    check(told == ["0", "1", "130", "141"], told)
    for code in (*told, "143"):
        check(re.search(rf"^\| {code} \|", document, re.MULTILINE), f"{code} is not in docs/tools.md")


@case(*[(name,) for name in (*TOOLS, "switch", "lab")])
def man_page(name):
    page = os.path.join(os.path.dirname(tool(name)), "man", f"diwarp-{name}.1")
    if not os.path.exists(page):
        raise Skipped(f"there is no {page}: this build has no help2man, or was built in part")
    with open(page, encoding="utf-8") as file:
        text = file.read()
    for option in re.findall(r"^ +(?:-.,)?(--[a-z-]+)", run(name, "--help").stdout, re.MULTILINE):
        check(option.replace("-", r"\-") in text, f"{option} is not in {page}")
    check(".SH NAME" in text and re.search(r"Exit\s+status", text), text)


def completions(*words):
    """What bash offers for the last of the words."""
    if not shutil.which("bash"):
        raise Skipped("there is no bash")
    script = (f'source "{FOLDER}/completion.bash"; COMP_WORDS=("$@"); '
              '_diwarp "$1" "${@: -1}" "${@: -2:1}"; printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True,
                          timeout=PATIENCE)
    check(done.returncode == 0 and not done.stderr, done)
    return done.stdout.split()


@case(("switch", "--reorder"), ("lab", "--self-check"))
def completion_of_tools_without_json(name, option):
    check(option in completions(tool(name), option[:-2]), name)


@case(*[(name,) for name in TOOLS])
def completion_of_options(name):
    check(completions(tool(name), "--vers") == ["--version"], name)
    offered = completions(tool(name), "--")
    check({"--help", "--version", "--json"} <= set(offered), offered)
    check(("--device" in offered) == (name in DEVICE_TOOLS), offered)
    check(completions(tool(name), "no-option") == [], name)


@case(("bandwidth", "--gso", "on,off"), ("bandwidth", "--transport", "ud,rc,rd"),
      ("pingpong", "--completion", "complete,last-segment,per-segment"),
      ("info", "--io", "auto,syscall,uring"),
      ("memory", "--transport", "ud,rc,rd"), ("bandwidth", "--segment", "mtu,jumbo"), ("compare", "--hardware", "never,prefer,require"))
def completion_of_words(name, option, words):
    check(completions(tool(name), option, "") == words.split(","), words)
    first = words.split(",")[0]
    check(first in completions(tool(name), option, first[:1]), words)


if __name__ == "__main__":
    sys.exit(main())
