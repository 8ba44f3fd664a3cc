#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of Markdown files, so that documents do not rot.

Blocks of the language `sh` run, in order, in one bash for each file. The bash starts in
an empty folder with links to the files of the repository's root, so a document can name
`examples/digits.yaml` and write to `runs/`. A comment on the line before a block changes
what happens to it:

  <!-- not run: REASON -->    skips the block; REASON is printed
  <!-- run if: COMMAND -->    skips the block when COMMAND fails
  <!-- file: NAME -->         writes the block to NAME, whatever its language is

A block that looks like commands and has neither the language `sh` nor such a comment is
an error, so that no command stays unchecked by mistake.

  run_blocks.py [--path FOLDER]... [--root FOLDER] [--timeout SECONDS] FILE...
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOT_LINKED = {"build", "runs"}  # A document's commands write there.
FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,})(?P<language>[\w+-]*) *$")
# A command at the beginning of a line: a prompt, a program that documents name, a script
# of this repository, or a variable before a command.
COMMAND = re.compile(
    r"^ *(\$ |([A-Z_]+=\S* +)*(sudo |time )?("
    r"tributary(-\w+)?|pip3?|python3?|docker|docker-compose|cmake|ctest|ninja|apt|apt-get|dpkg"
    r"|git|cd|export|source|mkdir|prometheus|promtool|torchrun"
    r"|(\./)?(deploy|tests|bench|python|build|\.ci)/\S+)( |$))", re.MULTILINE)
SHELLS = ("bash", "console", "shell", "zsh")
COMMENT = re.compile(r"^ *<!-- (?P<kind>not run|run if|file): (?P<text>.*\S) *-->$")


@dataclasses.dataclass
class Block:
    """A fenced block: the line of its fence, from 1, and the comment before it."""

    line: int
    language: str
    text: str
    comment: str = ""  # "not run", "run if", "file", or empty
    argument: str = ""

    def runs(self) -> bool:
        return self.language == "sh" and self.comment not in ("not run", "file")

    def unmarked(self) -> bool:
        """Whether the block has commands that nobody runs, without a reason."""
        if self.comment in ("not run", "file"):
            return False
        return self.language in SHELLS or (
            self.language == "" and COMMAND.search(self.text) is not None)


@dataclasses.dataclass
class Result:
    ran: int = 0
    skipped: list[str] = dataclasses.field(default_factory=list)  # "LINE: REASON"
    failure: str = ""  # "LINE: what happened"; empty: everything ran
    output: str = ""


def parse(text: str) -> list[Block]:
    """The blocks of a document.

    ValueError for a comment without block, an open block, or unmarked commands.
    """
    blocks = []
    block = None
    comment = None  # (line, kind, text), until a block follows
    fence = indent = ""
    for number, line in enumerate(text.splitlines(), 1):
        if block is not None:
            if line.strip() == fence:
                blocks.append(block)
                block = None
            else:
                block.text += line.removeprefix(indent) + "\n"
        elif found := FENCE.match(line):
            block = Block(number, found["language"], "")
            if comment:
                _, block.comment, block.argument = comment
                comment = None
            fence, indent = found["fence"], found["indent"]
        elif comment and line.strip():
            raise ValueError(f"{comment[0]}: wanted a block after this comment")
        elif found := COMMENT.match(line):
            comment = (number, found["kind"], found["text"])
    if block is not None:
        raise ValueError(f"{block.line}: this block has no end")
    if comment:
        raise ValueError(f"{comment[0]}: wanted a block after this comment")
    for block in blocks:
        if block.unmarked():
            raise ValueError(f"{block.line}: this block has commands: give it the language "
                             "sh, or put <!-- not run: REASON --> before it")
    return blocks


def write_script(blocks: list[Block], folder: pathlib.Path) -> pathlib.Path:
    """Writes a bash script that runs the blocks and notes each in `progress`."""
    progress = shlex.quote(str(folder / "progress"))
    lines = ["set -euo pipefail"]
    for block in blocks:
        lines.append(f"echo 'begin {block.line}' >> {progress}")
        path = folder / f"block-{block.line}"
        if block.comment == "file":
            path.write_text(block.text)
            lines.append(f"cp {shlex.quote(str(path))} {shlex.quote(block.argument)}")
        elif block.runs():
            path.write_text(block.text)
            run = f"source {shlex.quote(str(path))}"
            if block.comment == "run if":
                # The test of `if` must not hide an error of the block itself.
                lines.append(f"if ( {block.argument} ) > /dev/null 2>&1; then runs=1; else runs=0; fi")
                lines.append(f"if [ $runs = 0 ]; then echo 'skip {block.line}' >> {progress}; fi")
                run = f"if [ $runs = 1 ]; then {run}; fi"
            lines.append(run)
    lines.append(f"echo 'end 0' >> {progress}")
    script = folder / "script"
    script.write_text("\n".join(lines) + "\n")
    return script


def run_script(script: pathlib.Path, work: pathlib.Path, timeout: float) -> tuple[int, str]:
    """Exit code (None: too late) and output. No process of the script is left behind."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            ["bash", script], cwd=work, stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, start_new_session=True)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            code = None
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        output.seek(0)
        return code, output.read().decode(errors="replace")


def run_text(text: str, timeout: float = 600, root: pathlib.Path = ROOT) -> Result:
    """Runs the blocks of one document."""
    blocks = parse(text)
    with tempfile.TemporaryDirectory() as name:
        folder, work = pathlib.Path(name) / "script", pathlib.Path(name) / "work"
        folder.mkdir()
        work.mkdir()
        # The jobs of documents are not registered among those of the user.
        os.environ["XDG_STATE_HOME"] = str(pathlib.Path(name) / "state")
        for entry in root.iterdir():
            if not entry.name.startswith(".") and entry.name not in NOT_LINKED:
                (work / entry.name).symlink_to(entry)
        code, output = run_script(write_script(blocks, folder), work, timeout)
        progress = [line.split() for line in (folder / "progress").read_text().splitlines()]
    result = Result(output=output)
    reached = [int(line) for word, line in progress if word == "begin"]
    skipped = {int(line) for word, line in progress if word == "skip"}
    for block in blocks:
        if block.comment == "not run":
            result.skipped.append(f"{block.line}: {block.argument}")
        elif block.line in skipped:
            result.skipped.append(f"{block.line}: this fails here: {block.argument}")
        elif block.runs() and block.line in reached:
            result.ran += 1
    if progress[-1][0] != "end":
        what = f"longer than {timeout:g} s" if code is None else f"exit code {code}"
        result.failure = f"{reached[-1]}: this block failed: {what}"
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description="Runs the sh blocks of Markdown files.")
    parser.add_argument("files", nargs="+", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--path", action="append", default=[], help="a folder of programs")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT,
                        help="the folder whose files the commands name")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for each file")
    options = parser.parse_args()
    folders = [str(pathlib.Path(folder).resolve()) for folder in options.path]
    os.environ["PATH"] = os.pathsep.join([*folders, os.environ["PATH"]])
    started = time.monotonic()
    ran = skipped = failed = 0
    for file in options.files:
        try:
            result = run_text(file.read_text(), options.timeout, options.root)
        except ValueError as error:
            result = Result(failure=str(error))
        ran += result.ran
        skipped += len(result.skipped)
        for reason in result.skipped:
            print(f"{file}:{reason.split(':')[0]}: not run:{reason.split(':', 1)[1]}")
        if result.failure:
            failed += 1
            print("\n".join(result.output.splitlines()[-30:]))
            print(f"{file}:{result.failure}")
    minutes = (time.monotonic() - started) / 60
    print(f"{ran} blocks ran, {skipped} skipped, {failed} files failed, {minutes:.1f} minutes")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
