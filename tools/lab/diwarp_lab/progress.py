# SPDX-License-Identifier: Apache-2.0
"""How far a run is, on one line of a terminal; elsewhere a line for each point."""
import sys
import time


def duration(seconds):
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


class Progress:
    """Of so many cells (a lane at a point); those that are over tell how long the others take."""

    def __init__(self, name, cells, stream=None, clock=time.monotonic):
        self.name, self.cells, self.done = name, cells, 0
        self.stream = stream or sys.stderr
        self.clock, self.begun = clock, clock()
        self.terminal = self.stream.isatty()

    def left(self):
        """Seconds; None as long as nothing is over."""
        if not self.done:
            return None
        return (self.clock() - self.begun) / self.done * (self.cells - self.done)

    def text(self, what):
        left = self.left()
        return (f"{self.name}: {what}, {self.done} of {self.cells} done" +
                (f", about {duration(left)} left" if left is not None else ""))

    def show(self, what):
        if self.terminal:
            self.stream.write("\r\033[K" + self.text(what))
            self.stream.flush()

    def point(self, what):
        if not self.terminal:
            self.stream.write(self.text(what) + "\n")
            self.stream.flush()

    def over(self, cells):
        self.done += cells

    def clear(self):
        if self.terminal:
            self.stream.write("\r\033[K")
            self.stream.flush()
