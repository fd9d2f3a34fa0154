#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two copies of the engine in one process share no symbol: the program's own, linked statically, and
that of the libdiwarp which the drop-ins for libibverbs and librdmacm load.

Usage: apart.py PROGRAM FOLDER

PROGRAM is test_contract, FOLDER that of the drop-ins. The loader tells which file each symbol comes
from. Exit status 0 if none of these libraries takes anything of the program's, or the program of theirs.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

PATIENCE = 100  # seconds
CASE = "A device's counters have names*"  # a comma would end the name
LIBRARIES = ("libibverbs.so.1", "librdmacm.so.1", "libdiwarp.so.0")
BINDING = re.compile(r"binding file (\S+) \[\d+\] to (\S+) \[\d+\]: \w+ symbol `(\S+)'( \[\S+\])?")


def bindings(program, folder):
    """(file, file that it takes the symbol from, symbol, its version) of a run of the program."""
    with tempfile.TemporaryDirectory() as told:
        environment = {**os.environ, "DIWARP_RDMA_CORE": folder, "LD_BIND_NOW": "1",
                       "DIWARP_CONTRACT_DEVICE": "hw:diwarp0", "LD_DEBUG": "bindings",
                       "LD_DEBUG_OUTPUT": os.path.join(told, "of")}
        # On a host without an address the case fails, after the libraries were loaded.
        subprocess.run([program, CASE], env=environment, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=PATIENCE,
                       check=False)
        for path in glob.glob(os.path.join(told, "of.*")):
            with open(path, encoding="utf-8", errors="replace") as lines:
                yield from (found.groups() for line in lines if (found := BINDING.search(line)))


def is_library(file):
    return os.path.basename(file) in LIBRARIES


def main(program, folder):
    found = list(bindings(program, folder))
    own = [symbol for user, giver, symbol, _ in found
           if os.path.dirname(user) == folder and os.path.basename(giver) == LIBRARIES[-1]]
    if not any("diwarp" in symbol for symbol in own):
        print(f"the drop-ins of {folder} were not loaded: {len(found)} bindings")
        return 1
    # With a version it is one of the C++ library's objects, of which the loader makes one for all.
    wrong = [f"{user} takes {symbol} of {giver}" for user, giver, symbol, version in found
             if (is_library(user) and giver == program and not version)
             or (user == program and is_library(giver))]
    print("\n".join(wrong))
    print(f"{len(found)} bindings, {len(own)} of them of the drop-ins to their engine")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
