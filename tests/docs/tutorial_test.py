#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The run of the tutorial finds each planted fault, and leaves nothing running."""
import contextlib
import io
import os
import pathlib
import tempfile
import time
import unittest

import tutorial

SAY = "# Title\n\n## 1. One\n\n```sh\necho 12 words here\n```\n\n```\n7 words here\n```\n"


class WordsTest(unittest.TestCase):
    def test_figures_do_not_count_and_words_do(self):
        self.assertTrue(tutorial.is_like("  64   5.07 us of 4K", "17 9.3 us of 64K"))
        self.assertFalse(tutorial.is_like("12 us lost", "12 us"))
        self.assertFalse(tutorial.is_like("here words", "words here"))

    def test_shown_lines_come_in_their_order_and_others_may_stand_between(self):
        self.assertIsNone(tutorial.first_missing(["a", "", "b"], "a\nother\nb\n"))
        self.assertEqual(tutorial.first_missing(["b", "a"], "a\nb\n"), "a")
        self.assertEqual(tutorial.first_missing(["a", "a"], "a\n"), "a")

    def test_the_programs_of_a_block_are_the_first_words_of_its_commands(self):
        block = "A=1 tshark -r x\nbuild/tool --g++\nx=2\nrun $(pkg-config --libs)\n"
        self.assertEqual(list(tutorial.programs_of(block)), ["tshark", "run", "pkg-config"])


class StepsTest(unittest.TestCase):
    def test_a_step_has_its_commands_and_what_is_shown_after_them(self):
        (step,) = tutorial.steps_of(SAY)
        self.assertEqual(step.title, "1. One")
        self.assertEqual(step.exchanges, [(6, "echo 12 words here\n", ["7 words here"])])

    def test_a_block_without_a_step_and_output_without_a_command_are_found(self):
        for text in ("# Title\n\n```sh\necho\n```\n", "## 1. One\n\n```\noutput\n```\n"):
            with self.assertRaises(tutorial.Failure):
                tutorial.steps_of(text)

    def test_the_document_has_ten_steps_and_each_has_commands_and_output(self):
        steps = tutorial.steps_of((tutorial.blocks.ROOT / tutorial.DOCUMENT).read_text())
        self.assertEqual([step.title.split(".")[0] for step in steps], list("123456789") + ["10"])
        for step in steps:
            self.assertTrue(any(exchange.shown for exchange in step.exchanges), step.title)

    def test_every_output_that_is_shown_has_a_word_to_compare(self):
        for step in tutorial.steps_of((tutorial.blocks.ROOT / tutorial.DOCUMENT).read_text()):
            for exchange in step.exchanges:
                self.assertTrue(not exchange.shown or any(map(tutorial.words_of, exchange.shown)),
                                f"line {exchange.line}")


class ShellTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.environment = dict(os.environ)
        self.shell = None

    def run_text(self, text, patience=20):
        """The sentences on steps that are left out."""
        self.shell = tutorial.Shell(self.folder, self.environment)
        self.addCleanup(self.shell.end)
        self.shell.deadline = time.monotonic() + patience
        with contextlib.redirect_stdout(io.StringIO()):
            return tutorial.run_steps(self.shell, tutorial.steps_of(text), False)

    def refused(self, text, *parts, patience=20):
        with self.assertRaises(tutorial.Failure) as found:
            self.run_text(text, patience)
        for part in parts:
            self.assertIn(part, str(found.exception))

    def test_what_is_as_shown_has_no_fault(self):
        self.assertEqual(self.run_text(SAY), [])

    def test_other_words_than_shown_are_found_with_their_line(self):
        self.refused(SAY.replace("7 words", "7 verbs"), "tutorial.md:6", "7 verbs here", "12 words here")

    def test_a_command_that_fails_is_found_wherever_it_stands_in_its_block(self):
        for commands in ("false\necho 12 words here", "echo 12 words here\nfalse"):
            self.refused(SAY.replace("echo 12 words here", commands), "tutorial.md:6", "status 1")

    def test_a_command_that_does_not_exist_is_found(self):
        self.refused(SAY.replace("echo 12", "./no-such-program 12"), "status 127")

    def test_a_command_that_hangs_is_ended_in_time(self):
        self.refused(SAY.replace("echo 12 words here", "sleep 1000"), "not done in time", patience=1)

    def test_variables_folders_and_programs_in_the_background_stay_from_block_to_block(self):
        self.assertEqual(self.run_text(
            "## 1. One\n\n```sh\nmkdir here\ncd here\nexport A=first\n(sleep 0.3; echo it runs; sleep 1) &\n"
            "```\n\n```\nit runs\n```\n\n## 2. Two\n\n```sh\nwait\necho $A ${PWD##*/}\n```\n\n"
            "```\nfirst here\n```\n"), [])

    def test_nothing_that_was_started_is_left(self):
        self.run_text("## 1. One\n\n```sh\nsleep 1000 &\necho $! >number\n```\n")
        number = int((self.folder / "number").read_text())
        self.shell.end()
        state = pathlib.Path(f"/proc/{number}/stat")
        deadline = time.monotonic() + 20
        while state.exists() and state.read_text().rsplit(")", 1)[1].split()[0] != "Z":
            self.assertLess(time.monotonic(), deadline, "it still runs")
            time.sleep(0.02)

    def test_a_step_whose_program_is_not_installed_is_left_out_loudly(self):
        tutorial.PACKAGES["no-such-tool"] = "its-package"
        self.addCleanup(tutorial.PACKAGES.pop, "no-such-tool")
        skipped = self.run_text(SAY + "\n## 2. Two\n\n```sh\nno-such-tool\n```\n")
        self.assertEqual(skipped, ["step 2. Two: not installed: its-package"])


if __name__ == "__main__":
    unittest.main()
