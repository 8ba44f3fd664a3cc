# SPDX-License-Identifier: Apache-2.0
"""Models and helpers that the tests of tributary.torch share."""

from __future__ import annotations

from typing import Any

import torch
from fake_native import Session

import tributary.torch as tributary


def mlp(seed: int = 0) -> torch.nn.Sequential:
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)
    )


def batch(rows: int = 6, seed: int = 1) -> torch.Tensor:
    return torch.randn(rows, 4, generator=torch.Generator().manual_seed(seed))


def loss_of(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    return model(x).square().mean()


def start(
    model: Any, kind: str = "sgd", **keywords: Any
) -> tuple[tributary.Cluster, tributary.Optimizer, Session]:
    cluster = tributary.connect()
    keywords.setdefault("lr", 0.1)
    optimizer = cluster.optimizer(model, kind, **keywords)
    assert Session.last is not None
    return cluster, optimizer, Session.last


def assert_equal_weights(a: torch.nn.Module, b: torch.nn.Module) -> None:
    pairs = zip(a.named_parameters(), b.parameters(), strict=True)
    for (name, one), other in pairs:
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-7, msg=name)


def train(
    cluster: tributary.Cluster,
    optimizer: tributary.Optimizer,
    loader: Any,
    stop: int | None = None,
    **options: Any,
) -> list[tuple[int, list[int]]]:
    """(epoch, rows) of each batch, from the loader's rows."""
    seen = []
    weight = optimizer.param_groups[0]["params"][0]
    for epoch, rows in cluster.resume(loader, **options):
        seen.append((epoch, rows.tolist()))
        optimizer.zero_grad()
        weight.sum().backward()
        optimizer.step()
        if len(seen) == stop:
            break
    return seen


def one_weight() -> torch.nn.Module:
    return torch.nn.Linear(1, 1, bias=False)
