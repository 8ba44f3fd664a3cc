# SPDX-License-Identifier: Apache-2.0
"""Fits a linear model under a policy of synchronization; test_policies.py starts it.

y = x w for a known w, and rank r's rows determine only its own part of w: the
optimum is reached only when the gradients of every rank count. Ranks write how
far they are into --marks, so that the last rank can be behind on purpose.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch

import tributary.torch as tributary

PART = 2  # weights that a rank's rows determine


def rows_of(rank: int, world: int) -> tuple[torch.Tensor, torch.Tensor]:
    """x [8, PART world], zero outside of the rank's part, and y [8, 1]."""
    x = torch.zeros(8, PART * world)
    generator = torch.Generator().manual_seed(rank)
    orthogonal, _ = torch.linalg.qr(torch.randn(8, PART, generator=generator))
    x[:, PART * rank : PART * (rank + 1)] = orthogonal * 8**0.5
    return x, x @ optimum(world).unsqueeze(1)


def optimum(world: int) -> torch.Tensor:
    return torch.arange(1.0, PART * world + 1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--keywords", type=json.loads, required=True)
    parser.add_argument("--total-steps", type=int)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--behind", type=int, default=0)
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args()

    torch.set_num_threads(1)
    model = torch.nn.Linear(2, 1, bias=False)
    with tributary.connect() as cluster:
        rank, world = cluster.rank, cluster.world_size
        model = torch.nn.Linear(PART * world, 1, bias=False)
        optimizer = cluster.optimizer(
            model, total_steps=options.total_steps, **options.keywords
        )
        first = model.weight.flatten().tolist()
        x, y = rows_of(rank, world)
        begun = np.memmap(options.folder / "begun", np.int64, "r+", shape=world)
        taken = np.memmap(options.folder / "taken", np.int64, "r+", shape=world)
        most_behind = 0
        for step in range(options.steps):
            if rank == world - 1:
                # Rank 0 can go on: this rank is at most `behind` steps later.
                while taken[0] < min(step + options.behind, options.steps):
                    time.sleep(0.001)
            optimizer.zero_grad()
            loss = (model(x) - y).square().mean() / 2
            begun[rank] = step + 1  # backward sends gradients
            loss.backward()
            optimizer.step(loss=loss)
            # The weights hold `begun` steps of every rank or fewer.
            most_behind = max(most_behind, step + 1 - int(begun.min()))
            taken[rank] = cluster.steps
        assert cluster.steps == options.steps
    weights = model.weight.flatten().tolist()
    report = {"most_behind": most_behind, "first": first, "weights": weights}
    (options.folder / f"rank{rank}.json").write_text(json.dumps(report))


if __name__ == "__main__":
    main()
