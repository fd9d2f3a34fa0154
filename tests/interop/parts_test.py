#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Parts of the tests against siw, without the virtual machine: what is tried again where diwarp has no
part, and how run.sh learns the status of the guest's command."""
import contextlib
import io
import os
import pathlib
import subprocess
import tempfile
import types
import unittest
from unittest import mock

import guest
import interop_test


class TriedAgainTest(unittest.TestCase):
    def run_with(self, *outcomes):
        """What comes of it, how often it was tried, and what was said."""
        left = list(outcomes)

        def once():
            if isinstance(outcome := left.pop(0), Exception):
                raise outcome
            return outcome
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            try:
                result = interop_test.tried_again(once)
            except guest.NotStarted as reason:
                result = reason
        return result, len(outcomes) - len(left), said.getvalue()

    def test_what_goes_well_is_done_once(self):
        self.assertEqual(self.run_with("well", "again"), ("well", 1, ""))

    def test_what_fails_is_told_and_tried_again(self):
        result, tries, said = self.run_with(AssertionError("siw fell silent"), OSError(), "well")
        self.assertEqual((result, tries), ("well", 3))
        self.assertIn("attempt 1 of 3: siw fell silent", said)

    def test_what_never_goes_well_is_told_and_neither_a_failure_nor_skipped(self):
        result, tries, said = self.run_with(*[AssertionError("no")] * 9)
        self.assertIsNone(result)
        self.assertEqual(tries, 3)
        self.assertIn("siw failed with siw 3 times", said)
        self.assertNotIn("SKIPPED:", said)

    def test_a_virtual_machine_that_does_not_start_is_a_failure(self):
        result, tries, _ = self.run_with(*[guest.NotStarted("no kernel")] * 9)
        self.assertIsInstance(result, guest.NotStarted)
        self.assertEqual(tries, 3)

    def test_a_virtual_machine_that_starts_in_the_end_is_enough(self):
        result, _, _ = self.run_with(guest.NotStarted("slow"), "well")
        self.assertEqual(result, "well")

    def test_a_fault_of_the_test_itself_is_not_hidden(self):
        with self.assertRaises(KeyError):
            self.run_with(KeyError("reports"), "well")


class GaveUpTest(unittest.TestCase):
    """An exchange is done once more where siw ended it, and for nothing else."""

    SIW = {"ok": False, "status": "local QP operation error", "terminate": "",
           "failure": "connection lost after the start of step 3: local QP operation error"}
    LOST = {"ok": False, "status": "flushed", "terminate": "",
            "failure": "connection lost after the start of step 3: flushed"}

    def run_with(self, *outcomes, is_siw=True):
        """What comes of it, and how often siw gave up."""
        left = list(outcomes)

        def once(*_):
            outcome = left.pop(0)
            if isinstance(outcome, list):
                raise guest.Failed("peers failed", outcome)
            return outcome
        machine = types.SimpleNamespace(is_siw=is_siw, gave_up=0)
        with mock.patch.object(guest, "exchange_once", once):
            with contextlib.redirect_stdout(io.StringIO()):
                try:
                    return guest.exchange(machine, True, ""), machine.gave_up
                except guest.Failed as failed:
                    return failed.reports, machine.gave_up

    def test_siw_that_gave_up_is_asked_again(self):
        self.assertEqual(self.run_with([self.SIW, self.LOST], "well"), ("well", 1))

    def test_siw_that_gives_up_twice_is_a_failure(self):
        reports = [self.SIW, self.LOST]
        self.assertEqual(self.run_with(reports, reports), (reports, 1))

    def test_what_diwarp_found_wrong_or_waited_for_in_vain_is_a_failure(self):
        for other in (self.LOST | {"terminate": "sent 2/0/2"},
                      self.LOST | {"failure": "a receive never completed"}):
            reports = [self.SIW, other]
            self.assertEqual(self.run_with(reports, "well"), (reports, 0))

    def test_another_status_of_siw_or_no_report_of_diwarp_is_a_failure(self):
        for reports in ([self.LOST, self.LOST], [self.SIW]):
            self.assertEqual(self.run_with(reports, "well"), (reports, 0))

    def test_a_drop_in_that_gives_up_is_a_failure(self):
        reports = [self.SIW, self.LOST]
        self.assertEqual(self.run_with(reports, "well", is_siw=False), (reports, 0))


class StatusTest(unittest.TestCase):
    """run.sh with a program in QEMU's place, which says what a guest would."""

    def run_sh(self, says, readers="exec /bin/cat"):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for name in ("vmlinux", "initrd.cpio"):
                (folder / name).write_text("none")
            qemu = folder / "qemu-system-x86_64"
            qemu.write_text("#!/bin/bash\n"
                            "all=$*; control=${all#*id=ctl,path=}; control=${control%% *}\n"
                            f"exec > $control.out\n{says}\n")
            qemu.chmod(0o755)
            cat = folder / "cat"  # reads what the guest prints
            cat.write_text(f'#!/bin/bash\n{readers} "$@"\n')
            cat.chmod(0o755)
            return subprocess.run(
                [os.path.join(guest.HERE, "siw-vm", "run.sh"), "--timeout", "20", "--", "true"],
                env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}",
                     "SIW_VM_CACHE": str(folder)}, capture_output=True, timeout=50).returncode

    def test_a_status_is_read(self):
        self.assertEqual(self.run_sh("echo BOOT 1; echo EXIT 7; exec sleep 30"), 7)

    def test_readers_that_begin_late_do_not_hold_up_the_status(self):
        self.assertEqual(self.run_sh("echo BOOT 1; echo EXIT 7; exec sleep 30",
                                     readers="sleep 1; exec /bin/cat"), 7)

    def test_a_status_that_comes_in_parts_is_read(self):
        self.assertEqual(self.run_sh("printf EX; sleep 1.5; printf 'IT '; sleep 1.5; echo 7; exec sleep 30"),
                         7)

    def test_a_status_that_is_repeated_is_one(self):
        self.assertEqual(self.run_sh("for i in 1 2 3; do echo EXIT 7; done; exec sleep 30"), 7)

    def test_a_guest_that_ends_without_one_is_told(self):
        self.assertEqual(self.run_sh("echo BOOT 1"), 125)


if __name__ == "__main__":
    unittest.main()
