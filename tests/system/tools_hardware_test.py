#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command line tools on hardware devices: those of the fake of rdma-core. Called with the name of
one case; --list names all."""
import json
import os
import re
import socket
import sys

from harness import (PROGRAMS, Process, case, check, check_sentence, main, path, rows_of, run,
                     start_server, where)
from rows import check_rows

DEVICE = "hw:fake0"
ENDS = ("server", "client", "both")
SIZES = "1,64,100000"
SIW = "fake0=127.0.0.1:vendor=626d74"  # the vendor of Linux's siw


def use_fake(devices="fake0=127.0.0.1", deny=""):
    """The tools that run after this see these devices, which lack what is denied."""
    os.environ["DIWARP_RDMA_CORE"] = where.fake
    os.environ["FAKE_RDMA_CORE_DEVICES"] = devices
    os.environ["FAKE_RDMA_CORE_DENY"] = deny


def last_line(text):
    return text.splitlines()[-1] + "\n"


def use_no_libraries():
    """The tools find no rdma-core. Returns the file that they miss first."""
    os.environ["DIWARP_RDMA_CORE"] = path("empty")
    os.mkdir(path("empty"))
    return path("empty/libibverbs.so.1")


def device_of(end, ends):
    """Options of an end, which is on hardware if `ends` has it."""
    return ["--device", DEVICE] if ends in (end, "both") else []


def info():
    return json.loads(run("info", "--json").stdout)


# --- diwarp-info

@case()
def info_lists_devices():
    use_fake("fake0=127.0.0.1 fake1=127.0.0.2:down fake2=127.0.0.3:infiniband", deny="atomics")
    text = run("info").stdout
    for pattern in (r"hw:fake0 +active\n", r"addresses +127\.0\.0\.1\n", r"firmware +0\.0\.0\n",
                    r"SGEs in a work request +6\n", r"lacks +atomics, fast registration, ",
                    r"hw:fake1 +not usable: its port is down\n",
                    r"hw:fake2 +not usable: it is an InfiniBand or RoCE device",
                    rf"libibverbs +{where.fake}/libibverbs\.so\.1\n",
                    rf"librdmacm +{where.fake}/librdmacm\.so\.1\n"):
        check(re.search(pattern, text), f"{pattern} is not in {text}")


@case()
def info_lists_devices_in_json():
    use_fake("fake0=127.0.0.1 fake1=127.0.0.2:down fake2=127.0.0.3:infiniband", deny="atomics")
    values = info()
    check(values["hardware"]["libraries"] == {"verbs": f"{where.fake}/libibverbs.so.1",
                                              "cm": f"{where.fake}/librdmacm.so.1"}, values)
    usable, down, infiniband = values["hardware"]["devices"]
    check((usable["name"], usable["state"], usable["addresses"], usable["firmware"],
           usable["usable"]) == (DEVICE, "active", ["127.0.0.1"], "0.0.0", True), usable)
    check(usable["limits"]["queue_depth"] == 4000 and usable["limits"]["private_data"] == 251, usable)
    check({"atomics", "long immediates"} <= set(usable["lacks"]), usable)
    check("memory windows" not in usable["lacks"] and "refusal" not in usable, usable)
    check((down["name"], down["state"], down["usable"], down["refusal"])
          == ("hw:fake1", "down", False, "its port is down"), down)
    check(not infiniband["usable"] and "InfiniBand" in infiniband["refusal"], infiniband)
    check(values["limits"]["message"] == 1 << 30 and "atomics" in values["capabilities"],
          f"software's are not told any more: {values}")


@case()
def info_without_libraries_names_the_file():
    missing = use_no_libraries()
    text = " ".join(run("info").stdout.split())  # the sentence is wrapped
    check(re.search(rf"libraries none: .*{missing}", text), text)
    hardware = info()["hardware"]
    check(hardware["devices"] == [] and missing in hardware["libraries"]["refusal"], hardware)


@case()
def info_without_devices():
    use_fake("")
    text = run("info").stdout
    check(re.search(r"  devices +none\n", text), text)
    check(info()["hardware"]["devices"] == [], "there are devices")


@case()
def info_of_a_device():
    use_fake()
    for options in (("--device", DEVICE), ("--device", "127.0.0.1", "--hardware", "require")):
        values = json.loads(run("info", "--json", *options).stdout)
        check(values["limits"]["queue_depth"] == 4000, values)
        check("long immediates" not in values["capabilities"], values)
        check("datagrams" in values["capabilities"] and values["datagram_sockets"], values)
    done = run("info", "--device", "hw:none", status=1)
    check_sentence("info", done.stderr, "no hardware device none", "fake0")


# --- diwarp-pingpong and diwarp-bandwidth

def measure(program, ends, *options):
    """Two processes; those of `ends` are on hardware. The sentences of both on standard error."""
    server, address = start_server(program, "127.0.0.1:0", *device_of("server", ends))
    done = run(program, "--connect", address, *device_of("client", ends), *options, "--verify",
               "--json", path("rows.json"))
    return done.stderr + server.end(0)


@case(*[(program, operation, ends) for program in PROGRAMS
        for operation in ("send", "write", "read") for ends in ENDS])
def connections(program, operation, ends):
    use_fake()
    measure(program, ends, "--transport", "rc", "--op", operation, "--size", SIZES, "--iterations", 30)
    check_rows(rows_of("rows.json"), program, "rc", [1, 64, 100000], 30, operation)


@case(*[(program,) for program in PROGRAMS])
def atomics(program):
    use_fake()
    measure(program, "both", "--transport", "rc", "--op", "atomic", "--iterations", 30)
    check_rows(rows_of("rows.json"), program, "rc", [8], 30, "atomic")


@case(*[(program, operation) for program in PROGRAMS for operation in ("send", "write", "read")])
def as_siw_is(program, operation):
    """It lets peers read all memory, which is said once at each end."""
    use_fake(SIW, deny="atomics")
    said = measure(program, "both", "--transport", "rc", "--op", operation, "--size", SIZES,
                   "--iterations", 30)
    check_rows(rows_of("rows.json"), program, "rc", [1, 64, 100000], 30, operation)
    check("lets peers read all registered memory" in said, said)


@case(*[(program, transport) for program in PROGRAMS for transport in ("ud", "rd")])
def datagrams(program, transport):
    """They are software's, on the device's address."""
    use_fake()
    run(program, "--loopback", "--device", DEVICE, "--transport", transport, "--size", "1,64,10000",
        "--iterations", 30, "--max-loss", 100, "--verify", "--json", path("rows.json"))
    check_rows(rows_of("rows.json"), program, transport, [1, 64, 10000], 30)


@case(*[(program, transport) for program in PROGRAMS for transport in ("rc", "ud")])
def devices_elsewhere_than_the_control_connection(program, transport):
    """Each end tells the other the address of its device."""
    use_fake()
    server, address = start_server(program, "127.0.0.2:0", "--device", DEVICE)
    run(program, "--connect", address, "--device", "127.0.0.3", "--transport", transport,
        "--iterations", 30, "--max-loss", 100, "--json", path("rows.json"))
    server.end(0)
    check_rows(rows_of("rows.json"), program, transport, [65536 if program == "bandwidth" else 64], 30)


@case(*[(program, operation, lack) for program in PROGRAMS
        for operation, lack in (("atomic", "atomics"), ("send-imm", "immediate_data"))])
def missing_abilities_are_told(program, operation, lack):
    # siw, which has no immediate data, has a line in the log before the sentence.
    use_fake(SIW) if operation == "send-imm" else use_fake(deny="atomics")
    sentence = f"The device {DEVICE} has no {lack.replace('_', ' ')}, which --op {operation} needs"
    options = ("--transport", "rc", "--op", operation)
    done = run(program, "--loopback", "--device", DEVICE, *options, status=1)
    check_sentence(program, last_line(done.stderr), sentence)
    done = run(program, "--loopback", "--hardware", "prefer", *options, status=1)
    check_sentence(program, last_line(done.stderr), sentence.replace(DEVICE, "on 127.0.0.1"))
    server, address = start_server(program, "127.0.0.1:0", "--device", DEVICE)
    done = run(program, "--connect", address, *options, status=1)
    check_sentence(program, last_line(done.stderr), "stopped: " + sentence)
    check_sentence(program, last_line(server.end(1)), sentence)


@case(*[(program,) for program in PROGRAMS])
def devices_that_are_not_there(program):
    use_fake()
    for end in (("--loopback",), ("--server", "127.0.0.1:0")):
        done = run(program, *end, "--device", "hw:none", status=1)
        check_sentence(program, done.stderr, "no hardware device none", "fake0")


@case(*[(program,) for program in PROGRAMS])
def prefer_goes_on_in_software_and_says_so(program):
    use_fake("")
    done = run(program, "--loopback", "--hardware", "prefer", "--transport", "rc", "--op", "send-imm",
               "--iterations", 30, "--json", path("rows.json"))
    check("Software serves 127.0.0.1" in done.stderr, done.stderr)
    check_rows(rows_of("rows.json"), program, "rc", [8], 30, "send-imm")


@case(*[(program,) for program in PROGRAMS])
def require_fails_without_hardware(program):
    use_fake("")
    done = run(program, "--loopback", "--hardware", "require", status=1)
    check_sentence(program, done.stderr, "no hardware device has the address 127.0.0.1")
    missing = use_no_libraries()
    done = run(program, "--loopback", "--hardware", "require", status=1)
    check_sentence(program, done.stderr, missing)


@case()
def options_that_hardware_does_not_know():
    done = run("pingpong", "--loopback", "--hardware", "maybe", status=1)
    check_sentence("pingpong", done.stderr, "--hardware is one of never, prefer, require")


# --- diwarp-takeover and diwarp-compare

@case(*[(transport,) for transport in ("rc", "ud")])
def takeover(transport):
    """A device places messages whether the application polls or not."""
    use_fake()
    values, = json.loads(run("takeover", "--device", DEVICE, "--transport", transport, "--rounds", 50,
                             "--json").stdout)["rows"]
    check(values["lost"] < 25, values)
    done = run("takeover", "--device", "hw:none", status=1)
    check_sentence("takeover", done.stderr, "no hardware device none", "fake0")


@case()
def compare():
    """Connections are on the device; its name stands in the output."""
    use_fake()
    values = json.loads(run("compare", "--device", DEVICE, "--quick", "--only", "^rc-send-latency$",
                            "--json", "-").stdout)
    check(values["settings"]["device"] == DEVICE, values["settings"])
    row, = values["rows"]
    check(row["ratio"]["median"] > 0, row)
    done = run("compare", "--device", "hw:none", "--quick", "--only", "^rc-send-latency$", status=1)
    check("no hardware device none" in done.stderr, done.stderr)


# --- diwarp-rping

def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def play_rping(ends):
    port = free_port()
    both = ("--address", "127.0.0.1", "--port", port, "--size", 1000, "--verify")
    server = Process("rping", "--server", *both, *device_of("server", ends))
    server.wait_for("listening at")
    done = run("rping", "--client", *both, *device_of("client", ends))
    server.end(0)
    for output in (done.stdout, server.output):
        check("100 rounds of 1000 bytes, verified" in output, output)


@case(*[(ends,) for ends in ENDS])
def rping(ends):
    use_fake()
    play_rping(ends)


@case()
def rping_as_siw_is():
    use_fake(SIW, deny="atomics")
    play_rping("both")


@case()
def rping_where_hardware_is_required():
    use_fake("")
    for end in ("--server", "--client"):
        done = run("rping", end, "--address", "127.0.0.1", "--hardware", "require", status=1)
        check_sentence("rping", done.stderr, "no hardware device has the address 127.0.0.1")


if __name__ == "__main__":
    sys.exit(main())
