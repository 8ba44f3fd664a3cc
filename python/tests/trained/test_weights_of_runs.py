# SPDX-License-Identifier: Apache-2.0
"""tributary.torch.load with weights of another run."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Any

import pytest
from test_trained_model import LINEAR, TABLE, write_run

from tributary.torch import InvalidSetting, load


def other_run(folder: Path, preprocessing: dict[str, Any]) -> tuple[Path, Path]:
    """A run of TABLE, and weights of a run with this preprocessing."""
    (folder / "run").mkdir()
    (folder / "other").mkdir()
    other = write_run(folder / "other", preprocessing=preprocessing)
    return write_run(folder / "run"), other / "weights.safetensors"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"class_names": ["dog", "cat"]}, 'class 0 is "cat" in .*, but "dog" in .*'),
        (
            {"csv": {**TABLE["csv"], "numeric": TABLE["csv"]["numeric"][::-1]}},
            'input 0 is "age" in .*, but "mass" in .*; load the run .*other itself',
        ),
        (
            {"numeric": {"count": 2, "byte_divisor": 0}},
            "input 0 is scaled otherwise in .*other",
        ),
        (
            {"numeric": {**TABLE["numeric"], "deviation": [2.0, 16.0]}},
            "input 1 is scaled otherwise in .*other",
        ),
    ],
)
def test_weights_of_a_run_with_other_inputs_or_classes_are_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    run, weights = other_run(tmp_path, {**TABLE, **changes})
    with pytest.raises(InvalidSetting, match=message):
        load(run, weights=weights)
    load(run, weights=run / "weights.safetensors")
    shutil.move(weights, tmp_path / "w.safetensors")  # no record is beside it
    load(run, weights=tmp_path / "w.safetensors")


def filled(missing: dict[str, Any]) -> dict[str, Any]:
    return {"training_data": {"source": {"csv": {"missing": missing}}}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sequential": [LINEAR, {"tanh": {}}]}, "the model computes otherwise"),
        ({"output": "numbers"}, "the model computes otherwise"),
        (filled({"constant": -999}), "missing numbers are others .* same `missing`"),
        ({"sequential": [LINEAR, {"dropout": {"p": 0.5}}]}, ""),
        (filled({"median": True}), ""),
        (filled({"skip": True}), ""),
    ],
)
def test_weights_of_a_run_with_another_model_are_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    for name in ("run", "other"):
        (tmp_path / name).mkdir()
    run = write_run(tmp_path / "run", **filled({"mean": True}))
    other = write_run(tmp_path / "other", **{**filled({"mean": True}), **changes})
    with (
        pytest.raises(InvalidSetting, match=message)
        if message
        else contextlib.nullcontext()
    ):
        load(run, weights=other / "weights.safetensors")


def test_weights_of_a_run_with_the_same_names_are_taken(tmp_path: Path) -> None:
    numeric = {**TABLE["numeric"], "mean": [1.2, 10.0]}  # of another table
    run, weights = other_run(tmp_path, {**TABLE, "numeric": numeric})
    assert load(run, weights=weights).class_names == ["cat", "dog"]
