# SPDX-License-Identifier: Apache-2.0
"""dev/mutation reads guards out of sources and finds what is wrong with their marks."""
import importlib.machinery
import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from collections import namedtuple

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "dev" / "mutation" / "run"


Row = namedtuple("Row", "tests labels")


def load():
    loader = importlib.machinery.SourceFileLoader("mutation_run", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    sys.modules[loader.name] = module
    loader.exec_module(module)
    return module


run = load()
import guards  # noqa: E402  (its folder is known to the script)
import switches  # noqa: E402


FUNCTION = """\
bool Table::admit(const Entry& entry) {{
  // An admitted guard is kept.
{}
  entries_.push_back(entry);
  return true;
}}
"""


class Marks(unittest.TestCase):
    def switched_off(self, source):
        """The words of a source without its only guard."""
        found, faults = guards.read_source("a.cpp", source)
        self.assertEqual(faults, [])
        self.assertEqual(len(found), 1, source)
        return guards.words(found[0].switch_off(source))

    def assert_becomes(self, lines, expected):
        self.assertEqual(self.switched_off(FUNCTION.format(lines)),
                         guards.words(FUNCTION.format(expected)))

    def test_a_mark_behind_a_statement_takes_it_away(self):
        self.assert_becomes("  if (full()) return false;  // guard(some)", "")
        self.assert_becomes("  if (full())\n    return false;  // guard(some)", "")

    def test_a_mark_of_its_own_is_about_what_is_below(self):
        self.assert_becomes("  // guard(some)\n  if (full()) return false;", "")
        self.assert_becomes("  // guard(some)\n  if (full()) {\n    a();\n    b();\n  }", "")
        self.assert_becomes("  // guard(some)\n  if (full())\n    a();\n  else\n    b();\n  c();",
                            "c();")

    def test_a_text_in_the_statement_goes_or_is_replaced(self):
        line = "  if (full() || entry.size() > 5) return false;"
        self.assert_becomes(f"{line}  // guard(some): without full() ||",
                            "if (entry.size() > 5) return false;")
        self.assert_becomes(f"{line}  // guard(some): entry.size() > 5 => x->y()",
                            "if (full() || x->y()) return false;")

    def test_white_space_and_comments_do_not_count(self):
        self.assert_becomes(
            "  // guard(some): without a || b  (  )  ||\n  if (a ||\n      b() || c) d();",
            "if (c) d();")
        self.assert_becomes("  // guard(some): without && b\n  if (a  // here\n      && b) c();",
                            "if (a) c();")

    def test_conditions(self):
        self.assert_becomes("  if (full(a[0])) {  // guard(some): condition => false\n    a();\n  }",
                            "if (false) { a(); }")
        self.assert_becomes("  while (full()) drop();  // guard(some): condition => !full()",
                            "while (!full()) drop();")

    def test_a_whole_statement_is_replaced(self):
        self.assert_becomes("  return full() ? a : b;  // guard(some): => return b;", "return b;")
        self.assert_becomes("  a();\n  // guard(some): first if (x) return b;\n  c();",
                            "a(); if (x) return b; c();")

    def test_a_text_may_run_on_into_the_next_statement(self):
        self.assert_becomes("  // guard(some): without a(); b();\n  a();\n  b();\n  c();", "c();")
        self.assert_becomes("  // guard(some): after the next statement\n  a();\n  b();\n  c();",
                            "b(); a(); c();")

    def test_a_long_mark_goes_on_below(self):
        self.assert_becomes("  // guard(some): a() =>\n  //     b()\n  a();", "b();")

    def test_labels_stay(self):
        switch = "switch (x) {{ case A: {} default: break; }}"
        self.assert_becomes(switch.format("return false;  // guard(some)\n"), switch.format(""))
        self.assert_becomes("switch (x) {\n  // guard(some)\n  case A: return false;\n}",
                            "switch (x) { case A: }")

    def test_statements_in_lambdas_and_one_line_functions(self):
        self.assert_becomes("  each([&](int x) {\n    a(x);  // guard(some)\n    b(x);\n  });",
                            "each([&](int x) { b(x); });")
        self.assertEqual(
            self.switched_off("class A {\n  bool has() const { return b_ && c_; }"
                              "  // guard(some): without && c_\n  int b_{1};\n};"),
            guards.words("class A { bool has() const { return b_; } int b_{1}; };"))

    def test_members_that_a_constructor_initializes(self):
        self.assertEqual(
            self.switched_off("A::A()\n    : b_(draw()),  // guard(some): draw() => 0\n"
                              "      c_{b_} {\n  d();  // of the body\n}"),
            guards.words("A::A() : b_(0), c_{b_} { d(); }"))

    def test_rows_of_tables(self):
        self.assertEqual(
            self.switched_off('constexpr Row kRows[] = {\n    {"a", 1},\n'
                              '    {"b", 2},  // guard(some): "b", 2 => "b", 3\n};'),
            guards.words('constexpr Row kRows[] = { {"a", 1}, {"b", 3}, };'))

    def test_several_marks_on_one_statement(self):
        source = FUNCTION.format("  // guard(one): without a ||\n  // guard(rows:two): without || b\n"
                                 "  if (a || b) c();  // guard(one)")
        found, faults = guards.read_source("a.cpp", source)
        self.assertEqual(faults, [])
        self.assertEqual([(guard.line, guard.group) for guard in found],
                         [(3, "one"), (4, "rows:two"), (5, "one")])
        self.assertEqual(guards.labels_of(found), {"two"})
        self.assertEqual(str(found[0]), "a.cpp:3: guard(one): without a ||")

    def test_other_comments_are_none(self):
        for line in ("  std::mutex mutex_;  // guards state_", "  a();  // a std::lock_guard(x)",
                     '  a("// guard(some)");', "#define GUARD(x)  // of a header"):
            self.assertEqual(guards.read_source("a.cpp", FUNCTION.format(line)), ([], []), line)


class Faults(unittest.TestCase):
    def assert_fault(self, line):
        found, faults = guards.read_source("a.cpp", FUNCTION.format(line))
        self.assertEqual(found, [], line)
        self.assertEqual(len(faults), 1, line)
        self.assertRegex(faults[0], "^a.cpp:[0-9]+: ")

    def test_a_malformed_mark(self):
        for mark in ("guard (some)", "guard()", "guard(Some)", "guard(some).", "guard(some):",
                     "guard: some", "guards: some", "guard[some]", "guard some",
                     "guard(some) without a", "a remark, guard(some)",
                     "guard(rows:)", "guard(some,other)"):
            self.assert_fault(f"  a();  // {mark}")
        self.assert_fault("  a();  //guard(some)")
        self.assert_fault("  a();  /* guard(some) */")

    def test_a_malformed_change(self):
        for change in ("a", "without", "a =>", "=>", "a => b => c", "a=>b"):
            self.assert_fault(f"  a();  // guard(some): {change}")

    def test_a_text_that_is_not_there_once(self):
        for text in ("a", "b", "c || c", "d(b)"):
            self.assert_fault("  if (a) d();\n"
                              f"  if (b || c || b) d();  // guard(some): without {text}")

    def test_a_change_that_is_none(self):
        for change in ("=> if (a) b();", "a => a", "condition => a", "b ( ) => b()"):
            self.assert_fault(f"  if (a) b();  // guard(some): {change}")
        self.assert_fault("  a();  // guard(some): after the next statement\n  a();")

    def test_no_condition(self):
        self.assert_fault("  a();  // guard(some): condition => false")

    def test_no_statement(self):
        self.assert_fault("  a();\n  return true;\n}\n// guard(some)\n} {")
        for source in ("int a;\n// guard(some)\n", "// guard(some)\n#if A\n#endif\n",
                       "int a;\n#define A 1  // guard(some)\nint b;\n"):
            self.assertEqual(len(guards.read_source("a.cpp", source)[1]), 1, source)


class Groups(unittest.TestCase):
    def test_names_and_their_tests(self):
        self.assertEqual(guards.read_groups("# remark\n\nsome = ^x\\.|^y\\.a = b\nrd-2 = z\n"),
                         ({"some": "^x\\.|^y\\.a = b", "rd-2": "z"}, []))

    def test_a_line_of_another_form_is_a_fault(self):
        for line in ("some", "some =", "= x", "Some = x", "rows:some = x", "some = x\nsome = x"):
            self.assertEqual(len(guards.read_groups(line)[1]), 1, line)

    def faults(self, *names):
        marks = [guards.Guard("a.cpp", 1, name, "", 0, 1, "", None) for name in names]
        return run.check(marks, {"one": "x", "two": "y"}, [Row(("a.b",), ("label",))])

    def test_each_group_has_guards_and_each_guard_has_a_group(self):
        self.assertEqual(self.faults("one", "two", "two", "rows:label"), [])
        for names in (("one", "two", "three"), ("one",), ("one", "two", "rows:other")):
            self.assertEqual(len(self.faults(*names)), 1, names)


class Rows(unittest.TestCase):
    def resolve(self, group):
        rows = [Row(("a.one (1)", "b.two"), ("some",)), Row(("a.three",), ("some", "other")),
                Row(("a.four",), ())]
        return run.tests_of(group, {"some": "^a\\."}, rows)

    def test_each_row_with_the_label_has_to_notice(self):
        one, three = self.resolve("rows:some")
        self.assertTrue(re.search(one, "a.one (1)"))
        self.assertTrue(re.search(one, "b.two"))
        self.assertFalse(re.search(one, "a.three"))
        self.assertFalse(re.search(three, "a.three and more"))
        self.assertEqual(len(self.resolve("rows:other")), 1)

    def test_a_label_without_rows_has_no_tests(self):
        self.assertEqual(self.resolve("rows:unknown"), ())

    def test_a_group_has_its_own(self):
        self.assertEqual(self.resolve("some"), ("^a\\.",))


class Switches(unittest.TestCase):
    PROGRAM = """\
#pragma once
#include <cstdio>

struct Limits {
  template <typename T>
  constexpr bool admits(T a) const {
    if (a > 5) return false;  // guard(some)
    if (a < 2) return false;  // guard(some)
    return true;
  }
  int first_ = 2;
};

enum class Kind { one };

namespace inner {
Limits* make() {
  const auto twice = [](int a) { return a * 2; };  // guard(some): * 2 => * 3
  std::printf("%d ", twice(1));
  return nullptr;
}
}  // namespace inner

static_assert(!Limits{}.admits(6));

constexpr int kLimit = 7;  // guard(some): 7 => 8

int main() {
  inner::make();
  std::printf("%d %d %d", Limits{}.admits(6), Limits{}.admits(1), kLimit);
}
"""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        self.guards, faults = guards.read_source("a.cpp", self.PROGRAM)
        self.assertEqual(faults, [])

    def tearDown(self):
        self.folder.cleanup()

    def build(self, text):
        (self.root / "switches.h").write_text(switches.HEADER)
        (self.root / "a.cpp").write_text(text)
        subprocess.run(["c++", "-std=c++20", "-w", "-o", self.root / "a", self.root / "a.cpp"],
                       check=True)

    def says(self, off):
        return subprocess.run([self.root / "a"], capture_output=True, text=True, check=True,
                              env={switches.VARIABLE: str(off)}).stdout

    def test_one_build_serves_every_guard_in_a_function(self):
        self.build(switches.switched(self.PROGRAM, list(enumerate(self.guards, 1)),
                                     self.root / "switches.h"))
        self.assertEqual([self.says(off) for off in range(5)],
                         ["2 0 0 7", "2 1 0 7", "2 0 1 7", "3 0 0 7", "2 0 0 7"])

    def test_a_guard_in_no_function_is_built_anew(self):
        self.assertEqual([guard.function is None for guard in self.guards],
                         [False, False, False, True])
        self.build(self.guards[3].switch_off(self.PROGRAM))
        self.assertEqual(self.says(0), "2 0 0 8")

    def test_a_file_without_switches_stays_as_it_is(self):
        self.assertEqual(switches.switched(self.PROGRAM, [(4, self.guards[3])], "x"), self.PROGRAM)


class Tree(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        (self.root / "a.cpp").write_text("int a = 1;  // guard(some): 1 => 2\n")
        (self.root / "build").mkdir()
        (self.root / "build" / "b.cpp").write_text("int b;  // guard(some)\n")

    def tearDown(self):
        self.folder.cleanup()

    def test_marks_are_found_in_every_source(self):
        (self.root / "b").mkdir()
        (self.root / "b" / "c.h").write_text("int c;  // guard(some)\n")
        (self.root / "b" / "d.txt").write_text("// guard(some)\n")
        found, faults = guards.read_tree(self.root)
        self.assertEqual(faults, [])
        self.assertEqual([guard.file for guard in found], ["a.cpp", "b/c.h"])

    def test_a_copy_follows_its_source(self):
        with tempfile.TemporaryDirectory() as target:
            target = pathlib.Path(target)
            (target / "gone.cpp").write_text("x")
            run.copy_tree(self.root, target, {})
            self.assertEqual([path.name for path in target.iterdir()], ["a.cpp"])
            before = (target / "a.cpp").stat().st_mtime_ns
            run.copy_tree(self.root, target, {})
            self.assertEqual((target / "a.cpp").stat().st_mtime_ns, before)
            (self.root / "a.cpp").write_text("new")
            run.copy_tree(self.root, target, {})
            self.assertEqual((target / "a.cpp").read_text(), "new")
            run.copy_tree(self.root, target, {"a.cpp": "with switches"})
            self.assertEqual((target / "a.cpp").read_text(), "with switches")


if __name__ == "__main__":
    unittest.main()
