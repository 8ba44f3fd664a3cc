# SPDX-License-Identifier: Apache-2.0
"""Reading the weights of a job that trains."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from runs import HERE, check, start

pytestmark = pytest.mark.cluster
FOLLOWED = str(HERE / "followed.py")


def test_a_follower_reads_weights_of_one_step_until_the_job_ends(
    tmp_path: Path,
) -> None:
    output = tmp_path / "seen.json"
    done = start(tmp_path, ["--servers", "2"], [FOLLOWED, str(output)])
    check(done, tmp_path)
    seen = json.loads(output.read_text())
    assert seen["shapes"] == {"w": [400_000], "b": [3]}
    assert seen["end"] == "Stopped: the job is done"
    reads = seen["reads"]
    assert len(reads) >= 3
    for updates, consistent, least, most in reads:
        assert consistent
        assert least == most == -0.5 * updates
    counts = [updates for updates, *_ in reads]
    assert counts == sorted(set(counts))
