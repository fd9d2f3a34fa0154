# SPDX-License-Identifier: Apache-2.0
"""What results were measured with: commit, machine, kernel; and whether the machine was idle."""
import os
import platform
import re
import subprocess
import time

from .basics import printable, where
from .work import Failed, Running

HERE = os.path.dirname(os.path.abspath(__file__))
BUSY = 0.15  # processors' worth of others' work, above which figures are not to be quoted
LOOK = 0.5  # seconds


def output_of(*words):
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=20,
                              stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def lab_version():
    """As it was installed, or as the header of the source tree has it."""
    try:
        with open(os.path.join(HERE, "VERSION")) as file:
            return file.read().strip()
    except OSError:
        pass
    try:
        with open(os.path.join(HERE, "../../../include/diwarp/version.h")) as file:
            return ".".join(re.findall(r"#define DIWARP_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)",
                                       file.read()))
    except OSError:
        return "of unknown version"


def lab_commit():
    """The commit of the lab's own source, with "+" if it was changed since; "" outside of a source
    tree. The programs that are measured may be of another one."""
    found = output_of("git", "-C", HERE, "rev-parse", "HEAD")
    tracked = found and output_of("git", "-C", HERE, "ls-files", os.path.basename(__file__))
    if not tracked:
        return ""
    changed = output_of("git", "-C", HERE, "status", "--porcelain", "--untracked-files=no")
    return found + ("+" if changed else "")


def version():
    """Of the programs that are measured, as diwarp-info has it; "" where that tells none."""
    try:
        with Running([os.path.join(where.tools, "diwarp-info"), "--version"], limit=5) as asked:
            found = asked.finish().split()
    except Failed:
        return ""
    return printable(found[1]) if len(found) == 2 and found[0] == "diwarp-info" else ""


def first_line(path, prefix=""):
    try:
        with open(path) as file:
            for line in file:
                if line.startswith(prefix):
                    return line.partition(":")[2].strip() if prefix else line.strip()
    except OSError:
        pass
    return "unknown"


def describe():
    return {"processor": first_line("/proc/cpuinfo", "model name"),
            "processors": len(os.sched_getaffinity(0)),
            "memory": first_line("/proc/meminfo", "MemTotal"),
            "system": system_name(),
            "kernel": platform.release(), "architecture": platform.machine(),
            "rmem_max": first_line("/proc/sys/net/core/rmem_max"),
            "wmem_max": first_line("/proc/sys/net/core/wmem_max"),
            "tcp": first_line("/proc/sys/net/ipv4/tcp_congestion_control")}


def system_name():
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "unknown")
    except OSError:
        return "unknown"


def times():
    """(jiffies of work, of all) of all processors together."""
    with open("/proc/stat") as file:
        numbers = [int(word) for word in file.readline().split()[1:9]]
    idle = numbers[3] + numbers[4]
    return sum(numbers) - idle, sum(numbers)


def work_of_others(look=LOOK):
    """Processors' worth of work while this process only waits."""
    work, everything = times()
    time.sleep(look)
    after, all_after = times()
    processors = os.cpu_count() or 1
    return processors * (after - work) / max(all_after - everything, 1)
