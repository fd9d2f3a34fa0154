#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The check of the limits finds each planted fault."""
import pathlib
import tempfile
import unittest

import limits

OPTIONS = """\
#pragma once
enum class AsyncEventType : uint8_t {
  qp_fatal,  ///< the end
};
struct ThingOptions {
  /// Not a number: none = 3;
  bool fast = true;
  Duration wait = std::chrono::milliseconds(100);
  uint32_t max_things = 1024;
  size_t max_memory = size_t{32} << 20;  ///< bytes
  Duration deadline{0};
  std::optional<Duration> rest = {};
};
/// Not asked for: what an object tells.
struct ThingAttributes {
  uint32_t things = 7;
};
"""
HEADER_OF_OPTIONS = f"{limits.PUBLIC}/thing_options.h"
COUNTERS = """\
#define DIWARP_COUNTERS(X)        \\
  X(drop_things, "things dropped")
"""
HEADER = """\
namespace diwarp::rnic {
inline constexpr size_t kMaxAll = 2 * dgram::kPieces;
class Thing final : public Base {
 public:
  explicit Thing(uint32_t count, uint64_t first = 1) : count_(count) {}
  int count() const { return count_; }
  static constexpr uint32_t kMaxInside = kMaxAll + 1;
 private:
  int count_ = 0;
};
class Thing::Other {
  static constexpr uint32_t kInside = 13;
};
}
"""
ROWS = {
    "wait": "| Time that a thing waits | 100 ms | `ThingOptions::wait` | dropped, `drop_things` |",
    "most": "| Things there are | 1,024 | `ThingOptions::max_things` | `qp_fatal`; see `wait` |",
    "memory": "| Memory of all, bytes | 32 MiB | `ThingOptions::max_memory` | `post()` throws |",
    "deadline": "| Whole time | 0: none | `ThingOptions::deadline` | as for `ThingOptions::wait` |",
    "all": "| Things of all kinds | 12 | `kMaxAll`, `rnic/include/rnic/thing.h` | the next waits |",
    "inside": "| Inner ones | 13 | `Thing::kMaxInside`, `rnic/include/rnic/thing.h` | these wait |",
    "source": "| In a function | 8 KiB | `kSmall`, `rnic/src/thing.cpp` | the next waits |",
    "longest": "| The longest wait | 2 s | `kLongestWait`, `rnic/src/thing.cpp` | it waits again |",
}
SOURCE = """\
constexpr Duration kLongestWait = std::chrono::seconds(2);
void f(int x) {
  constexpr size_t kSmall = 8'192U;
}
"""
HEAD = "# Limits\n\n| bound | default | set by | exhaustion |\n|---|---|---|---|\n"


class LimitsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write(HEADER_OF_OPTIONS, OPTIONS)
        self.write(limits.COUNTERS, COUNTERS)
        self.write("rnic/include/rnic/thing.h", HEADER)
        self.write("dgram/include/dgram/thing.h", "inline constexpr uint32_t kPieces = 6;\n")
        self.write("rnic/src/thing.cpp", SOURCE)
        self.write(limits.DOCUMENT, HEAD + "\n".join(ROWS.values()) + "\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def faults(self, exceptions=()):
        return limits.check(self.root, exceptions)[0]

    def faults_with(self, row, before, after):
        """Of the document with one of its rows changed."""
        self.assertIn(before, ROWS[row])
        rows = dict(ROWS, **{row: ROWS[row].replace(before, after)})
        self.write(limits.DOCUMENT, HEAD + "\n".join(rows.values()) + "\n")
        return self.faults()

    def test_a_good_document_has_no_faults(self):
        self.assertEqual(self.faults(), [])

    def test_each_missing_row_is_found_if_it_is_an_option_or_a_constant_named_as_a_bound(self):
        for row in ROWS:
            self.write(limits.DOCUMENT, HEAD + "\n".join(ROWS[one] for one in ROWS if one != row))
            self.assertEqual(len(self.faults()), 0 if row == "source" else 1, row)

    def test_a_new_option_and_a_new_constant_are_found(self):
        self.write(HEADER_OF_OPTIONS, OPTIONS.replace("  bool", "  int more = 3;\n  bool"))
        self.write("llp/include/llp/thing.h", "inline constexpr int kMaxMore = 3;\n")
        self.assertEqual(len(self.faults()), 2)

    def test_a_new_constant_is_found_in_each_kind_of_file_if_its_name_is_that_of_a_bound(self):
        for path in ("ddp/include/ddp/other.h", "ddp/src/other.h", "ddp/src/other.cpp"):
            for name, found in (("kMaxMore", 1), ("kMostMore", 1), ("kLeastMore", 1), ("kMost", 1),
                                ("kLongestMore", 1), ("kMaximal", 0), ("kMostly", 0), ("kMore", 0)):
                self.write(path, f"constexpr size_t {name} = 3;\n")
                self.assertEqual(len(self.faults()), found, f"{path} {name}")
            self.write(path, "")

    def test_a_constant_of_a_layer_of_standards_is_not_asked_for(self):
        self.write("mpa/src/thing.cpp", "constexpr size_t kMaxMore = 3;\n")
        self.assertEqual(self.faults(), [])

    def test_an_exception_is_one_constant_of_one_file(self):
        self.write("ddp/src/one.cpp", "class Thing { static constexpr int kMostMore = 3; };\n")
        self.write("ddp/src/other.cpp", "constexpr int kMostMore = 3;\n")
        self.assertEqual(len(self.faults()), 2)
        self.assertEqual(len(self.faults([("ddp/src/other.cpp", "kMostMore")])), 1)
        self.assertEqual(self.faults([("ddp/src/one.cpp", "Thing::kMostMore"),
                                      ("ddp/src/other.cpp", "kMostMore")]), [])

    def test_an_exception_that_is_none_is_found(self):
        for name in ("kLongestWait", "kSmall", "kNothing"):  # in a table, no bound, not there
            self.assertEqual(len(self.faults([("rnic/src/thing.cpp", name)])), 1, name)

    def test_a_constant_of_a_source_is_not_what_another_file_means(self):
        self.write("dgram/src/thing.cpp", "constexpr uint32_t kPieces = 7;\n")
        self.assertEqual(self.faults(), [])

    def test_a_default_that_differs_is_found(self):
        for row, before, after in (("wait", "100 ms", "100 us"), ("most", "1,024", "1,023"),
                                   ("memory", "32 MiB", "32 KiB"), ("deadline", "0: none", "1 s"),
                                   ("all", "| 12", "| 13"), ("inside", "| 13", "| 12"),
                                   ("source", "8 KiB", "9 KiB"), ("longest", "2 s", "2 ms")):
            self.assertEqual(len(self.faults_with(row, before, after)), 1, row)

    def test_a_default_of_the_code_that_changed_is_found(self):
        for before, after in (("milliseconds(100)", "seconds(100)"), ("1024", "1025"),
                              ("<< 20", "<< 21"), ("deadline{0}", "deadline{1}")):
            self.write(HEADER_OF_OPTIONS, OPTIONS.replace(before, after))
            self.assertEqual(len(self.faults()), 1, before)

    def test_a_time_without_its_unit_and_a_number_with_one_are_found(self):
        self.assertEqual(len(self.faults_with("wait", "100 ms", "100,000,000")), 1)
        self.assertEqual(len(self.faults_with("most", "1,024", "1,024 ns")), 1)
        self.assertEqual(len(self.faults_with("most", "1,024", "1,024 apples")), 1)
        self.assertEqual(len(self.faults_with("most", "1,024", "many")), 1)

    def test_a_name_that_does_not_exist_is_found(self):
        for row, before, after in (("source", "kSmall", "kLarge"),
                                   ("source", "thing.cpp", "other.cpp"),
                                   ("wait", "drop_things", "drop_nothing"),
                                   ("most", "qp_fatal", "qp_mortal"),
                                   ("most", "`wait`", "`hurry`"),
                                   ("deadline", "ThingOptions::wait", "ThingOptions::hurry")):
            self.assertEqual(len(self.faults_with(row, before, after)), 1, after)

    def test_an_option_or_a_constant_of_another_class_is_found(self):
        # And the right one is not named any more.
        self.assertEqual(len(self.faults_with("wait", "ThingOptions::", "OtherOptions::")), 2)
        self.assertEqual(len(self.faults_with("inside", "kMaxInside", "kInside")), 2)
        self.assertEqual(len(self.faults_with("inside", "kMaxInside", "Other::kInside")), 1)

    def test_what_stands_twice_is_found(self):
        twice = f"{ROWS['wait']}\n{ROWS['wait']}"
        self.assertEqual(len(self.faults_with("wait", ROWS["wait"], twice)), 1)

    def test_a_row_of_another_form_is_found(self):
        for before, after in (("| the next", "| one | the next"), ("the next waits", ""),
                              ("In a function", "In"), ("`kSmall`, `rnic/src/thing.cpp`", "")):
            self.assertEqual(len(self.faults_with("source", before, after)), 1, after)

    def test_a_value_that_cannot_be_told_is_found(self):
        self.write("rnic/src/thing.cpp", SOURCE.replace("8'192U", "sizeof(Thing)"))
        self.assertEqual(len(self.faults()), 1)

    def test_other_tables_are_left_alone(self):
        other = "\n\n| a | b |\n|---|---|\n| c | d |\n"
        self.write(limits.DOCUMENT, HEAD + "\n".join(ROWS.values()) + other)
        self.assertEqual(self.faults(), [])


if __name__ == "__main__":
    unittest.main()
