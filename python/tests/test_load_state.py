# SPDX-License-Identifier: Apache-2.0
"""cluster.state_dict and load_state_dict, and the formats they go to and come from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed.checkpoint as dcp
from models import mlp, start
from safetensors.torch import load_file, save_file

import tributary.torch as tributary


def join(
    model: torch.nn.Module, state: dict[str, torch.Tensor]
) -> tuple[tributary.Cluster, tributary.Optimizer]:
    cluster = tributary.connect()
    cluster.load_state_dict(state)
    return cluster, cluster.optimizer(model, "sgd", lr=0.1)


def test_the_state_of_one_job_begins_another() -> None:
    cluster, _, _ = start(mlp())
    state = cluster.state_dict()
    cluster.finish()
    model = mlp(seed=3)
    second, _ = join(model, state)
    for name, value in model.state_dict().items():
        assert torch.equal(value, state[name])
    assert list(second.state_dict()) == list(state)
    second.finish()


def test_a_half_parameter_begins_with_the_float32_value() -> None:
    state = {name: value + 1e-4 for name, value in mlp().state_dict().items()}
    model = mlp().to(torch.bfloat16)
    cluster, _ = join(model, state)
    master = cluster.state_dict()["0.weight"]
    assert torch.equal(master, state["0.weight"])
    assert not torch.equal(master.bfloat16().float(), master)
    cluster.finish()


def test_a_models_own_hooks_decide_what_is_loaded() -> None:
    def transpose(state: dict[str, torch.Tensor], prefix: str, *_: object) -> None:
        state[prefix + "weight"] = state[prefix + "weight"].T

    model = torch.nn.Linear(3, 3)
    model._register_load_state_dict_pre_hook(transpose)
    state = {"weight": torch.arange(9.0).reshape(3, 3), "bias": torch.zeros(3)}
    cluster, _ = join(model, state)
    assert torch.equal(cluster.state_dict()["weight"], state["weight"].T)
    cluster.finish()


def test_another_models_state_is_refused() -> None:
    state = mlp().state_dict()
    state["0.weight"] = torch.zeros(8, 5)
    with pytest.raises(tributary.InvalidSetting, match="size mismatch for 0.weight"):
        join(mlp(), state)


def test_the_servers_weights_are_not_replaced() -> None:
    cluster, _, _ = start(mlp())
    with pytest.raises(tributary.Misuse, match="call load_state_dict before it"):
        cluster.load_state_dict(mlp().state_dict())
    cluster.finish()


def test_torch_save_safetensors_and_distributed_checkpoints(tmp_path: Path) -> None:
    cluster, _, _ = start(mlp())
    state = cluster.state_dict()
    cluster.finish()
    torch.save(state, tmp_path / "w.pt")
    tributary.save_safetensors(tmp_path / "ours.safetensors", state)
    save_file(state, tmp_path / "theirs.safetensors")
    dcp.save(state, checkpoint_id=tmp_path / "dcp", no_dist=True)
    fourth = {name: torch.empty_like(value) for name, value in state.items()}
    dcp.load(fourth, checkpoint_id=tmp_path / "dcp", no_dist=True)
    for back in (
        torch.load(tmp_path / "w.pt"),
        load_file(tmp_path / "ours.safetensors"),
        load_file(tmp_path / "theirs.safetensors"),
        fourth,
    ):
        model = mlp(seed=3)
        second, _ = join(model, back)
        for name, value in second.state_dict().items():
            np.testing.assert_array_equal(value, state[name])
        second.finish()
