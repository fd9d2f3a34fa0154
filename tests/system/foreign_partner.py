# SPDX-License-Identifier: Apache-2.0
"""The library's side of tests against a second implementation of the wire format."""
import subprocess

from harness import Process, check, where


def pattern(length, seed=0):
    return bytes((seed + i) % 251 for i in range(length))


class Partner(Process):
    """datagram_partner, which answers each line with one."""

    def __init__(self, kind):
        self.name = "datagram_partner"
        self.process = subprocess.Popen([where.partner, kind], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        Process.started.append(self)
        address, stag = self.process.stdout.readline().split()
        host, port = address.split(":")
        self.address, self.stag = (host, int(port)), int(stag)

    def do(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        check(answer, f"{words}: no answer")
        return answer.strip()

    def must(self, *words):
        answer = self.do(*words)
        check(answer == "ok", f"{words}: {answer}")

    def wait(self, *expected, milliseconds=10_000):
        """The next completion's words; the first of them must be these."""
        words = self.do("wait", milliseconds).split()
        check(words[:len(expected)] == list(map(str, expected)), f"{words}, not {expected}")
        return words

    def contents(self, offset, length):
        return bytes.fromhex(self.do("contents", offset, length))
