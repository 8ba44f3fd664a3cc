# SPDX-License-Identifier: Apache-2.0
"""The characters of Shakespeare's plays, which come with the project."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import TensorDataset

_FILE = Path(__file__).parent.parent / "data" / "tinyshakespeare.txt.gz"
CHARACTERS = 65  # different ones in the text


def shakespeare(length: int) -> tuple[TensorDataset, TensorDataset]:
    """Training and test data: rows (characters [length],), each numbered from 0 in
    the characters' order. The last tenth of the text is the test data."""
    with gzip.open(_FILE) as file:
        text = np.frombuffer(file.read(), np.uint8)
    tokens = torch.from_numpy(np.unique(text, return_inverse=True)[1].astype(np.int64))
    split = len(tokens) * 9 // 10
    train, test = (
        TensorDataset(part[: len(part) // length * length].view(-1, length))
        for part in (tokens[:split], tokens[split:])
    )
    return train, test


def evaluate(
    model: torch.nn.Module, data: TensorDataset, part: int = 0, parts: int = 1
) -> tuple[float, int]:
    """One part of an evaluation of a GPT2LMHeadModel: the sum of the losses and the
    number of predicted characters. The model is in training mode afterwards."""
    loss, characters = 0.0, 0
    model.eval()
    with torch.no_grad():
        for rows in data.tensors[0][part::parts].split(64):
            predicted = rows[:, 1:].numel()
            loss += model(rows, labels=rows).loss.item() * predicted
            characters += predicted
    model.train()
    return loss, characters
