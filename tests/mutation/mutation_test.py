# SPDX-License-Identifier: Apache-2.0
"""tools/mutation/run reads its listing and finds guards that are not where they should be."""
import importlib.machinery
import importlib.util
import pathlib
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools" / "mutation" / "run"


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

    def test_a_line_of_another_form_is_a_fault(self):
        for line in ("a.cpp | text | tests", "a.cpp |  | replacement | tests", " | t | r | tests",
                     "a.cpp | text | replacement | ", "a.cpp | text | replacement | @unknown"):
            self.assertTrue(run.parse(line + "\n")[1], line)


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
