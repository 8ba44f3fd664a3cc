"""Connections that are closed leave neither memory, threads nor files behind.

`python connects.py --warm 20 --count 1000` runs it for longer.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from processes import DEADLINE, Job, environment  # noqa: E402

pytestmark = pytest.mark.cluster

KIB_A_CONNECTION = 20


def check(*arguments: str, count: int) -> None:
    """What `count` connections leave behind is within the bounds."""
    done = subprocess.run(
        [sys.executable, str(HERE / "connects.py"), *arguments, "--count", str(count)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=2 * DEADLINE,
    )
    assert done.returncode == 0, done.stderr
    _, before, *_, after = json.loads(done.stdout.splitlines()[-1])
    print(f"{count} connections: {before}, {after}")
    assert after["threads"] - before["threads"] <= count // 20
    assert after["files"] - before["files"] <= count // 20
    assert after["kib"] - before["kib"] <= KIB_A_CONNECTION * count


def test_joining_and_leaving(tmp_path: Path) -> None:
    with Job(tmp_path, workers=1000) as job:
        check("--places", job.address, "--warm", "100", count=400)


def test_whole_jobs(tmp_path: Path) -> None:
    check("--warm", "20", count=60)
