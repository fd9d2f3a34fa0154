# SPDX-License-Identifier: Apache-2.0
"""tools/mutation/run reads its listing and finds guards that are not where they should be."""
import importlib.machinery
import importlib.util
import pathlib
import re
import tempfile
import unittest
from collections import namedtuple

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools" / "mutation" / "run"


Row = namedtuple("Row", "tests labels")


def load():
    loader = importlib.machinery.SourceFileLoader("mutation_run", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    import sys
    sys.modules[loader.name] = module
    loader.exec_module(module)
    return module


run = load()


class Listing(unittest.TestCase):
    def test_fields_keep_their_own_bars(self):
        guards, faults = run.parse("# remark\n\na.cpp | if (x || y) |  | ^stack\\.(a|b)\n")
        self.assertEqual(faults, [])
        self.assertEqual(guards, [run.Guard("a.cpp", "if (x || y)", "", "^stack\\.(a|b)")])

    def test_line_ends_and_groups(self):
        guards, faults = run.parse("@some = ^x\\.\na.cpp | one\\ntwo | three | @some\n")
        self.assertEqual(faults, [])
        self.assertEqual(guards, [run.Guard("a.cpp", "one\ntwo", "three", "^x\\.")])

    def test_a_bar_between_spaces_is_written_with_a_backslash(self):
        guards, faults = run.parse("a.cpp | x \\| y | x | ^t\\.\n")
        self.assertEqual(faults, [])
        self.assertEqual(guards, [run.Guard("a.cpp", "x | y", "x", "^t\\.")])

    def test_a_line_of_another_form_is_a_fault(self):
        for line in ("a.cpp | text | tests", "a.cpp |  | replacement | tests", " | t | r | tests",
                     "a.cpp | text | replacement | ", "a.cpp | text | replacement | @unknown"):
            self.assertTrue(run.parse(line + "\n")[1], line)


class Rows(unittest.TestCase):
    def resolve(self, tests):
        rows = [Row(("a.one (1)", "b.two"), ("some",)), Row(("a.three",), ("some", "other")),
                Row(("a.four",), ())]
        (_, regexes), = run.with_rows([run.Guard("a.cpp", "x", "y", tests)], rows)
        return regexes

    def test_each_row_with_the_label_has_to_notice(self):
        one, three = self.resolve("rows:some")
        self.assertTrue(re.search(one, "a.one (1)"))
        self.assertTrue(re.search(one, "b.two"))
        self.assertFalse(re.search(one, "a.three"))
        self.assertFalse(re.search(three, "a.three and more"))
        self.assertEqual(len(self.resolve("rows:other")), 1)

    def test_a_label_without_rows_has_no_tests(self):
        self.assertEqual(self.resolve("rows:unknown"), ())

    def test_other_tests_stay_as_they_are(self):
        self.assertEqual(self.resolve("^a\\."), ("^a\\.",))


class Check(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        (self.root / "a.cpp").write_text("one two two three")

    def tearDown(self):
        self.folder.cleanup()

    def faults(self, file, text, replacement=""):
        return run.check([run.Guard(file, text, replacement, "x")], self.root)

    def test_a_text_must_stand_there_once(self):
        self.assertEqual(self.faults("a.cpp", "one"), [])
        self.assertTrue(self.faults("a.cpp", "two"))
        self.assertTrue(self.faults("a.cpp", "four"))
        self.assertTrue(self.faults("b.cpp", "one"))
        self.assertTrue(self.faults("a.cpp", "one", "one"))

    def test_a_copy_follows_its_source(self):
        with tempfile.TemporaryDirectory() as target:
            target = pathlib.Path(target)
            (target / "gone.cpp").write_text("x")
            (self.root / "build").mkdir()
            (self.root / "build" / "b.cpp").write_text("x")
            run.copy_tree(self.root, target)
            self.assertEqual([path.name for path in target.iterdir()], ["a.cpp"])
            before = (target / "a.cpp").stat().st_mtime_ns
            run.copy_tree(self.root, target)
            self.assertEqual((target / "a.cpp").stat().st_mtime_ns, before)
            (self.root / "a.cpp").write_text("new")
            run.copy_tree(self.root, target)
            self.assertEqual((target / "a.cpp").read_text(), "new")


if __name__ == "__main__":
    unittest.main()
