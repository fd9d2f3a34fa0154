#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The port of a device while the host has the device's address, and after: DEVICE ADDRESS INTERFACE."""
import subprocess
import sys

from pyverbs.device import Context
from pyverbs.enums import IBV_PORT_ACTIVE, IBV_PORT_DOWN

name, address, interface = sys.argv[1:]
context = Context(name=name)
assert context.query_port(1).state == IBV_PORT_ACTIVE, "not active"
assert context.query_port(1).gid_tbl_len == 1, "no GID"
subprocess.run(["ip", "address", "delete", address, "dev", interface], check=True)
port = context.query_port(1)
assert port.state == IBV_PORT_DOWN, f"state {port.state}, not down"
