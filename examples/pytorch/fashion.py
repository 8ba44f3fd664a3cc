# SPDX-License-Identifier: Apache-2.0
"""The first tenth of Fashion-MNIST, which comes with the project."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import TensorDataset

_DATA = Path(__file__).parent.parent / "data"


def _read(name: str, header_bytes: int) -> np.ndarray:
    with gzip.open(_DATA / f"fashion-{name}-ubyte.gz") as file:
        return np.frombuffer(file.read(), np.uint8, offset=header_bytes)


def fashion(part: str, shape: tuple[int, ...] = (784,)) -> TensorDataset:
    """(image [*shape] from 0 to 1, class). part: "train6000" or "t10k1000".
    shape: of 784 pixels."""
    images = _read(f"{part}-images-idx3", 16).reshape(-1, *shape)
    labels = _read(f"{part}-labels-idx1", 8)
    return TensorDataset(
        torch.from_numpy(images.astype(np.float32) / 255),
        torch.from_numpy(labels.astype(np.int64)),
    )


def evaluate(
    model: torch.nn.Module, data: TensorDataset, part: int = 0, parts: int = 1
) -> tuple[float, int, int]:
    """One part of an evaluation: the sum of the losses, the number of correctly
    classified images and the number of all images. The model computes as in
    evaluation and is in training mode afterwards."""
    images, labels = (tensor[part::parts] for tensor in data.tensors)
    model.eval()
    with torch.no_grad():
        outputs = model(images)
    model.train()
    loss = torch.nn.functional.cross_entropy(outputs, labels, reduction="sum")
    correct = int((outputs.argmax(1) == labels).sum())
    return loss.item(), correct, len(labels)
