"""Reads groups of tests/golden: trainings whose result is known in float64."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

FOLDER = Path(__file__).parents[3] / "tests" / "golden"
_TYPES = {"f32": "<f4", "f64": "<f8", "i64": "<i8", "u8": "u1"}


@dataclass
class Case:
    """One training: its attributes, tensors and their tolerances."""

    attributes: dict[str, Any] = field(default_factory=dict)
    tensors: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    tolerances: dict[str, float] = field(default_factory=dict)

    def error_over_tolerance(self, name: str, got: Any) -> float:
        """At most 1 where `got` agrees with the reference.

        The error is the largest difference over the reference's largest value.
        """
        wanted = self.tensors[name].astype(np.float64)
        got = np.asarray(got, np.float64)
        assert got.shape == wanted.shape, f"{name}: {got.shape}, {wanted.shape}"
        if not np.isfinite(got).all():
            return float("inf")
        scale = np.abs(wanted).max() or 1.0
        return float(np.abs(got - wanted).max() / scale / self.tolerances[name])


def read(group: str) -> dict[str, Case]:
    """The cases of a group by name (tests/golden/GROUP.tsv and .bin)."""
    data = (FOLDER / f"{group}.bin").read_bytes()
    cases: dict[str, Case] = {}
    for line in (FOLDER / f"{group}.tsv").read_text().splitlines():
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
        case.tensors[name] = values.reshape(sides)
        if tolerance != "-":
            case.tolerances[name] = float(tolerance)
    return cases
