#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The check of the conformance record finds each planted fault."""
import unittest

import check

HEAD = "| clause | demand | shown by | guard |\n|---|---|---|---|\n"
GOOD = "| 4.1 | Something that must be so | `a.one`, `a.two` | `a-guard` |\n"
RECORD = "".join(f"## RFC {rfc}: name\n\n{HEAD}{GOOD * 10}\n" for rfc in check.RFCS)
KNOWN = {"a.one", "a.two"}
LABELS = {"a-guard"}


class CheckTest(unittest.TestCase):
    def faults(self, row):
        return check.check(RECORD.replace(GOOD, row, 1), KNOWN, LABELS)

    def test_a_good_record_has_no_faults(self):
        self.assertEqual(check.check(RECORD, KNOWN, LABELS), [])
        self.assertEqual(self.faults(GOOD.replace("4.1", "7, 10.2")), [])

    def test_a_reason_may_stand_for_tests(self):
        row = "| 4 | Something that must be so | n/a: a good reason | |\n"
        self.assertEqual(self.faults(row), [])

    def test_a_test_that_does_not_exist_is_found(self):
        self.assertEqual(len(self.faults(GOOD.replace("a.two", "a.three"))), 1)

    def test_tests_in_tables_about_no_rfc_exist(self):
        table = "| attack | shown by |\n|---|---|\n| one | `a.one`, `{}` |\n\n| other | table |\n"
        self.assertEqual(check.check_shown(table.format("a.two"), KNOWN), [])
        self.assertEqual(len(check.check_shown(table.format("a.three"), KNOWN)), 1)
        self.assertEqual(len(check.check_shown("| attack | shown by |\n| one | none |\n", KNOWN)), 1)

    def test_a_row_without_tests_or_reason_is_found(self):
        for shown in ("", "a.one", "n/a:", "n/a: no", "`a.one` and more"):
            row = f"| 4.1 | Something that must be so | {shown} | `a-guard` |\n"
            self.assertEqual(len(self.faults(row)), 1)

    def test_a_bad_clause_is_found(self):
        for clause in ("", "four", "4.1.", "4-1"):
            self.assertEqual(len(self.faults(GOOD.replace("4.1", clause))), 1)

    def test_a_missing_demand_is_found(self):
        self.assertEqual(len(self.faults(GOOD.replace("Something that must be so", "must"))), 1)

    def test_a_row_with_other_cells_is_found(self):
        self.assertEqual(len(self.faults("| 4.1 | Something that must be so | `a.one` |\n")), 1)
        self.assertEqual(len(self.faults("| 4.1 | a | b | `a.one` | `a-guard` |\n")), 1)

    def test_a_missing_or_empty_section_is_found(self):
        for record in (RECORD.replace("## RFC 5041", "## Else"),
                       RECORD.replace(GOOD * 10, GOOD * 9, 1)):
            self.assertEqual(len(check.check(record, KNOWN, LABELS)), 1)

    def test_a_row_without_guard_or_reason_is_found(self):
        for guard in ("", "a-guard", "none:", "none: no", "`other-guard`", "`a-guard` and more"):
            self.assertEqual(len(self.faults(GOOD.replace("`a-guard`", guard))), 1, guard)
        self.assertEqual(self.faults(GOOD.replace("`a-guard`", "none: a good reason")), [])
        self.assertEqual(len(self.faults(
            "| 4 | Something that must be so | n/a: a good reason | `a-guard` |\n")), 1)

    def test_a_guard_that_no_row_names_is_found(self):
        rows = check.read_rows(RECORD, check.RFCS)[1]
        self.assertEqual(check.unnamed(rows, LABELS), [])
        self.assertEqual(len(check.unnamed(rows, {"a-guard", "lost"})), 1)


if __name__ == "__main__":
    unittest.main()
