# SPDX-License-Identifier: Apache-2.0
"""A run's trained model as a PyTorch module."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tributary._errors import DamagedData, InvalidSetting, Missing
from tributary.torch._meaning import check_weights
from tributary.torch.layers import sequential
from tributary.torch.preprocess import Preprocess, as_text

_FORMAT_VERSION = 1


@dataclass(frozen=True)
class Prediction:
    """What a model predicts for rows.

    labels: the names of the classes (or their numbers if the training data have
    numbers), None where the outputs are NaN; of a regression None. values:
    probabilities [rows, classes], or the predicted numbers.
    """

    labels: list[Any] | None
    values: torch.Tensor


class TrainedModel(nn.Module):
    """A trained model: `network`, with exactly the weights of the run, and
    `preprocess`, which makes its inputs of raw rows.

    model(x) takes inputs that are preprocessed already and returns logits (or, of a
    regression, the predictions): what loss functions, exporters and other code for
    PyTorch expect. model(model.preprocess(rows)) starts from raw rows, and
    model.predict(rows) goes on to labels and probabilities.

    `network` is an nn.Sequential, and its state_dict has the names of
    weights.safetensors.
    """

    def __init__(self, record: dict[str, Any], unknown: str = "error") -> None:
        super().__init__()
        self.record = record
        self.output: str = record["output"]
        self.network = sequential(record["sequential"])
        self.preprocess: Preprocess | None = None
        described = record.get("preprocessing")
        if described is not None:
            self.preprocess = Preprocess(described, unknown)
        names = [as_text(name) for name in (described or {}).get("class_names", ())]
        self.class_names: list[str] | None = names or None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.network(x)

    @torch.no_grad()
    def predict(self, rows: Any) -> Prediction:
        """Labels and probabilities, or numbers, for raw rows (see Preprocess)."""
        if self.preprocess is None:
            raise InvalidSetting(
                "model.json does not say how inputs are made: "
                + self.record.get("no_preprocessing", "")
            )
        outputs = self(self.preprocess(rows))
        if self.output == "numbers":
            return Prediction(None, outputs)
        if self.output == "binary":
            second = torch.sigmoid(outputs)
            values = torch.cat([1 - second, second], dim=-1)
            best = (outputs >= 0).long()
        else:
            values = torch.softmax(outputs, dim=-1)
            best = outputs.argmax(dim=-1, keepdim=True)
        # As in `tributary predict`: if an output is not a number, there is no class.
        best = best.masked_fill(outputs.isnan().any(-1, keepdim=True), -1).squeeze(-1)
        return Prediction(self._named(best.tolist()), values)

    def _named(self, index: Any) -> Any:
        if isinstance(index, list):
            return [self._named(inner) for inner in index]
        if index < 0:
            return None
        if self.preprocess is not None and self.preprocess.length:
            return self.preprocess.text([index])
        return index if self.class_names is None else self.class_names[index]


def load(
    run: str | os.PathLike[str],
    *,
    weights: str | os.PathLike[str] | None = None,
    unknown: str = "error",
) -> TrainedModel:
    """The model of a run directory, in eval mode, on the CPU.

    run: a directory with model.json and weights.safetensors, as `tributary train`
    leaves it. If it has best.safetensors, the weights of the best evaluation are used.
    weights: another safetensors file, as `tributary export` writes it. InvalidSetting:
    it is in the directory of a run with other classes, inputs or scales.
    unknown: what happens to categories that the training data did not have
    (Preprocess). Missing: there is no such file. DamagedData: a file is not what
    its name says.
    """
    path = Path(run) / "model.json"
    if not path.is_file():
        job = path.with_name("job.yaml")
        of_program = job.is_file() and any(
            line.startswith("program:") for line in job.read_text().splitlines()
        )
        raise Missing(
            f"{path.parent} has no model.json"
            + (
                ", because a program of its own trained it: load "
                f"{path.with_name('weights.safetensors')} in that program's model"
                if of_program
                else ": wanted a run directory"
            )
        )
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DamagedData(f"{path}: {error}") from None
    version = record.get("format_version") if isinstance(record, dict) else None
    if version != _FORMAT_VERSION:
        raise DamagedData(
            f"{path}: wanted format_version {_FORMAT_VERSION}, got {version}"
        )
    model = TrainedModel(record, unknown)
    source = Path(weights) if weights is not None else _weights_of(path.parent)
    try:
        model.network.load_state_dict(read_safetensors(source))
    except RuntimeError as error:
        if isinstance(error, (Missing, DamagedData)):
            raise
        raise DamagedData(f"{source} is not of this model: {error}") from None
    if weights is not None:
        check_weights(source, record, path.parent)
    return model.eval()


def _weights_of(run: Path) -> Path:
    best = run / "best.safetensors"
    return best if best.is_file() else run / "weights.safetensors"


def read_safetensors(path: Path) -> dict[str, torch.Tensor]:
    """The float32 tensors of a safetensors file."""
    if not path.is_file():
        raise Missing(
            f"there is no {path}; if the run has not ended, export the weights of a "
            "checkpoint with `tributary export`, and pass that file as `weights`"
        )
    content = bytearray(path.read_bytes())
    try:
        begin = 8 + int.from_bytes(content[:8], "little")
        header = json.loads(content[8:begin].decode())
        header.pop("__metadata__", None)
        tensors = {}
        for name, entry in header.items():
            tensors[name] = _tensor(content, begin, entry)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DamagedData(f"{path} is not a safetensors file: {error}") from None
    return tensors


def _tensor(content: bytearray, begin: int, entry: dict[str, Any]) -> torch.Tensor:
    shape = entry["shape"]
    first, end = entry["data_offsets"]
    count = math.prod(shape)
    if entry["dtype"] != "F32" or end - first != 4 * count or first < 0:
        raise ValueError(f"wanted {count} float32, got {entry}")
    if count == 0:
        return torch.empty(shape)
    # Offsets need not be multiples of 4, so the bytes are copied.
    piece = bytearray(content[begin + first : begin + end])
    return torch.frombuffer(piece, dtype=torch.float32, count=count).reshape(shape)
