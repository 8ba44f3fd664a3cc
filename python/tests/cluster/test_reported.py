# SPDX-License-Identifier: Apache-2.0
"""A run's reports of its steps: their losses, and which steps changed nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from runs import check, start  # noqa: E402

pytestmark = pytest.mark.cluster


def train(folder: Path, steps: str, *options: str) -> tuple[str, dict[str, Any]]:
    """Runs the statements `steps`; returns its output and summary.json."""
    program = folder / "program.py"
    program.write_text(
        "import numpy as np, tributary\n"
        "with tributary.connect(nonfinite='skip') as client:\n"
        "    client.declare({'w': np.ones(2)}, lr=0.1, total_steps=10)\n"
        f"{steps}"
    )
    done = start(folder, ["--workers", "2", *options], [str(program)])
    check(done, folder)
    return done.stdout, json.loads((folder / "run" / "summary.json").read_text())


def lines(folder: Path) -> list[dict[str, Any]]:
    text = (folder / "run" / "metrics.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_skipped_steps_are_counted(tmp_path: Path) -> None:
    steps = (
        "    for step in range(10):\n"
        "        value = 1.0 if step == 3 else np.inf\n"
        "        client.step({'w': np.full(2, value)}, loss=0.5)\n"
    )
    shown, summary = train(tmp_path, steps)
    assert summary["skipped_steps"] == 9
    assert "9 of 10 steps changed nothing" in shown
    skipped = [line["step"] for line in lines(tmp_path) if line.get("skipped")]
    assert skipped == [1, 2, 3, 5, 6, 7, 8, 9, 10]


def test_a_loss_that_no_rank_reports_is_none(tmp_path: Path) -> None:
    steps = "    for _ in range(10): client.step({'w': np.ones(2)})\n"
    shown, summary = train(tmp_path, steps)
    assert " loss " not in shown
    assert summary["final_loss"] is None
    assert [line["loss"] for line in lines(tmp_path)] == [None] * 10
    assert summary["skipped_steps"] == 0


def test_a_loss_is_the_mean_over_the_ranks_that_report_one(tmp_path: Path) -> None:
    steps = (
        "    loss = 3.0 if client.rank == 1 else None\n"
        "    for step in range(10):\n"
        "        last = step == 9\n"
        "        client.step({'w': np.ones(2)}, loss=None if last else loss)\n"
    )
    _, summary = train(tmp_path, steps)
    assert [line["loss"] for line in lines(tmp_path)] == [3.0] * 9 + [None]
    assert summary["final_loss"] == 3.0, "the newest known one"
