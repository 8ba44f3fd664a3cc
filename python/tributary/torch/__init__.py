# SPDX-License-Identifier: Apache-2.0
"""Trains PyTorch models on Tributary's parameter servers.

    import tributary.torch as tributary
    with tributary.connect() as cluster:
        optimizer = cluster.optimizer(model, "adamw", lr=3e-4, weight_decay=0.1)

From here on the training loop is an ordinary one (docs/pytorch.md). The package
also loads trained models (docs/using-models.md):

    model = tributary.load("runs/adult")
"""

from __future__ import annotations

import os

import torch

from tributary import (
    Cancelled,
    DamagedData,
    Error,
    InvalidSetting,
    Missing,
    Misuse,
    ModelMismatch,
    PlaceTaken,
    Stopped,
    Timeout,
    Unavailable,
    WrongState,
    save_safetensors,
)
from tributary import load_checkpoint as _load_arrays
from tributary.torch._load import Prediction, TrainedModel, load
from tributary.torch.cluster import Cluster, connect
from tributary.torch.optimizer import Optimizer
from tributary.torch.preprocess import Preprocess
from tributary.torch.sampler import Sampler


def load_checkpoint(
    path: str | os.PathLike[str], *, optimizer: bool = False
) -> dict[str, torch.Tensor]:
    """As tributary.load_checkpoint, with tensors: for model.load_state_dict,
    torch.save and safetensors.torch.save_file."""
    arrays = _load_arrays(path, optimizer=optimizer)
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


__all__ = [
    "Cancelled",
    "Cluster",
    "DamagedData",
    "Error",
    "InvalidSetting",
    "Missing",
    "Misuse",
    "ModelMismatch",
    "Optimizer",
    "PlaceTaken",
    "Prediction",
    "Preprocess",
    "Sampler",
    "Stopped",
    "Timeout",
    "TrainedModel",
    "Unavailable",
    "WrongState",
    "connect",
    "load",
    "load_checkpoint",
    "save_safetensors",
]
