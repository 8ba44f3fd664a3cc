# SPDX-License-Identifier: Apache-2.0
"""A small regression, which the program and its reference share."""

from __future__ import annotations

import torch

ROWS, INPUTS, BATCH = 500, 16, 5


def data() -> tuple[torch.Tensor, torch.Tensor]:
    """x [ROWS, INPUTS] and y [ROWS, 1]."""
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(ROWS, INPUTS, generator=generator)
    return x, torch.sin(x.sum(1, keepdim=True))


def mlp() -> torch.nn.Sequential:
    torch.manual_seed(3)
    return torch.nn.Sequential(
        torch.nn.Linear(INPUTS, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1)
    )


def loss_of(model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (model(x) - y).square().mean()
