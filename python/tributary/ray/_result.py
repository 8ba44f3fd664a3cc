# SPDX-License-Identifier: Apache-2.0
"""The files that a run has left, and the lines that it prints while it lasts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# "epoch 3/25: test accuracy 0.8662, loss 0.3804", "step 700: validation loss 1.2"
_EVALUATION = re.compile(
    r"(?P<kind>epoch|step) (?P<at>\d+)(/\d+)?: (?P<set>test|validation) (?P<rest>.+)"
)


@dataclass(frozen=True)
class Result:
    """A run that is done."""

    run_dir: Path  # metrics.jsonl, model.json, checkpoints and others
    summary: dict[str, Any]  # summary.json (docs/run-directory.md)

    @property
    def weights(self) -> Path:
        """The final weights, a file of safetensors."""
        return self.run_dir / "weights.safetensors"

    @property
    def sha256(self) -> str:
        """The checksum of the final weights: equal for equal jobs under bsp."""
        return str(self.summary["weights_sha256"])

    @property
    def test(self) -> dict[str, float]:
        """The last evaluation on the test set, metric by name."""
        return dict(self.summary.get("test", {}))

    @property
    def lost(self) -> dict[str, int]:
        """How many `workers` and `servers` were lost, and `rollbacks`."""
        return dict(self.summary["lost"])


def read_result(run_dir: Path) -> Result | None:
    """None: the run has not ended, or was killed."""
    try:
        return Result(run_dir, json.loads((run_dir / "summary.json").read_text()))
    except FileNotFoundError:
        return None


def parse_evaluation(line: str) -> dict[str, float] | None:
    """The evaluation in a line of the coordinator's output, as in {"epoch": 3,
    "test_accuracy": 0.8662, "test_loss": 0.3804}. None: the line has none."""
    found = _EVALUATION.fullmatch(line.strip())
    if found is None:
        return None
    values: dict[str, float] = {found["kind"]: int(found["at"])}
    for pair in found["rest"].split(", "):
        name, _, number = pair.rpartition(" ")
        try:
            values[f"{found['set']}_{name.replace(' ', '_')}"] = float(number)
        except ValueError:
            return None
    return values


class StepRecords:
    """Reads the lines that are added to a run's metrics.jsonl."""

    def __init__(self, run_dir: Path) -> None:
        self._path = run_dir / "metrics.jsonl"
        self._read_bytes = 0

    def new(self) -> Iterator[dict[str, Any]]:
        """The complete lines since the last call."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._read_bytes)
                added = file.read()
        except FileNotFoundError:
            return
        whole = added[: added.rfind(b"\n") + 1]
        self._read_bytes += len(whole)
        for line in whole.splitlines():
            yield json.loads(line)
