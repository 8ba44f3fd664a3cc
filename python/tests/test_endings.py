# SPDX-License-Identifier: Apache-2.0
"""How the end of a program is reported to the job: as success only after all steps."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
# Prints how the job ends. `step` takes a step.
OPENING = f"""
import sys, threading
sys.path[:0] = [{str(HERE)!r}, {str(HERE.parent)!r}]
import fake_native as fake
sys.modules["tributary._native"] = fake
fake.Session.fail = lambda self, why: print("failed:", why, flush=True)
fake.Session.finish = lambda self: print("finished") or fake.Next.END
import tributary, numpy
def start(**totals):
    global client
    client = tributary.connect("a:1", rank=0)
    client.declare({{"w": numpy.ones(1)}}, lr=1.0, **totals)
def step():
    client.step({{"w": numpy.ones(1)}})
def run(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
"""
OPEN = "failed: rank 0: the program ended after step 1 without saying"


def end(program: str) -> tuple[int, str, str]:
    """The program's exit code, what it printed and its errors."""
    command = [sys.executable, "-c", OPENING + program]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout.rstrip(), done.stderr


@pytest.mark.parametrize(
    ("program", "code", "told"),
    [
        ("start(); step()", 1, OPEN),
        ("start(); step(); sys.exit()", 1, OPEN),
        ("start(); step(); sys.exit(3)", 3, "failed: rank 0: SystemExit: 3"),
        ("start(); step(); sys.exit('no data')", 1, "failed: rank 0: SystemExit: no"),
        ("start(); step(); raise SystemExit(4)", 1, OPEN),
        (
            "start(); import argparse; argparse.ArgumentParser().error('x')",
            2,
            "failed: rank 0: SystemExit: 2",
        ),
        (
            "start(); raise ValueError('bad row')",
            1,
            "failed: rank 0: ValueError: bad row",
        ),
        ("start(); raise KeyboardInterrupt", -2, "failed: rank 0: KeyboardInterrupt"),
        ("start(); step(); client.finish()", 0, "finished"),
        ("start(); step(); client.finish(); sys.exit(3)", 3, "finished"),
        ("start(total_steps=1); step()", 0, "finished"),
        ("start(total_steps=2); step()", 1, OPEN),
        ("start(total_steps=1); step(); sys.exit(3)", 3, "finished"),
        ("start(); step(); del client", 1, OPEN),
        # A thread that trains, and one that does not.
        (
            "start()\ndef work():\n  step()\n  1 / 0\nrun(work)",
            1,
            "failed: rank 0: ZeroDivisionError: division by zero",
        ),
        ("start(total_steps=1); step(); run(lambda: 1 / 0)", 0, "finished"),
        ("run(lambda: 1 / 0); start(total_steps=1); step()", 0, "finished"),
        (
            "run(lambda: start(total_steps=1)); run(step); run(lambda: 1 / 0)",
            0,
            "finished",
        ),
        ("def work():\n  start()\n  1 / 0\nrun(work)", 1, "failed: rank 0: Zero"),
        (
            "start(); run(lambda: (step(), sys.exit(5)))",
            1,
            "failed: rank 0: SystemExit: 5",
        ),
        ("start(); run(lambda: (step(), sys.exit()))", 1, OPEN),
        (
            "start(total_steps=2)\ndef work():\n  step()\n  1 / 0\nrun(work); step()",
            0,
            "finished",
        ),
        # As an interactive shell that has shown an exception does.
        (
            "start(); step(); sys.last_value = ValueError('in a cell')",
            1,
            "failed: rank 0: ValueError: in a cell",
        ),
        ("sys.last_value = ValueError(); start(); step()", 1, OPEN),
    ],
)
def test_the_end_of_a_program(program: str, code: int, told: str) -> None:
    returned, output, errors = end(program)
    assert output.startswith(told) and "\n" not in output, output + errors
    assert returned == code, errors


def test_an_open_end_says_what_to_do() -> None:
    _, _, errors = end("start(); step()")
    assert "tributary: the program ended after step 1" in errors
    assert "`with tributary.connect() as ...:`, or call finish()" in errors


def test_a_job_that_went_back_asks_for_a_restart() -> None:
    back = "fake.Session.finish = lambda self: fake.Next.MOVED\n"
    code, _, errors = end(back + "start(total_steps=1); step()")
    assert code == 1 and "run the program again" in errors


def test_the_end_of_a_fork_does_not_end_the_job() -> None:
    program = (
        "start()\nimport os\nif os.fork() == 0: sys.exit()\nos.wait(); client._close()"
    )
    assert end(program)[:2] == (0, "")


def test_a_job_that_has_ended_is_left() -> None:
    program = "start(); client._ended = True; step_count = 3"
    assert end(program)[:2] == (0, "finished")


@pytest.mark.parametrize(
    ("work", "code", "told"),
    [
        ("(step(), 1 / 0)", 1, "failed: rank 0: ZeroDivisionError"),
        ("1 / 0", 0, "finished"),
    ],
)
def test_a_block_with_a_thread_that_failed(work: str, code: int, told: str) -> None:
    """Only a thread that trains matters."""
    program = f"start()\nwith client:\n  run(lambda: {work})"
    returned, output, errors = end(program)
    assert output.startswith(told) and returned == code
    assert ("a thread that trained has failed" in errors) == (code == 1)
