# SPDX-License-Identifier: Apache-2.0
"""What the cases here are made with: the lab's scenes (tools/lab), with the programs of this
folder, and the command line that runs one case."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "system"), os.path.join(HERE, "..", "..", "tools", "lab")]
from diwarp_lab import scene as lab  # noqa: E402
from diwarp_lab.scene import *  # noqa: E402, F401, F403
from harness import PATIENCE, Skipped, case, check, main, wait_until  # noqa: E402, F401


class Scene(lab.Scene):
    """A scene whose programs lie in the folder of these tests' own, and tools/ beside it."""

    def tool(self, space, name, *options):
        """diwarp-NAME in a namespace."""
        return self.run(space, f"../../tools/diwarp-{name}", *options)

    def peer(self, space, *options):
        """network_peer in a namespace."""
        return self.run(space, "network_peer", *options)
