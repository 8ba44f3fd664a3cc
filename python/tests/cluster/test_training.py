# SPDX-License-Identifier: Apache-2.0
"""Training through real servers against training in one torch process.

Needs the wheel, or the built module beside the package and TRIBUTARY_PROGRAM.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from fake_native import shuffled_order

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from runs import run  # noqa: E402
from task import BATCH, ROWS, data, loss_of, mlp  # noqa: E402

pytestmark = pytest.mark.cluster
LONG = pytest.mark.long
SEED = 1  # the default of a job


def reference(
    make: Any, workers: int, epochs: int, accumulate: int = 1, clip_norm: float = 0
) -> dict[str, torch.Tensor]:
    """The mean gradients of all ranks are those of the whole batch."""
    torch.set_num_threads(1)
    model = mlp()
    optimizer = make(model.parameters())
    x, y = data()
    whole = workers * BATCH
    for epoch in range(epochs):
        order = torch.from_numpy(shuffled_order(ROWS, SEED, epoch).astype("int64"))
        batches = list(order.split(whole))
        for first in range(0, len(batches), accumulate):
            parts = batches[first : first + accumulate]
            optimizer.zero_grad()
            for rows in parts:
                (loss_of(model, x[rows], y[rows]) / len(parts)).backward()
            if clip_norm > 0:
                torch.nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
            optimizer.step()
    return model.state_dict()


def relative_distance(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> float:
    one = torch.cat([a[name].double().flatten() for name in b])
    other = torch.cat([b[name].double().flatten() for name in b])
    return float((one - other).norm() / other.norm())


def late_reference(workers: int, epochs: int, steps: int = -1) -> dict[str, Any]:
    """SGD with gradients at the weights of one step before; after `steps` steps."""
    torch.set_num_threads(1)
    model, late = mlp(), mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.5)
    x, y = data()
    before = [p.detach().clone() for p in model.parameters()]
    for epoch in range(epochs):
        order = torch.from_numpy(shuffled_order(ROWS, SEED, epoch).astype("int64"))
        for rows in order.split(workers * BATCH):
            if steps == 0:
                return model.state_dict()
            steps -= 1
            with torch.no_grad():
                for old, weight in zip(late.parameters(), before, strict=True):
                    old.copy_(weight)
            late.zero_grad()
            loss_of(late, x[rows], y[rows]).backward()
            before = [p.detach().clone() for p in model.parameters()]
            for new, old in zip(model.parameters(), late.parameters(), strict=True):
                new.grad = old.grad
            optimizer.step()
    return model.state_dict()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_delay_is_exactly_one_step(tmp_path: Path, workers: int) -> None:
    keywords = {"lr": 0.01, "momentum": 0.5, "sync": {"bsp": {"delay": 1}}}
    options = ("--keywords", json.dumps(keywords), "--epochs", "2", "--look", "7")
    output = run(tmp_path, workers, *options)
    at_end, within = torch.load(output), torch.load(f"{output}.look")
    assert relative_distance(at_end, late_reference(workers, 2)) <= 1e-6
    assert relative_distance(within, late_reference(workers, 2, 7)) <= 1e-6
    assert relative_distance(within, late_reference(workers, 2, 6)) > 1e-4


KINDS = {
    "sgd": (torch.optim.SGD, {"lr": 0.02}),
    "momentum": (torch.optim.SGD, {"lr": 0.01, "momentum": 0.9}),
    "adamw": (torch.optim.AdamW, {"lr": 1e-3, "weight_decay": 0.1}),
}


def compare(
    folder: Path,
    kind: str,
    workers: int,
    epochs: int,
    accumulate: int = 1,
    clip_norm: float = 0,
) -> None:
    """At least 50 steps over servers end where one torch process ends."""
    optimizer, keywords = KINDS[kind]
    clipped = {**keywords, "clip_norm": clip_norm} if clip_norm > 0 else keywords
    output = run(
        folder,
        workers,
        *("--kind", "adamw" if kind == "adamw" else "sgd"),
        *("--keywords", json.dumps(clipped), "--epochs", str(epochs)),
        *("--accumulate", str(accumulate)),
    )
    wanted = reference(
        lambda p: optimizer(p, **keywords), workers, epochs, accumulate, clip_norm
    )
    distance = relative_distance(torch.load(output), wanted)
    print(f"{kind}, {workers} ranks: relative distance {distance:.1e}")
    assert distance <= 1e-6


@pytest.mark.parametrize(
    ("workers", "epochs"), [(1, 1), (2, 1), pytest.param(4, 2, marks=LONG)]
)
@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_those_of_one_torch_process(
    tmp_path: Path, kind: str, workers: int, epochs: int
) -> None:
    compare(tmp_path, kind, workers, epochs)


# With 3 ranks the last batch of an epoch has 5 rows, of which rank 2 has one.
@pytest.mark.parametrize(
    ("workers", "epochs"),
    [pytest.param(1, 2, marks=LONG), (3, 5), pytest.param(4, 6, marks=LONG)],
)
@pytest.mark.parametrize("kind", KINDS)
def test_so_they_are_with_accumulation_clipping_and_uneven_batches(
    tmp_path: Path, kind: str, workers: int, epochs: int
) -> None:
    compare(tmp_path, kind, workers, epochs, accumulate=3, clip_norm=0.3)
