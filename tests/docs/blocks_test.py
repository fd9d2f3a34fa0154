#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The check of the documents' code blocks finds each planted fault."""
import pathlib
import tempfile
import unittest

import blocks

PROGRAM = "int main() {}\n"
README = f"# Name\n\n```cpp\n{PROGRAM}```\n\nRun it:\n\n    ./tools/run --fast  # soon\n"
DOCUMENT = "# Title\n\n## One thing\n\n```cpp\nfirst();\n```\n\n```cpp\nsecond();\n```\n\n```\nfigure\n```\n"
RUN = '#!/bin/sh\necho "  --fast  does it fast"\n'


class BlocksTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("README.md", README)
        self.write("docs/thing.md", DOCUMENT)
        self.write("examples/name.cpp", f"// SPDX-License-Identifier: Apache-2.0\n{PROGRAM}")
        self.write("tests/docs/thing_test.cpp",
                   '#include "thing/one-thing.inc"\n#include "thing/one-thing-2.inc"\n')
        self.write("tools/run", RUN).chmod(0o755)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def faults(self):
        return blocks.check(self.root, None)

    def test_good_documents_have_no_faults(self):
        self.assertEqual(self.faults(), [])

    def test_blocks_are_written_with_their_place(self):
        blocks.extract(self.root, self.root / "out")
        self.assertEqual((self.root / "out/thing/one-thing.inc").read_text(),
                         '#line 6 "docs/thing.md"\nfirst();\n')
        self.assertIn("second();", (self.root / "out/thing/one-thing-2.inc").read_text())

    def test_a_block_without_a_test_is_found(self):
        self.write("docs/other.md", "# Other\n\n```cpp\nthird();\n```\n")
        self.assertEqual(len(self.faults()), 1)

    def test_a_program_that_differs_from_the_example_is_found(self):
        self.write("README.md", README.replace("main() {}", "main() { }"))
        self.assertEqual(len(self.faults()), 1)

    def test_a_command_that_does_not_exist_is_found(self):
        self.write("README.md", README.replace("tools/run", "tools/walk"))
        self.assertEqual(len(self.faults()), 1)

    def test_an_option_that_does_not_exist_is_found(self):
        self.write("README.md", README.replace("--fast", "--slow"))
        self.assertEqual(len(self.faults()), 1)

    def test_an_example_that_does_not_exist_is_found(self):
        for name, count in (("name", 0), ("nobody", 1)):
            self.write("README.md", README.replace("./tools/run --fast", f"build/release/examples/{name} --x"))
            self.assertEqual(len(self.faults()), count, name)

    def test_a_line_to_compile_with_that_nothing_runs_is_found(self):
        self.write("README.md", README + "\n    g++ name.cpp\n")
        self.write("tests/install/check", "step_other() {\n")
        self.assertEqual(len(self.faults()), 1)

    def test_a_block_of_cmake_that_no_project_has_is_found(self):
        self.write("docs/other.md", "# Other\n\n```cmake\nfind_package(name)\n```\n")
        self.assertEqual(len(self.faults()), 1)
        self.write("tests/install/consumer/CMakeLists.txt", "# one\nfind_package(name)\n")
        self.assertEqual(self.faults(), [])

    def test_commands_of_the_system_and_variables_are_no_faults(self):
        self.write("README.md", README.replace("./tools/run", "NAME=value ./tools/run")
                   + "\nFirst:\n\n    sudo install it\n")
        self.assertEqual(self.faults(), [])

    def test_a_block_of_another_language_is_found(self):
        self.write("docs/other.md", "# Other\n\n```python\nprint()\n```\n")
        self.assertEqual(len(self.faults()), 1)

    def test_text_that_is_set_in_is_no_command(self):
        self.write("docs/other.md", "# Other\n\n- an item\n    that goes on\n")
        self.assertEqual(self.faults(), [])


if __name__ == "__main__":
    unittest.main()
