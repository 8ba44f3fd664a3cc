#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the links between documents and into the code.

    check_links.py FILE.md...

A link to a file of the project needs that file, and an anchor its heading. A link to a line
of a source, as [`Name`](../worker/file.h#L12), needs the name on that line.
"""

import pathlib
import re
import sys

LINK = re.compile(r"\[([^]\[]*)\]\(([^)\s]+)\)")
CODE = re.compile(r"(\[`[^`]*`\])|`[^`]*`")  # the first kind is the text of a link


def outside_fences(text):
    """The numbered lines that are not within ``` blocks."""
    fenced = False
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


def anchors(text):
    """The anchors of a document's headings, as GitHub makes them."""
    found = set()
    for _, line in outside_fences(text):
        if heading := re.match(r"#+ (.*)", line):
            plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading[1]).lower()
            found.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return found


def problem(file, text, target):
    """What is wrong with a link in the file; empty: nothing."""
    if re.match(r"[a-z]+:", target):
        return ""  # elsewhere
    path, _, anchor = target.partition("#")
    linked = (file.parent / path) if path else file
    if not linked.exists():
        return f"there is no {path}"
    if not anchor:
        return ""
    if line := re.fullmatch(r"L(\d+)", anchor):
        lines = linked.read_text().splitlines()
        name = text.strip("`")
        if int(line[1]) > len(lines) or name not in lines[int(line[1]) - 1]:
            at = [i for i, content in enumerate(lines, start=1) if name in content]
            return f"{path} has {name!r} on the lines {at}, not on {line[1]}"
        return ""
    return "" if anchor in anchors(linked.read_text()) else f"there is no heading #{anchor}"


def problems(file):
    text = file.read_text()
    for number, line in outside_fences(text):
        plain = CODE.sub(lambda code: code[1] or "", line)
        for label, target in LINK.findall(plain):
            if wrong := problem(file, label, target):
                yield f"{file}:{number}: {target}: {wrong}"


def main():
    files = [pathlib.Path(name) for name in sys.argv[1:]]
    found = [line for file in files for line in problems(file)]
    print("\n".join([*found, f"links: {len(files)} documents, {len(found)} problems"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
