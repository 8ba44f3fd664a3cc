#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the links between documents and into the code.

    check_links.py [--fix] FILE.md...

A link to a file of the project needs that file, and an anchor its heading. A link to a line
of a source, as [`Name`](../worker/file.h#L12), needs the name on that line. --fix gives such
a link the nearest line that has the name.
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


def line_with(source, name, wanted):
    """The line with the name that is nearest to the wanted line; None: no line has it."""
    lines = [i for i, line in enumerate(source.splitlines(), start=1) if name in line]
    return min(lines, key=lambda line: abs(line - wanted), default=None)


def problem(file, text, target):
    """The error of a link in the file, and a target that repairs it, if there is one."""
    if re.match(r"[a-z]+:", target):
        return "", None  # elsewhere
    path, _, anchor = target.partition("#")
    linked = (file.parent / path) if path else file
    if not linked.exists():
        return f"there is no {path}", None
    if line := re.fullmatch(r"L(\d+)", anchor):
        name = text.strip("`")
        found = line_with(linked.read_text(), name, int(line[1]))
        if found is None:
            return f"no line of {path} has {name!r}", None
        if found != int(line[1]):
            return f"{path} has {name!r} on line {found}", f"{path}#L{found}"
    elif anchor and anchor not in anchors(linked.read_text()):
        return f"there is no heading #{anchor}", None
    return "", None


def problems(file, fix=False):
    """A sentence for each link that is wrong. With fix, mends the file where it can."""
    content = file.read_text()
    for number, line in outside_fences(content):
        plain = CODE.sub(lambda code: code[1] or "", line)
        for text, target in LINK.findall(plain):
            wrong, better = problem(file, text, target)
            if wrong and fix and better:
                content = content.replace(f"[{text}]({target})", f"[{text}]({better})")
            elif wrong:
                yield f"{file}:{number}: {target}: {wrong}"
    if content != file.read_text():
        file.write_text(content)


def main():
    fix = sys.argv[1:2] == ["--fix"]
    files = [pathlib.Path(name) for name in sys.argv[2 if fix else 1 :]]
    found = [line for file in files for line in problems(file, fix)]
    print("\n".join([*found, f"links: {len(files)} documents, {len(found)} problems"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
