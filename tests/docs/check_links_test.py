# SPDX-License-Identifier: Apache-2.0
"""Tests check_links.py on made-up documents."""

import pathlib
import tempfile
import unittest

import check_links

PAGE = """# A page

## `tributary run`, twice

### [A linked](other.md) heading
"""


class CheckLinksTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "page.md").write_text(PAGE)
        (self.folder / "code.h").write_text("// A comment.\nclass Rank {\n")

    def problems(self, text):
        file = self.folder / "here.md"
        file.write_text(text)
        return [line.split(": ", 1)[1] for line in check_links.problems(file)]

    def test_what_is_there_is_no_problem(self):
        text = "[a](page.md), [b](page.md#tributary-run-twice) and [`Rank`](code.h#L2)\n"
        self.assertEqual(self.problems(text + "[c](page.md#a-linked-heading)"), [])

    def test_links_out_of_the_project_and_in_code_are_not_read(self):
        text = "[a](https://x.org/y#z), `[b](none.md)`\n```\n[c](none.md)\n```\n"
        self.assertEqual(self.problems(text), [])

    def test_a_missing_file_or_heading_is_named(self):
        self.assertEqual(self.problems("[a](no.md)"), ["no.md: there is no no.md"])
        self.assertEqual(self.problems("[a](#b)"), ["#b: there is no heading #b"])
        self.assertEqual(
            self.problems("text [a](page.md#b)"),
            ["page.md#b: there is no heading #b"],
        )

    def test_a_name_that_moved_is_found_again(self):
        link = "`[x](none.md)` [`Rank`](code.h#L1)"
        self.assertEqual(
            self.problems(link), ["code.h#L1: code.h has 'Rank' on line 2"]
        )
        self.assertEqual(list(check_links.problems(self.folder / "here.md", fix=True)), [])
        self.assertEqual((self.folder / "here.md").read_text(), link.replace("L1", "L2"))

    def test_a_name_that_is_gone_is_told(self):
        self.assertEqual(
            self.problems("[`Shard`](code.h#L1)"),
            ["code.h#L1: no line of code.h has 'Shard'"],
        )

    def test_a_heading_in_a_block_is_none(self):
        self.assertEqual(
            self.problems("```\n# b\n```\n[a](#b)"), ["#b: there is no heading #b"]
        )


if __name__ == "__main__":
    unittest.main()
