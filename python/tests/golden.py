# SPDX-License-Identifier: Apache-2.0
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
    """Attributes, tensors, and the tolerances of those that are expected."""

    attributes: dict[str, Any] = field(default_factory=dict)
    tensors: dict[str, torch.Tensor] = field(default_factory=dict)
    tolerances: dict[str, float] = field(default_factory=dict)

    def error_over_tolerance(self, name: str, got: Any) -> float:
        """At most 1 where `got` agrees with the reference.

        The error is the largest difference over the reference's largest value.
        """
        wanted = self.tensors[name].double()
        got = torch.as_tensor(got).detach().double()
        assert got.shape == wanted.shape, f"{name}: {got.shape}, {wanted.shape}"
        if not torch.isfinite(got).all():
            return float("inf")
        scale = wanted.abs().max().item() or 1.0
        return (got - wanted).abs().max().item() / scale / self.tolerances[name]

    def check(self, name: str, got: Any) -> None:
        assert self.error_over_tolerance(name, got) <= 1


def read(group: str) -> dict[str, Case]:
    """The cases of a group by name (tests/golden/GROUP.tsv and .bin)."""
    data = (_FOLDER / f"{group}.bin").read_bytes()
    cases: dict[str, Case] = {}
    for line in (_FOLDER / f"{group}.tsv").read_text().splitlines():
        if line.startswith("#"):
            continue
        kind, case_name, name, *rest = line.split("\t")
        case = cases.setdefault(case_name, Case())
        if kind == "A":
            case.attributes[name] = json.loads(rest[0])
            continue
        _, dtype, shape, offset, size, tolerance, _ = rest
        start = int(offset)
        values = np.frombuffer(data[start : start + int(size)], _TYPES[dtype])
        sides = [] if shape == "-" else [int(side) for side in shape.split(",")]
        case.tensors[name] = torch.from_numpy(values.copy().reshape(sides))
        if tolerance != "-":
            case.tolerances[name] = float(tolerance)
    return cases
