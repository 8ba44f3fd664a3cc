# SPDX-License-Identifier: Apache-2.0
"""The golden trainings (tests/golden) through the PyTorch client and servers.

The expected losses and weights are those of PyTorch in float64. Needs what
test_training.py needs. `pytest -rP` shows the errors.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import golden  # noqa: E402
from golden_task import names_of  # noqa: E402
from runs import check, start  # noqa: E402

pytestmark = pytest.mark.cluster


@dataclass(frozen=True)
class Training:
    """A case of the golden files, and the optimizer with torch's keywords."""

    case: str
    kind: str
    keywords: dict[str, Any] = field(default_factory=dict)
    group: str = "train_mlp"

    def __str__(self) -> str:
        return self.case


MLPS = [
    Training("sgd", "sgd", {"lr": 0.2}),
    Training("momentum", "sgd", {"lr": 0.05, "momentum": 0.9}),
    Training(
        "nesterov_wd",
        "sgd",
        {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.001},
    ),
    Training("adam", "adam", {"lr": 0.005}),
    # The program sets the rate of each step; the servers clip.
    Training(
        "adamw_clip_warmcos",
        "adamw",
        {"lr": 0.01, "weight_decay": 0.05, "clip_norm": 0.5},
    ),
    Training("adagrad", "adagrad", {"lr": 0.05}),
    Training("rmsprop", "rmsprop", {"lr": 0.002}),
    Training("lamb", "lamb", {"lr": 0.02, "weight_decay": 0.01, "eps": 1e-6}),
    Training("accumulate2", "sgd", {"lr": 0.2}),
]
CNN = Training("cnn", "sgd", {"lr": 0.1, "momentum": 0.9}, "train_cnn")


def compare(folder: Path, training: Training, ranks: int, *more: str) -> None:
    """Losses of each step and final weights agree within their tolerances."""
    output = folder / "weights.pt"
    program = [
        str(HERE / "golden_program.py"),
        *("--group", training.group, "--case", training.case),
        *("--kind", training.kind, "--keywords", json.dumps(training.keywords)),
        *("--output", str(output), *more),
    ]
    done = start(folder, ["--servers", "2", "--workers", str(ranks)], program)
    check(done, folder)

    case = golden.read(training.group)[training.case]
    prefix = f"workers{ranks}." if f"workers{ranks}.loss" in case.tensors else ""
    lines = (folder / "run" / "metrics.jsonl").read_text().splitlines()
    losses = [json.loads(line)["loss"] for line in lines]
    errors = {"loss": case.error_over_tolerance(f"{prefix}loss", losses)}
    weights = torch.load(output)
    for name, golden_name in names_of(training.group).items():
        errors[name] = case.error_over_tolerance(
            f"{prefix}final.{golden_name}", weights[name]
        )
    worst = max(errors, key=lambda name: errors[name])
    print(
        f"{training.group} {training.case}, {ranks} ranks: worst error over "
        f"tolerance {errors[worst]:.3f} ({worst}), loss {errors['loss']:.3f}"
    )
    assert errors[worst] <= 1, errors


@pytest.mark.parametrize("ranks", [pytest.param(1, marks=pytest.mark.long), 2])
@pytest.mark.parametrize("training", [*MLPS, CNN], ids=str)
def test_losses_and_weights_are_the_golden_ones(
    tmp_path: Path, training: Training, ranks: int
) -> None:
    compare(tmp_path, training, ranks)


# Of 32 rows the ranks have 11, 11 and 10.
def test_ranks_with_unequal_batches_weigh_by_samples(tmp_path: Path) -> None:
    compare(tmp_path, Training("uneven3_weighted", "sgd", {"lr": 0.2}), 3)


def test_or_equally_where_the_program_says_so(tmp_path: Path) -> None:
    training = Training("uneven3_unweighted", "sgd", {"lr": 0.2})
    compare(tmp_path, training, 3, "--unweighted")
