# SPDX-License-Identifier: Apache-2.0
"""Connections that are closed leave neither memory, threads nor files behind."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from processes import Job, environment  # noqa: E402

pytestmark = pytest.mark.cluster

Figures = dict[str, int]
KIB_A_CONNECTION = 4
SAMPLES = 5  # gRPC ends its last threads a moment after the connection


class Process:
    """connects.py. Use it in a `with` block."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "connects.py")],
            # By default malloc keeps memory for each thread that ever was.
            env=environment(MALLOC_ARENA_MAX="1"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def connect(self, line: str) -> Figures:
        """The process' figures after one more connection."""
        assert self._process.stdin is not None and self._process.stdout is not None
        print(line, file=self._process.stdin, flush=True)
        for answer in self._process.stdout:
            if answer.startswith("{"):
                return json.loads(answer)
        raise AssertionError(f"connects.py exited with {self._process.wait()}")

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


def whole_jobs(folder: Path, count: int) -> Iterator[Figures]:
    """A process' figures after each job of a coordinator and a server."""
    with Process() as process:
        for number in range(count):
            own = folder / f"{number}"
            own.mkdir()
            with Job(own) as job:
                yield process.connect(job.address)


def places(folder: Path, count: int) -> Iterator[Figures]:
    """A process' figures after each place of one job that it took and left."""
    with Process() as process, Job(folder, workers=count) as job:
        for rank in range(count):
            yield process.connect(f"{job.address} {rank}")


def least(seen: list[Figures]) -> Figures:
    """The least of each figure in the last samples, each of which has every leak."""
    return {name: min(one[name] for one in seen[-SAMPLES:]) for name in seen[-1]}


def check(seen: list[Figures], warm: int) -> None:
    """Checks what a connection leaves on average, not counting the first `warm`."""
    before, after, count = seen[warm - 1], least(seen), len(seen) - warm
    print(f"{count} connections: {before}, {after}")
    assert after["threads"] <= before["threads"]
    assert after["files"] <= before["files"]
    assert after["kib"] - before["kib"] <= KIB_A_CONNECTION * count


def test_joining_and_leaving(tmp_path: Path) -> None:
    check(list(places(tmp_path, 300)), warm=100)


def test_whole_jobs(tmp_path: Path) -> None:
    check(list(whole_jobs(tmp_path, 40)), warm=15)
