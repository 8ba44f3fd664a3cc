# SPDX-License-Identifier: Apache-2.0
"""The models and batches of the golden trainings, in torch."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from golden import Case
from torch import Tensor, nn

# Names of the golden files, by torch's names.
MLP = {"0.weight": "w0", "0.bias": "b0", "2.weight": "w1", "2.bias": "b1"}
CNN = {
    **{"0.weight": "c1.w", "0.bias": "c1.b", "3.weight": "c2.w", "3.bias": "c2.b"},
    **{"7.weight": "fc.w", "7.bias": "fc.b"},
}


def model_of(group: str, inputs: Case) -> nn.Sequential:
    """The group's model with its initial weights."""
    if group == "train_mlp":
        model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    else:
        model = nn.Sequential(
            *(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(4, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Flatten(), nn.Linear(32, 10)),
        )
    names = names_of(group)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(inputs.tensors[f"init.{names[name]}"])
    return model


def names_of(group: str) -> Mapping[str, str]:
    return MLP if group == "train_mlp" else CNN


def batches_of(
    group: str, inputs: Case, rank: int, world: int
) -> list[tuple[Tensor, Tensor]]:
    """(x, labels) of this rank for each batch, which the ranks share in runs of
    consecutive rows, the first ranks with one row more."""
    x = inputs.tensors["data"].float() / 16
    labels = inputs.tensors["label"]
    if group == "train_mlp":
        order = inputs.tensors["order"]
    else:
        order = torch.arange(len(labels)).view(15, 16)
    shares = [rows.tensor_split(world)[rank] for rows in order]
    return [(x[rows], labels[rows]) for rows in shares]
