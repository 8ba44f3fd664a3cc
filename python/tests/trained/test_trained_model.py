# SPDX-License-Identifier: Apache-2.0
"""tributary.torch.load, and the preprocessing of raw rows."""

from __future__ import annotations

import copy
import json
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from tributary.torch import DamagedData, InvalidSetting, Missing, load, save_safetensors
from tributary.torch.preprocess import Preprocess

TABLE = {
    "source": "csv",
    "feature_shape": [5],
    "numeric": {"count": 2, "mean": [1.0, 10.0], "deviation": [2.0, 4.0]},
    "csv": {
        "header": True,
        "delimiter": ",",
        "columns": 4,
        "label": {"index": 0, "name": "animal"},
        "numeric": [{"index": 1, "name": "age"}, {"index": 3, "name": "mass"}],
        "categorical": [
            {
                "column": {"index": 2, "name": "colour"},
                "categories": ["blue", "red", {"hex": "e9"}],
            }
        ],
    },
    "class_names": ["cat", "dog"],
    "target_width": 1,
}
TABLE["numeric"]["byte_divisor"] = 0


LINEAR = {"linear": {"in": 5, "out": 2, "bias": True}}


def write_run(folder: Path, **changes: Any) -> Path:
    """A run of a linear model over TABLE."""
    record = {
        "format_version": 1,
        "name": "animals",
        "sequential": [LINEAR],
        "parameters": [
            {"name": "0.weight", "shape": [2, 5]},
            {"name": "0.bias", "shape": [2]},
        ],
        "loss": {"cross_entropy": {"label_smoothing": 0}},
        "output": "classes",
        "preprocessing": TABLE,
        "metrics": None,
    }
    record.update(changes)
    (folder / "model.json").write_text(json.dumps(record))
    weight = torch.zeros(2, 5)
    weight[1, 0] = 1  # age
    weight[0, 3] = 2  # red
    save_safetensors(
        folder / "weights.safetensors",
        {"0.weight": weight.numpy(), "0.bias": torch.tensor([0.0, 0.5]).numpy()},
    )
    return folder


def test_rows_of_a_table_become_features() -> None:
    preprocess = Preprocess(TABLE)
    assert preprocess.columns == ["age", "mass", "colour"]
    features = preprocess(
        [
            {"age": 5, "mass": "2", "colour": "red", "name": "is ignored"},
            (1.0, 14, b"\xe9"),
        ]
    )
    # (5 - 1) / 2, (2 - 10) / 4, red; (1 - 1) / 2, (14 - 10) / 4, the third.
    assert features.tolist() == [[2, -2, 0, 1, 0], [0, 1, 0, 0, 1]]


def test_a_tensor_of_numbers_and_codes_stays_in_the_graph() -> None:
    preprocess = Preprocess(TABLE)
    encoded = torch.tensor([[5.0, 2.0, 1.0], [1.0, 14.0, -1.0]])
    assert preprocess(encoded).tolist() == [[2, -2, 0, 1, 0], [0, 1, 0, 0, 0]]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"age": 1, "mass": 2}, "row 0: wanted a column 'colour'"),
        ({"age": "old", "mass": 2, "colour": "red"}, "column 'age': wanted a number"),
        ({"age": 1e39, "mass": 2, "colour": "red"}, "column 'age': wanted a number"),
        ({"age": 10**400, "mass": 2, "colour": "red"}, "column 'age': wanted a number"),
        ({"age": 1, "mass": 2, "colour": "pink"}, "wanted a category .* got 'pink'"),
        ((1, 2), "wanted 3 values"),
    ],
)
def test_a_wrong_row_is_named(row: Any, message: str) -> None:
    with pytest.raises(InvalidSetting, match=message):
        Preprocess(TABLE)([row])


def test_unknown_categories_may_count_as_none() -> None:
    preprocess = Preprocess(TABLE, unknown="zeros")
    assert preprocess([(1, 10, "pink")]).tolist() == [[0, 0, 0, 0, 0]]


def with_missing(**fields: Any) -> dict[str, Any]:
    table = {**TABLE["csv"], "missing": ["", "?", "NA"], **fields}
    return {**TABLE, "csv": table}


def test_missing_values_become_the_trainings() -> None:
    preprocess = Preprocess(with_missing(fill=[3.0, 14.0]))
    rows = [(None, " NA ", "red"), (float("nan"), "", "?"), (b"?", 10, None)]
    # (3 - 1) / 2 and (14 - 10) / 4; a missing category is none of them.
    assert preprocess(rows).tolist() == [
        [1, 1, 0, 1, 0],
        [1, 1, 0, 0, 0],
        [1, 0, 0, 0, 0],
    ]
    nan = float("nan")
    encoded = torch.tensor([[nan, 2.0, 1.0]])
    assert preprocess(encoded).tolist() == [[1, -2, 0, 1, 0]]


def test_without_a_rule_a_missing_value_is_an_error() -> None:
    with pytest.raises(InvalidSetting, match="column 'age': wanted a number, got None"):
        Preprocess(TABLE)([(None, 2, "red")])


@pytest.mark.parametrize("row", [(None, 2, "red"), (1, "NA", "red"), (1, 2, "?")])
def test_a_model_trained_without_such_rows_wants_all_values(row: Any) -> None:
    with pytest.raises(InvalidSetting, match=r"wanted a value, .* \(missing: skip\)"):
        Preprocess(with_missing(skip_missing=True))([row])


FAR = {**TABLE["numeric"], "offset": [1.7e9, 0.0]}


def test_an_offset_is_taken_off_before_rounding() -> None:
    record = {**with_missing(fill=[1.7e9 + 3, 14.0]), "numeric": FAR}
    preprocess = Preprocess(record)
    # (5 - 1) / 2, (2 - 10) / 4; the missing ones (3 - 1) / 2, (14 - 10) / 4.
    wanted = [[2, -2, 0, 1, 0], [1, 1, 0, 1, 0]]
    rows = [(1_700_000_005, 2, "red"), (None, "", "red")]
    assert preprocess(rows).tolist() == wanted
    assert preprocess.float()(rows).tolist() == wanted
    encoded = torch.tensor([[1.7e9 + 5, 2, 1]], dtype=torch.float64)
    assert preprocess(encoded).tolist() == wanted[:1]


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64])
def test_arrays_keep_their_digits_until_the_offset_is_off(dtype: torch.dtype) -> None:
    numeric = {"count": 1, "mean": [1.0], "deviation": [2.0], "byte_divisor": 0}
    numeric["offset"] = [1.7e9]
    preprocess = Preprocess({"source": "npy", "feature_shape": [1], "numeric": numeric})
    rows = torch.tensor([[1_700_000_005], [1_700_000_001]], dtype=dtype)
    assert preprocess(rows).tolist() == [[2], [0]]


def test_bytes_are_divided_before_normalization() -> None:
    record = {
        "source": "idx",
        "feature_shape": [2, 2],
        "numeric": {
            "count": 4,
            "mean": [0.5],
            "deviation": [0.25],
            "byte_divisor": 255,
        },
    }
    images = torch.tensor([[[0, 255], [51, 102]]], dtype=torch.uint8)
    expected = torch.tensor([[[-2.0, 2.0], [-1.2, -0.4]]])
    assert torch.allclose(Preprocess(record)(images), expected, atol=1e-6)


def test_texts_become_ids_and_back() -> None:
    record = {
        "source": "text",
        "feature_shape": [4],
        "text": {"tokens": "characters", "length": 4, "vocabulary": [97, 98, 233]},
    }
    preprocess = Preprocess(record)
    assert preprocess(["abé", "baa"]).tolist() == [[0, 1, 2], [1, 0, 0]]
    assert preprocess.text([2, 0]) == "éa"
    with pytest.raises(InvalidSetting, match="token 1 is 'c'"):
        preprocess("acb")
    with pytest.raises(InvalidSetting, match="at most 4 tokens, got 5"):
        preprocess("aaaaa")


def test_load_returns_a_module_in_eval_mode(tmp_path: Path) -> None:
    model = load(write_run(tmp_path))
    assert not model.training
    assert list(model.network.state_dict()) == ["0.weight", "0.bias"]
    # Logits 2 * red and age' + .5.
    logits = model(model.preprocess([{"age": 5, "mass": 2, "colour": "red"}]))
    assert logits.tolist() == [[2, 2.5]]


def test_predict_names_classes(tmp_path: Path) -> None:
    model = load(write_run(tmp_path))
    predicted = model.predict([(5, 2, "red"), (0, 2, "red")])
    assert predicted.labels == ["dog", "cat"]
    expected = torch.softmax(torch.tensor([2.0, 2.5]), 0)
    assert torch.allclose(predicted.values[0], expected)


def test_one_logit_gives_the_probability_of_the_second_class(tmp_path: Path) -> None:
    write_run(
        tmp_path,
        sequential=[{"linear": {"in": 5, "out": 1, "bias": False}}],
        loss={"bce_with_logits": {"pos_weight": 1}},
        output="binary",
    )
    weight = torch.zeros(1, 5)
    weight[0, 0] = 1
    save_safetensors(tmp_path / "weights.safetensors", {"0.weight": weight.numpy()})
    predicted = load(tmp_path).predict([(5, 10, "red"), (-3, 10, "red")])
    assert predicted.labels == ["dog", "cat"]
    second = torch.sigmoid(torch.tensor([2.0, -2.0]))
    assert torch.allclose(predicted.values, torch.stack([1 - second, second], 1))


def test_a_copy_is_independent(tmp_path: Path) -> None:
    model = load(write_run(tmp_path))
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.network[0].weight.zero_()
    assert model.network[0].weight.abs().sum() == 3


def test_a_run_without_preprocessing_says_why(tmp_path: Path) -> None:
    write_run(tmp_path, preprocessing=None, no_preprocessing="it is too large")
    model = load(tmp_path)
    assert model(torch.zeros(1, 5)).shape == (1, 2)
    with pytest.raises(InvalidSetting, match="it is too large"):
        model.predict([(1, 2, "red")])


def test_the_best_weights_are_taken_where_the_run_has_kept_them(
    tmp_path: Path,
) -> None:
    write_run(tmp_path)
    bias = torch.tensor([7.0, 0.0])
    save_safetensors(
        tmp_path / "best.safetensors",
        {"0.weight": torch.zeros(2, 5).numpy(), "0.bias": bias.numpy()},
    )
    x = torch.zeros(1, 5)
    assert load(tmp_path)(x).tolist() == [[7, 0]]
    last = load(tmp_path, weights=tmp_path / "weights.safetensors")
    assert last(x).tolist() == [[0, 0.5]]


def test_equal_outputs_are_the_first_class_and_nan_is_none(tmp_path: Path) -> None:
    write_run(tmp_path)
    model = load(tmp_path)
    model.network[0].bias.data = torch.tensor([0.0, 0.0])
    model.network[0].weight.data.zero_()
    assert model.predict([(1, 10, "red")]).labels == ["cat"]
    model.network[0].bias.data = torch.tensor([1.0, float("nan")])
    assert model.predict([(1, 10, "red")]).labels == [None]


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(Missing, match=r"no model\.json"):
        load(tmp_path)
    write_run(tmp_path)
    (tmp_path / "weights.safetensors").unlink()
    with pytest.raises(Missing, match="tributary export"):
        load(tmp_path)


def test_another_version_is_refused(tmp_path: Path) -> None:
    write_run(tmp_path, format_version=2)
    with pytest.raises(DamagedData, match="wanted format_version 1, got 2"):
        load(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff" * 20,
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 62)
        + b'{"0.weight":{"dtype":"F32","shape":[9],"data_offsets":[0,36]}}',
    ],
)
def test_damaged_weights_are_refused(tmp_path: Path, content: bytes) -> None:
    write_run(tmp_path)
    (tmp_path / "weights.safetensors").write_bytes(content)
    with pytest.raises(DamagedData, match=r"weights\.safetensors"):
        load(tmp_path)


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    write_run(tmp_path)
    save_safetensors(
        tmp_path / "weights.safetensors", {"1.weight": torch.zeros(2, 5).numpy()}
    )
    with pytest.raises(DamagedData, match="is not of this model"):
        load(tmp_path)


def test_load_needs_no_compiled_module(tmp_path: Path) -> None:
    package = Path(__file__).parents[2] / "tributary"
    shutil.copytree(
        package, tmp_path / "tributary", ignore=shutil.ignore_patterns("*.so")
    )
    run = tmp_path / "run"
    run.mkdir()
    write_run(run)
    program = (
        "import tributary.torch as t; "
        f"print(t.load({str(run)!r}).predict([(5, 2, 'red')]).labels); "
        "t.load_checkpoint('.')"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout == "['dog']\n"
    assert "has no compiled module" in ended.stderr


def test_a_run_of_a_program_says_where_its_model_is(tmp_path: Path) -> None:
    with pytest.raises(Missing, match="wanted a run directory"):
        load(tmp_path)
    (tmp_path / "job.yaml").write_text("name: mlp\nprogram: {}\n")
    wanted = "a program of its own trained it: load .*weights.safetensors in that"
    with pytest.raises(Missing, match=wanted):
        load(tmp_path)
