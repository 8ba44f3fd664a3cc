# SPDX-License-Identifier: Apache-2.0
"""Every policy of synchronization, through the PyTorch client and real servers.

The order in which ranks go on is decided by what they have done, never by time.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from policy_program import optimum  # noqa: E402
from runs import start  # noqa: E402

pytestmark = pytest.mark.cluster


def train(
    folder: Path,
    ranks: int,
    sync: Any,
    *,
    lr: float,
    steps: int,
    behind: int = 0,
    total_steps: int | None = None,
) -> list[dict[str, Any]]:
    """Trains to the end. Returns what each rank reports."""
    for name in ("begun", "taken"):
        np.zeros(ranks, np.int64).tofile(folder / name)
    keywords = {"kind": "sgd", "lr": lr, "sync": sync, "sync_timeout": 60}
    program = [
        str(HERE / "policy_program.py"),
        *("--keywords", json.dumps(keywords), "--steps", str(steps)),
        *("--behind", str(behind), "--folder", str(folder)),
    ]
    if total_steps is not None:
        program += ["--total-steps", str(total_steps)]
    done = start(folder, ["--servers", "2", "--workers", str(ranks)], program)
    if done.returncode != 0:
        raise RuntimeError(done.stdout + done.stderr)
    reports = [folder / f"rank{rank}.json" for rank in range(ranks)]
    return [json.loads(path.read_text()) for path in reports]


def final_weights(folder: Path) -> torch.Tensor:
    """The servers' weights at the end."""
    from safetensors.torch import load_file

    return load_file(folder / "run" / "weights.safetensors")["weight"].flatten()


def distance(weights: Any, ranks: int) -> float:
    return float((torch.as_tensor(weights) - optimum(ranks)).abs().max())


# The Hessian of a rank's loss is the identity in its part. So bsp with lr = 1 and
# 3 ranks multiplies the error by 2/3 in each step. With lr = 1/2 each single
# contribution halves it, in any order.
def test_bsp(tmp_path: Path) -> None:
    reports = train(tmp_path, 3, "bsp", lr=1.0, steps=40)
    for report in reports:
        assert distance(report["weights"], 3) < 1e-4
        assert report["most_behind"] == 0
    assert len({tuple(report["weights"]) for report in reports}) == 1


def test_ssp_lets_a_rank_be_two_steps_behind_and_not_three(tmp_path: Path) -> None:
    sync = {"ssp": {"staleness": 2}}
    reports = train(tmp_path, 3, sync, lr=0.5, steps=30, behind=2)
    # bsp would wait for ever for the last rank, which waits for rank 0.
    assert reports[0]["most_behind"] == 2
    assert max(report["most_behind"] for report in reports) == 2
    assert distance(final_weights(tmp_path), 3) < 1e-4


def test_async_lets_a_rank_begin_when_another_has_taken_every_step(
    tmp_path: Path,
) -> None:
    reports = train(tmp_path, 3, "async", lr=0.5, steps=30, behind=30)
    assert reports[0]["most_behind"] == 30
    assert distance(final_weights(tmp_path), 3) < 1e-4


def test_local_sgd_averages_after_each_round(tmp_path: Path) -> None:
    outer = {"learning_rate": 1.0, "momentum": 0.0, "nesterov": False}
    sync = {"local_sgd": {"period": 4, "outer": outer}}
    reports = train(tmp_path, 3, sync, lr=0.5, steps=160)
    # A round moves a rank's own part by 15/16 of its distance, and the average
    # by a third of this: 40 rounds leave (11/16)^40 = 3e-7 of it.
    for report in reports:
        assert distance(report["weights"], 3) < 1e-4
        assert report["most_behind"] <= 3
    assert distance(final_weights(tmp_path), 3) < 1e-4


def test_the_last_round_is_shorter_where_the_program_says_its_end(
    tmp_path: Path,
) -> None:
    outer = {"learning_rate": 1.0, "momentum": 0.0, "nesterov": False}
    sync = {"local_sgd": {"period": 4, "outer": outer}}
    reports = train(tmp_path, 2, sync, lr=1.0, steps=6, total_steps=6)
    # A rank reaches its own part's optimum in a step, and the average moves half
    # of the way there: two rounds leave a quarter of the distance.
    weights = final_weights(tmp_path)
    assert reports[0]["weights"] == reports[1]["weights"] == weights.tolist()
    first = torch.tensor(reports[0]["first"])
    torch.testing.assert_close(weights, optimum(2) + (first - optimum(2)) / 4)


def test_and_the_program_hears_of_it_where_it_does_not(tmp_path: Path) -> None:
    sync = {"local_sgd": {"period": 4}}
    with pytest.raises(RuntimeError, match="Misuse: .* declare total_steps=6"):
        train(tmp_path, 2, sync, lr=1.0, steps=6)
