#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The check of the conformance record finds each planted fault."""
import unittest

import check

HEAD = "| clause | demand | shown by |\n|---|---|---|\n"
GOOD = "| 4.1 | Something that must be so | `a.one`, `a.two` |\n"
RECORD = "".join(f"## RFC {rfc}: name\n\n{HEAD}{GOOD * 10}\n" for rfc in check.RFCS)
KNOWN = {"a.one", "a.two"}


class CheckTest(unittest.TestCase):
    def faults(self, row):
        return check.check(RECORD.replace(GOOD, row, 1), KNOWN)

    def test_a_good_record_has_no_faults(self):
        self.assertEqual(check.check(RECORD, KNOWN), [])
        self.assertEqual(self.faults(GOOD.replace("4.1", "7, 10.2")), [])

    def test_a_reason_may_stand_for_tests(self):
        self.assertEqual(self.faults("| 4 | Something that must be so | n/a: a good reason |\n"), [])

    def test_a_test_that_does_not_exist_is_found(self):
        self.assertEqual(len(self.faults(GOOD.replace("a.two", "a.three"))), 1)

    def test_a_row_without_tests_or_reason_is_found(self):
        for shown in ("", "a.one", "n/a:", "n/a: no", "`a.one` and more"):
            self.assertEqual(len(self.faults(f"| 4.1 | Something that must be so | {shown} |\n")), 1)

    def test_a_bad_clause_is_found(self):
        for clause in ("", "four", "4.1.", "4-1"):
            self.assertEqual(len(self.faults(GOOD.replace("4.1", clause))), 1)

    def test_a_missing_demand_is_found(self):
        self.assertEqual(len(self.faults(GOOD.replace("Something that must be so", "must"))), 1)

    def test_a_row_with_other_cells_is_found(self):
        self.assertEqual(len(self.faults("| 4.1 | Something that must be so |\n")), 1)
        self.assertEqual(len(self.faults("| 4.1 | a | b | `a.one` |\n")), 1)

    def test_a_missing_or_empty_section_is_found(self):
        self.assertEqual(len(check.check(RECORD.replace("## RFC 5041", "## Else"), KNOWN)), 1)
        self.assertEqual(len(check.check(RECORD.replace(GOOD * 10, GOOD * 9, 1), KNOWN)), 1)


if __name__ == "__main__":
    unittest.main()
