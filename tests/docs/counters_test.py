#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The check of docs/troubleshooting.md finds each planted fault."""
import pathlib
import tempfile
import unittest

import counters

TABLE = """\
#define DIWARP_COUNTERS(X)        \\
  X(drop_crc, "damaged") \\
  X(drop_late, "late") \\
  X(rx_overflow, "full")
// clang-format on
#define DIWARP_METERS(X)        \\
  X(open_records, gauge, "open")
// clang-format on
"""
HEADER = """\
enum class Status : uint8_t {
  retry_exceeded,  ///< no answer
};
struct WorkCompletion {
  uint32_t vendor_error = 0;
};
"""
DOCUMENT = """\
# Title

| symptom | counter | cure |
|---|---|---|
| `retry_exceeded` | `drop_crc`, `drop_late` | look at `vendor_error` |

Set `WorkCompletion::vendor_error` and `Status::retry_exceeded`. Also `rx_overflow`, `open_records` and `valid_percent`; `this.one` and `THAT_ONE` are no such names.
"""


class CountersTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write(counters.limits.COUNTERS, TABLE)
        self.write("include/diwarp/thing_options.h", HEADER)
        self.write(counters.SCHEMA, '{"definitions": {"row": {"properties": {"valid_percent": {}}}}}')
        for document in counters.DOCUMENTS:
            self.write(document, DOCUMENT)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def faults_with(self, before, after):
        self.assertIn(before, DOCUMENT)
        self.write(counters.DOCUMENT, DOCUMENT.replace(before, after))
        return counters.check(self.root)

    def test_a_good_document_has_no_faults(self):
        self.assertEqual(counters.check(self.root), [])

    def test_a_counter_that_does_not_exist_is_found_in_a_table_and_in_a_sentence(self):
        self.assertEqual(len(self.faults_with("rx_overflow", "rx_overrun")), 1)
        self.assertTrue(self.faults_with("`drop_crc`,", "`drop_crc`, `drop_none`,"))

    def test_what_is_no_counter_is_found_in_the_column_of_counters_alone(self):
        self.assertEqual(len(self.faults_with("`drop_crc`,", "`drop_crc`, `vendor_error`,")), 1)

    def test_a_drop_that_is_not_told_is_found(self):
        self.assertEqual(self.faults_with("`drop_late`", "nothing"), ["docs/troubleshooting.md: drop_late does not stand there"])

    def test_a_member_or_a_type_that_does_not_exist_is_found(self):
        for name in ("`WorkCompletion::vendor_fault`", "`Completion::vendor_error`"):
            self.assertEqual(len(self.faults_with("`WorkCompletion::vendor_error`", name)), 1, name)

    def test_a_fault_of_the_other_document_is_found(self):
        self.write(counters.DOCUMENTS[1], "`no_such_thing`")
        self.assertEqual(counters.check(self.root), ["docs/tuning.md: line 1: there is no no_such_thing"])

    def test_a_new_drop_is_found(self):
        self.write(counters.limits.COUNTERS, TABLE.replace("X(drop_crc", "X(drop_new, \"new\") \\\n  X(drop_crc"))
        self.assertEqual(counters.check(self.root), ["docs/troubleshooting.md: drop_new does not stand there"])


if __name__ == "__main__":
    unittest.main()
