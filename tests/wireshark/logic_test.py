#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The dissector's parser and tracker in the versions of Lua that Wireshark has or had, without Wireshark.
Called with the name of one case; --list names all."""
import pathlib
import shutil
import subprocess
import sys

from dissect import DISSECTOR, PATIENCE, Skipped, check, path, where
from harness import case, main

VERSIONS = ("5.2", "5.3", "5.4")
SCRIPT = pathlib.Path(__file__).with_name("logic.lua")


def lua(version, *words):
    program = shutil.which(f"lua{version}")
    if program is None:
        raise Skipped(f"there is no lua{version} here (dev/packages.sh, purpose wireshark)")
    done = subprocess.run([program, SCRIPT, DISSECTOR, *words], capture_output=True, text=True, timeout=PATIENCE)
    check(done.returncode == 0, f"{done.stdout}{done.stderr}")
    return done.stdout.strip()


@case(*((version,) for version in VERSIONS))
def known_values(version):
    """CRC32C, SipHash-2-4, numbers of 64 bits and serial numbers."""
    bits = lua(version, "vectors")
    check(bits == ("bit32" if version == "5.2" else "operators"), bits)


@case(*((version,) for version in VERSIONS))
def known_values_with_signed_bits(version):
    check(lua(version, "bit") == "bit", "another library of bits")


@case(*((version,) for version in VERSIONS))
def verdicts_of_generated_datagrams(version):
    """Half of 20,000 damaged. Tables and payload stay within their bounds."""
    with open(path("views"), "w") as file:
        subprocess.run([where.views, "generate", "11", "20000", "50"], stdout=file, check=True)
    check(lua(version, "views", path("views")) == "20000", "not all were seen")


if __name__ == "__main__":
    sys.exit(main())
