#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is tried again where diwarp has no part, without the virtual machine."""
import contextlib
import io
import unittest

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


if __name__ == "__main__":
    unittest.main()
