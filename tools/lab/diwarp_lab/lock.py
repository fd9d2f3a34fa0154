# SPDX-License-Identifier: Apache-2.0
"""One lab at a time: two would measure each other.

The lock is the name of a socket, which the kernel frees when the process ends, however it ends."""
import os
import socket
import struct

from .basics import Refusal

NAME = "diwarp-lab"  # tests have another: a user's lab is none of their business
VARIABLE = "DIWARP_LAB_LOCK"


def take():
    """A socket that holds the lock until it is closed. Refusal if another process has it."""
    name = "\0" + os.environ.get(VARIABLE, NAME)
    lock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        lock.bind(name)
        lock.listen(8)
        return lock
    except OSError:
        lock.close()
    raise Refusal(f"Another diwarp-lab runs on this host{holder(name)}: two would measure each "
                  "other. Wait for its end, or end it.")


def holder(name):
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(1)
            probe.connect(name)
            credentials = probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            return f" (process {struct.unpack('3i', credentials)[0]})"
    except OSError:
        return ""
