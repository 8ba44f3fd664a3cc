# SPDX-License-Identifier: Apache-2.0
"""Buffers keep their bits on the way through servers that hold float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from fake_native import Checkpoint, Next, Session
from models import start

import tributary
from tributary.torch import InvalidSetting, Misuse

INF = float("inf")
VALUES = {
    "bool": torch.tensor([True, False, True]),
    "bool matrix": torch.ones(3, 5, dtype=torch.bool).tril(),
    "uint8": torch.tensor([0, 1, 255], dtype=torch.uint8),
    "int8": torch.tensor([-128, 127], dtype=torch.int8),
    "int16": torch.tensor([-(2**15), 2**15 - 1], dtype=torch.int16),
    "int32": torch.tensor([2**31 - 1, -(2**31)], dtype=torch.int32),
    "int32, 24 bits": torch.tensor([2**24 - 1, 1 - 2**24], dtype=torch.int32),
    "int32, 21 bits": torch.tensor([2**20, 0], dtype=torch.int32),
    "int32, 20 bits": torch.tensor([2**20 - 1, 1 - 2**20], dtype=torch.int32),
    "int32, 25 bits": torch.tensor([2**24 + 1], dtype=torch.int32),
    "int64": torch.tensor([2**31 + 12345, 2**53 + 1, -(2**63)]),
    "a small int64": torch.tensor(7),
    "float64": torch.tensor([0.1, 1e-320, 1e300, -0.0], dtype=torch.float64),
    "float64 that is whole": torch.tensor(3.0, dtype=torch.float64),
    "float16": torch.tensor([0.1, 65504.0], dtype=torch.float16),
    "bfloat16": torch.tensor([0.1, 1e30], dtype=torch.bfloat16),
    "least bfloat16": torch.tensor([torch.finfo(torch.bfloat16).min]).bfloat16(),
    "bfloat16 with infinity": torch.tensor([0.1, INF], dtype=torch.bfloat16),
    "complex64": torch.tensor([1 + 2j, complex(0, -INF)]),
    "complex128": torch.tensor([0.1 + 2j], dtype=torch.complex128),
    "conjugated": torch.tensor([1 + 2j]).conj(),
    "mask": torch.full((4, 4), -INF).triu(1),
    "nan": torch.tensor([1.0, float("nan")]),
    "scalar": torch.tensor(5.0),
    "empty": torch.zeros(0, 3),
    "columns": torch.arange(6.0).reshape(2, 3).t(),
    "columns of float64": torch.rand(2, 3, dtype=torch.float64).t(),
    "float32": torch.tensor([1e30, 1e-45, -0.1]),
    "least float32": torch.full((2, 2), torch.finfo(torch.float32).min).triu(1),
}
TRAVELS_AS_FLOATS = {
    *("uint8", "int8", "int16", "int32, 20 bits", "a small int64", "float16"),
    *("bfloat16", "scalar", "columns", "float32"),
}


class Net(torch.nn.Module):
    def __init__(self, value: torch.Tensor) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)
        self.register_buffer("b", value)

    def train_once(self, optimizer: Any) -> None:
        self.layer(torch.ones(1, 2)).sum().backward()
        optimizer.step()


def bits(tensor: torch.Tensor) -> Any:
    kind = np.int16 if tensor.dtype is torch.bfloat16 else None
    array = tensor.view(torch.int16) if kind else tensor.resolve_conj()
    return (tensor.dtype, tuple(tensor.shape), array.contiguous().numpy().tobytes())


@pytest.mark.parametrize("mode", ["average", "rank0", "local"])
@pytest.mark.parametrize("kind", VALUES)
def test_a_buffer_keeps_its_bits(kind: str, mode: str) -> None:
    model = Net(VALUES[kind].clone())
    before = bits(model.b)
    cluster, optimizer, session = start(model, buffers=mode)
    names = [name for name in session.names if name.startswith("b")]
    if mode == "local" or kind == "empty":
        assert names == []
    else:
        assert (names == ["b"]) == (kind in TRAVELS_AS_FLOATS)
        assert np.isfinite(session.weights[0]).all()
    assert bits(model.b) == before
    for _ in range(2):
        model.train_once(optimizer)
        assert bits(model.b) == before
    state = cluster.state_dict()["b"]
    assert bits(state.to(model.b.dtype)) == before
    cluster.finish()


def test_a_job_that_goes_on_gives_its_bits(monkeypatch: Any) -> None:
    # Nine true ones are a byte of 255 and one of 1; 40 bits of an integer.
    for value, name, held, wanted in (
        (torch.zeros(10).bool(), "bool,10", [255, 1], [True] * 9 + [False]),
        (
            torch.tensor([-(2**60)]),
            "int64,1",
            [1, 2, 0, 0, 3, 0, 0, 0],
            [3 << 32 | 513],
        ),
    ):
        weights = {f"b.as_bits({name})": np.array(held)}
        monkeypatch.setattr(Session, "job_weights", weights)
        model = Net(value)
        cluster, _, _ = start(model)
        assert model.b.tolist() == wanted
        cluster.finish()


def averaged(values: dict[str, np.ndarray]) -> Callable[[Session], Next]:
    """After a step, the servers have these values."""

    def after(session: Session) -> Next:
        for name, value in values.items():
            session.weights[session.names.index(name)][:] = value
        return Next.STEP

    return after


def test_bits_that_change_alike_on_every_rank() -> None:
    """As the flag of a layer that initializes itself in the first step."""
    model = Net(torch.tensor(False))
    cluster, optimizer, session = start(model)
    model.b.fill_(True)
    model.train_once(optimizer)
    assert model.b.item() is True
    assert session.gradient_of("b.as_bits(bool)").tolist() == [1]
    cluster.finish()


@pytest.mark.parametrize("value", [torch.tensor([True]), torch.tensor([0.5]).double()])
def test_bits_that_differ_between_ranks_have_no_mean(value: torch.Tensor) -> None:
    model = Net(value)
    cluster, optimizer, session = start(model)
    session.after = averaged({session.names[0]: np.float32(0.5)})
    with pytest.raises(Misuse, match='different values in the buffer b, .*"rank0"'):
        with cluster:
            model.train_once(optimizer)


def test_the_mode_is_no_further_setting() -> None:
    with pytest.raises(InvalidSetting, match='buffers="average" or "rank0"'):
        start(Net(torch.ones(1)), settings={"program.buffers": "rank0"})


def test_rank_0s_bits_reach_the_other_ranks(monkeypatch: Any) -> None:
    monkeypatch.setenv("TRIBUTARY_RANK", "1")
    model = Net(torch.tensor([True, False]))
    cluster, optimizer, session = start(model, buffers="rank0")
    session.after = averaged({"b.as_bits(bool,2)": np.float32(2)})
    model.train_once(optimizer)
    assert not session.gradient_of("b.as_bits(bool,2)").any()
    assert model.b.tolist() == [False, True]
    cluster.finish()


def test_a_roll_back_brings_earlier_bits() -> None:
    model = Net(torch.tensor([2**40]))
    cluster, optimizer, session = start(model)

    def back(fake: Session) -> Next:
        fake.weights[0][:] = [7, 0, 0, 0, 0, 0, 0, 0]
        return Next.MOVED

    session.after = back
    model.train_once(optimizer)
    assert model.b.tolist() == [7]
    cluster.finish()


def test_a_rank_without_samples_takes_the_others_bits() -> None:
    model = Net(torch.tensor([True, True]))
    cluster, optimizer, session = start(model)
    cluster.samples = 0
    session.after = averaged({"b.as_bits(bool,2)": np.float32(1)})
    optimizer.step()
    assert model.b.tolist() == [True, False]
    cluster.finish()


def test_a_step_that_was_skipped_keeps_the_bits() -> None:
    model = Net(torch.tensor([False]))
    cluster, optimizer, session = start(model)
    session.skipped = True
    session.after = averaged({"b.as_bits(bool,1)": np.float32(0)})
    model.b.fill_(True)
    model.train_once(optimizer)
    assert model.b.tolist() == [False]
    cluster.finish()


def test_an_integer_that_grows_beyond_float32() -> None:
    model = Net(torch.tensor([2**20 - 1]))
    cluster, optimizer, _ = start(model)
    model.b.fill_(2**24 - 1)
    model.train_once(optimizer)
    model.b += 1
    with pytest.raises(Misuse, match="the buffer b has reached 16777216"), cluster:
        model.train_once(optimizer)


def test_a_buffer_that_cannot_travel_is_named() -> None:
    sparse = torch.eye(2).to_sparse()
    with pytest.raises(Misuse, match="b is torch.sparse_coo.*persistent=False"):
        start(Net(sparse))
    start(Net(sparse), buffers="local")[0].finish()


@pytest.mark.parametrize("value", [INF, -INF, float("nan")])
@pytest.mark.parametrize("frozen", [False, True])
def test_a_parameter_that_is_not_finite_is_named(value: float, frozen: bool) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    with torch.no_grad():
        model[1].weight[1, 0] = value
    model[1].requires_grad_(not frozen)
    with pytest.raises(InvalidSetting, match=rf"1\.weight holds {value} at element 2"):
        start(model)
    with pytest.raises(InvalidSetting, match=f"w holds {value} at element 1"):
        tributary.connect().declare({"w": np.array([1.0, value])}, lr=1.0)


def test_empty_parameters_are_not_declared() -> None:
    model = torch.nn.Module()
    model.empty = torch.nn.Parameter(torch.zeros(0, 3))
    model.weight = torch.nn.Parameter(torch.ones(2))
    cluster, optimizer, session = start(model)
    (model.weight.sum() + model.empty.sum()).backward()
    optimizer.step()
    assert session.names == ["weight"]
    assert set(cluster.state_dict()) == {"empty", "weight"}
    cluster.finish()


@pytest.mark.parametrize("kind", VALUES.keys() - TRAVELS_AS_FLOATS - {"empty"})
def test_a_checkpoint_gives_the_bits(
    monkeypatch: Any, tmp_path: Any, kind: str
) -> None:
    cluster, _, session = start(Net(VALUES[kind].clone()))
    held = session.weights[0].copy()
    cluster.finish()
    monkeypatch.setattr(Checkpoint, "parameters", [(session.names[0], [held.size])])
    monkeypatch.setattr(
        Checkpoint,
        "read",
        lambda self, tensor, parameter, values: np.copyto(values, held),
    )
    (tmp_path / "manifest.ckpt").touch()
    (read,) = tributary.torch.load_checkpoint(tmp_path).items()
    name, tensor = read
    assert name == "b"
    wanted = VALUES[kind]
    if wanted.dtype is torch.bfloat16:  # numpy has none
        wanted = wanted.float()
    assert bits(tensor) == bits(wanted)
    if not wanted.is_complex() and not wanted.is_floating_point():
        path = tmp_path / "b.safetensors"
        tributary.save_safetensors(path, {"b": tensor})
        from safetensors.torch import load_file

        assert bits(load_file(path)["b"]) == bits(wanted)


def settings_of(model: torch.nn.Module, **keywords: Any) -> list[str]:
    """The settings that the coordinator compares, beside the tensors."""
    cluster, _, session = start(model, **keywords)
    cluster.finish()
    return session.options["settings"][1:]  # without the optimizer's


def test_ranks_say_how_they_treat_buffers() -> None:
    """The coordinator refuses ranks whose settings differ."""
    value = torch.ones(2)
    assert settings_of(Net(value)) == ["program.buffers=average"]
    assert settings_of(Net(value), buffers="rank0") == ["program.buffers=rank0"]
    assert settings_of(torch.nn.Linear(2, 1)) == []


def test_named_parameters_have_no_buffers() -> None:
    model = Net(torch.ones(2))
    groups = [{"params": list(model.named_parameters())}]
    for mode in ("average", "rank0"):
        with pytest.raises(Misuse, match=f'buffers="{mode}" needs the model, .*groups'):
            start(groups, buffers=mode)
    for keywords in ({}, {"buffers": "local"}):
        cluster, _, session = start(groups, **keywords)
        assert session.names == ["layer.weight", "layer.bias"]
        cluster.finish()


def test_ranks_compare_buffers_that_are_not_saved() -> None:
    def constants(value: torch.Tensor, **keywords: Any) -> list[str]:
        model = torch.nn.Linear(2, 1)
        model.register_buffer("table", value, persistent=False)
        return settings_of(model, **keywords)

    first, second = torch.arange(4.0), torch.arange(4.0) + 1
    (setting,) = constants(first)
    assert setting.startswith("program={}  # buffer table (persistent=False) with che")
    assert constants(first.clone()) == [setting] != constants(second)
    assert constants(first, buffers="local") == []
    for value in VALUES.values():
        assert len(constants(value)) == 1
    assert constants(torch.eye(2).to_sparse()) == []
