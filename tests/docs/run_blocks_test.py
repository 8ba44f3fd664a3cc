#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests run_blocks.py: python3 tests/docs/run_blocks_test.py"""

import pathlib
import tempfile
import unittest

import run_blocks


def run(text, **options):
    """Runs a document whose fences are written as ~~~, with nothing in the root."""
    with tempfile.TemporaryDirectory() as root:
        return run_blocks.run_text(
            text.replace("~~~", "```"), root=pathlib.Path(root), **options)


def parse(text):
    return run_blocks.parse(text.replace("~~~", "```"))


class ParseTest(unittest.TestCase):
    def test_finds_blocks_with_their_lines_and_languages(self):
        blocks = parse("# Title\n\n~~~sh\necho a\necho b\n~~~\n\n~~~\na\n~~~\n")
        self.assertEqual([(b.line, b.language, b.text, b.runs()) for b in blocks],
                         [(3, "sh", "echo a\necho b\n", True), (8, "", "a\n", False)])

    def test_gives_a_comment_to_the_block_that_follows(self):
        blocks = parse("<!-- not run: needs root -->\n\n~~~sh\nid\n~~~\n"
                       "<!-- file: a b.yaml -->\n~~~yaml\nx: 1\n~~~\n~~~sh\ntrue\n~~~\n")
        self.assertEqual([(b.comment, b.argument, b.runs()) for b in blocks],
                         [("not run", "needs root", False), ("file", "a b.yaml", False),
                          ("", "", True)])

    def test_removes_the_indent_of_a_block_in_a_list(self):
        [block] = parse("- item\n  ~~~sh\n  if true; then\n    :\n  fi\n  ~~~\n")
        self.assertEqual(block.text, "if true; then\n  :\nfi\n")

    def test_reads_no_comment_within_a_block(self):
        [block] = parse("~~~sh\n<!-- not run: no -->\n~~~\n")
        self.assertEqual(block.comment, "")

    def test_refuses_a_comment_without_a_block(self):
        for text in ("<!-- not run: x -->\ntext\n~~~sh\n~~~\n", "<!-- not run: x -->\n"):
            with self.assertRaisesRegex(ValueError, "1: wanted a block"):
                parse(text)

    def test_refuses_a_block_without_end(self):
        with self.assertRaisesRegex(ValueError, "2: this block has no end"):
            parse("\n~~~sh\ntrue\n")

    def test_refuses_commands_that_are_not_marked(self):
        for block in ("~~~\n$ ls\n~~~", "~~~\nA: b\ntributary train x.yaml\n~~~",
                      "~~~\nA=b deploy/run.sh\n~~~", "~~~bash\nx\n~~~",
                      "~~~console\nx\n~~~", "~~~\npip install x\n~~~",
                      "  ~~~\n  docker cp a b\n  ~~~"):
            with self.assertRaisesRegex(ValueError, "2: this block has commands", msg=block):
                parse("\n" + block + "\n")

    def test_accepts_marked_commands_and_what_is_no_command(self):
        for block in ("~~~sh\ntributary train\n~~~", "~~~\ntributary: x.csv: line 3\n~~~",
                      "~~~python\ncd = 1\n~~~", "~~~\nworker/train/data  loads a batch\n~~~",
                      "<!-- not run: no -->\n~~~\n$ ls\n~~~",
                      "<!-- file: a -->\n~~~bash\nls\n~~~"):
            self.assertEqual(len(parse(block + "\n")), 1, msg=block)


class RunTest(unittest.TestCase):
    def test_runs_the_blocks_of_a_file_in_one_shell(self):
        result = run("~~~sh\nx=5\nmkdir d\ncd d\n~~~\n~~~\nnot a command\n~~~\n"
                     "~~~sh\necho $x > y\n~~~\n~~~sh\ncat ../d/y\n~~~\n")
        self.assertEqual((result.ran, result.failure, result.output), (3, "", "5\n"))

    def test_names_the_line_of_a_block_that_fails(self):
        result = run("~~~sh\ntrue\n~~~\n\n~~~sh\nfalse\necho no\n~~~\n~~~sh\ntrue\n~~~\n")
        self.assertEqual(result.failure, "5: this block failed: exit code 1")
        self.assertEqual((result.ran, result.output), (2, ""))

    def test_fails_at_an_unset_variable_and_within_a_pipe(self):
        for command in ("echo $unset_variable", "false | true"):
            self.assertIn("1: this block failed", run(f"~~~sh\n{command}\n~~~\n").failure)

    def test_fails_when_a_block_ends_the_shell(self):
        result = run("~~~sh\nexit 0\n~~~\n~~~sh\ntrue\n~~~\n")
        self.assertEqual(result.failure, "1: this block failed: exit code 0")

    def test_ends_a_block_that_takes_too_long(self):
        result = run("~~~sh\nsleep 60\n~~~\n", timeout=0.5)
        self.assertEqual(result.failure, "1: this block failed: longer than 0.5 s")

    def test_counts_skipped_blocks_with_their_reasons(self):
        result = run("<!-- not run: needs root -->\n~~~sh\nfalse\n~~~\n"
                     "<!-- run if: false -->\n~~~sh\nfalse\n~~~\n"
                     "<!-- run if: true -->\n~~~sh\necho yes\n~~~\n")
        self.assertEqual((result.ran, result.failure, result.output), (1, "", "yes\n"))
        self.assertEqual(result.skipped,
                         ["2: needs root", "6: this fails here: false"])

    def test_notices_that_a_block_with_a_condition_fails(self):
        result = run("<!-- run if: true -->\n~~~sh\nfalse\ntrue\n~~~\n")
        self.assertEqual(result.failure, "2: this block failed: exit code 1")

    def test_writes_files_where_the_shell_is(self):
        result = run("~~~sh\nmkdir d; cd d\n~~~\n<!-- file: a.txt -->\n~~~\nhello\n~~~\n"
                     "~~~sh\ncat a.txt\n~~~\n")
        self.assertEqual((result.failure, result.output), ("", "hello\n"))

    def test_leaves_no_process_behind(self):
        with tempfile.TemporaryDirectory() as folder:
            result = run(f"~~~sh\n(sleep 1; touch {folder}/late) &\n~~~\n")
            self.assertEqual(result.failure, "")
            run("~~~sh\nsleep 1.5\n~~~\n")
            self.assertEqual(list(pathlib.Path(folder).iterdir()), [])


if __name__ == "__main__":
    unittest.main()
