"""Reads the reference numbers in tests/golden (PyTorch in float64)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

_FOLDER = Path(__file__).parents[2] / "tests" / "golden"
_TYPES = {"f32": "<f4", "f64": "<f8", "i64": "<i8", "u8": "u1"}


@dataclass
class Case:
    attributes: dict[str, Any] = field(default_factory=dict)
    tensors: dict[str, torch.Tensor] = field(default_factory=dict)
    tolerances: dict[str, float] = field(default_factory=dict)

    def check(self, name: str, got: torch.Tensor) -> None:
        """Asserts that `got` is within the case's tolerance, which is relative to
        the largest expected magnitude."""
        expected = self.tensors[name]
        assert got.shape == expected.shape
        scale = expected.abs().max().item()
        error = (got.detach().double() - expected).abs().max().item()
        assert error <= self.tolerances[name] * scale


def read(group: str) -> dict[str, Case]:
    content = (_FOLDER / f"{group}.bin").read_bytes()
    cases: dict[str, Case] = {}
    for line in (_FOLDER / f"{group}.tsv").read_text().splitlines():
        if line.startswith("#"):
            continue
        kind, case, name, *rest = line.split("\t")
        one = cases.setdefault(case, Case())
        if kind == "A":
            one.attributes[name] = json.loads(rest[0])
            continue
        _, dtype, shape, offset, size, tolerance, _ = rest
        extents = [int(extent) for extent in shape.split(",") if extent]
        count = int(size) // np.dtype(_TYPES[dtype]).itemsize
        values = np.frombuffer(content, _TYPES[dtype], count, int(offset))
        one.tensors[name] = torch.from_numpy(values.copy().reshape(extents))
        if tolerance != "-":
            one.tolerances[name] = float(tolerance)
    return cases
