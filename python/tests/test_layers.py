# SPDX-License-Identifier: Apache-2.0
"""The layers of trained models, against tests/golden."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import golden
import pytest
import torch
from torch import nn

from tributary.torch import Misuse, layers
from tributary.torch.layers import sequential

GROUPS = {
    name: golden.read(name)
    for name in ("layers_attn", "layers_basic", "layers_conv", "layers_norm")
}


def one(kind: str, spec: dict[str, Any], case: golden.Case, **names: str) -> nn.Module:
    """A model of one layer with the case's tensors as its parameters."""
    network = sequential([{kind: spec}])
    network.load_state_dict(
        {f"0.{ours}": case.tensors[theirs] for ours, theirs in names.items()}
    )
    return network.eval()


def cases(op: str) -> list[Any]:
    return [
        pytest.param(case, id=name)
        for group in GROUPS.values()
        for name, case in group.items()
        if case.attributes["op"] == op
    ]


@pytest.mark.parametrize("case", cases("linear"))
def test_linear(case: golden.Case) -> None:
    out, inputs = case.tensors["w"].shape
    names = {"weight": "w"}
    if "b" in case.tensors:
        names["bias"] = "b"
    spec = {"in": inputs, "out": out, "bias": "b" in case.tensors}
    case.check("y", one("linear", spec, case, **names)(case.tensors["x"]))


@pytest.mark.parametrize(
    "kind", ["relu", "sigmoid", "tanh", "silu", "gelu_erf", "gelu_tanh"]
)
def test_activations(kind: str) -> None:
    for parameter in cases(kind):
        (case,) = parameter.values
        if not torch.isfinite(case.tensors["y"]).all():
            continue
        name, spec = kind, {}
        if kind.startswith("gelu"):
            approximate = "none" if kind == "gelu_erf" else "tanh"
            name, spec = "gelu", {"approximate": approximate}
        case.check("y", sequential([{name: spec}])(case.tensors["x"]))


@pytest.mark.parametrize("case", cases("layernorm"))
def test_layernorm(case: golden.Case) -> None:
    spec = {
        "features": case.tensors["gamma"].numel(),
        "epsilon": case.attributes["eps"],
    }
    layer = one("layernorm", spec, case, weight="gamma", bias="beta")
    case.check("y", layer(case.tensors["x"]))


@pytest.mark.parametrize("case", cases("rmsnorm"))
def test_rms_norm(case: golden.Case) -> None:
    spec = {
        "features": case.tensors["gamma"].numel(),
        "epsilon": case.attributes["eps"],
    }
    case.check("y", one("rms_norm", spec, case, weight="gamma")(case.tensors["x"]))


@pytest.mark.parametrize("case", cases("batchnorm"))
def test_batch_norm(case: golden.Case) -> None:
    spec = {
        "features": case.tensors["gamma"].numel(),
        "momentum": case.attributes["momentum"],
        "epsilon": case.attributes["eps"],
    }
    layer = one(
        "batch_norm",
        spec,
        case,
        weight="gamma",
        bias="beta",
        running_mean="mean",
        running_var="var",
    )
    # A step of training moves the running averages, and evaluation uses them.
    case.check("y", layer.train()(case.tensors["x"]))
    case.check("new_mean", layer[0].running_mean)
    layer.eval()
    case.check("y_eval", layer(case.tensors["x"]))


@pytest.mark.parametrize("case", cases("groupnorm"))
def test_group_norm(case: golden.Case) -> None:
    spec = {
        "groups": case.attributes["groups"],
        "features": case.tensors["gamma"].numel(),
        "epsilon": case.attributes["eps"],
    }
    layer = one("group_norm", spec, case, weight="gamma", bias="beta")
    case.check("y", layer(case.tensors["x"]))


@pytest.mark.parametrize("case", cases("conv2d"))
def test_conv2d(case: golden.Case) -> None:
    out, inputs, *kernel = case.tensors["w"].shape
    groups = case.attributes["groups"]
    names = {"weight": "w"}
    if "b" in case.tensors:
        names["bias"] = "b"
    spec = {
        "in": inputs * groups,
        "out": out,
        "kernel": kernel,
        "stride": case.attributes["stride"],
        "padding": case.attributes["pad"],
        "dilation": case.attributes["dilation"],
        "groups": groups,
        "bias": "b" in case.tensors,
    }
    case.check("y", one("conv2d", spec, case, **names)(case.tensors["x"]))


@pytest.mark.parametrize("kind", ["max_pool", "avg_pool"])
def test_pools(kind: str) -> None:
    checked = 0
    for parameter in cases(kind.replace("_", "") + "2d"):
        (case,) = parameter.values
        spec = {
            "kernel": case.attributes["kernel"],
            "stride": case.attributes["stride"],
            "padding": case.attributes["pad"],
        }
        case.check("y", sequential([{kind: spec}])(case.tensors["x"]))
        checked += 1
    assert checked >= 2


def test_embedding_takes_ids_of_any_type() -> None:
    case = GROUPS["layers_basic"]["embedding_V65_D16_4x13"]
    tokens, dim = case.tensors["w"].shape
    layer = one("embedding", {"tokens": tokens, "dim": dim}, case, weight="w")
    case.check("y", layer(case.tensors["ids"]))
    case.check("y", layer(case.tensors["ids"].float()))


@pytest.mark.parametrize("name", ["mha_B2_T5_E8_H2", "mha_B2_T11_E15_H3_causal"])
def test_attention(name: str) -> None:
    case = GROUPS["layers_attn"][name]
    spec = {
        "dim": case.tensors["x"].shape[-1],
        "heads": case.attributes["heads"],
        "causal": case.attributes["causal"],
    }
    names = {
        "in_proj_weight": "w_in",
        "in_proj_bias": "b_in",
        "out_proj.weight": "w_out",
        "out_proj.bias": "b_out",
    }
    case.check("y", one("attention", spec, case, **names)(case.tensors["x"]))


@pytest.mark.parametrize("name", ["block_B2_T7_E16_H2_erf", "block_B1_T9_E12_H3_tanh"])
def test_a_block_of_residuals(name: str) -> None:
    case = GROUPS["layers_attn"][name]
    dim = case.tensors["x"].shape[-1]
    gelu = "none" if case.attributes["gelu"] == "erf" else "tanh"
    attention = {
        "dim": dim,
        "heads": case.attributes["heads"],
        "causal": case.attributes["causal"],
    }
    norm = {"layernorm": {"features": dim, "epsilon": case.attributes["ln_eps"]}}
    network = sequential(
        [
            {"residual": {"body": [norm, {"attention": attention}]}},
            {
                "residual": {
                    "body": [
                        norm,
                        {"linear": {"in": dim, "out": 4 * dim}},
                        {"gelu": {"approximate": gelu}},
                        {"linear": {"in": 4 * dim, "out": dim}},
                    ]
                }
            },
        ]
    )
    names = {
        "0.body.0.weight": "ln1_g",
        "0.body.0.bias": "ln1_b",
        "0.body.1.in_proj_weight": "w_in",
        "0.body.1.in_proj_bias": "b_in",
        "0.body.1.out_proj.weight": "w_out",
        "0.body.1.out_proj.bias": "b_out",
        "1.body.0.weight": "ln2_g",
        "1.body.0.bias": "ln2_b",
        "1.body.1.weight": "w_fc1",
        "1.body.1.bias": "b_fc1",
        "1.body.3.weight": "w_fc2",
        "1.body.3.bias": "b_fc2",
    }
    network.load_state_dict({n: case.tensors[g] for n, g in names.items()})
    case.check("y", network(case.tensors["x"]))


def test_a_shortcut_takes_the_place_of_the_input() -> None:
    network = sequential(
        [
            {
                "residual": {
                    "body": [{"linear": {"in": 2, "out": 1, "bias": False}}],
                    "shortcut": [{"linear": {"in": 2, "out": 1, "bias": False}}],
                }
            }
        ]
    )
    network.load_state_dict(
        {
            "0.body.0.weight": torch.tensor([[1.0, 2.0]]),
            "0.shortcut.0.weight": torch.tensor([[10.0, 20.0]]),
        }
    )
    # (3 + 2 * 4) + (10 * 3 + 20 * 4)
    assert network(torch.tensor([[3.0, 4.0]])).item() == 121


def test_a_tied_layer_shares_the_weight_under_its_one_name() -> None:
    network = sequential(
        [
            {"embedding": {"tokens": 3, "dim": 2}},
            {"position_embedding": {"length": 4, "dim": 2}},
            {"tied_linear": {"to": "0.weight"}},
        ]
    )
    assert list(network.state_dict()) == ["0.weight", "1.weight"]
    weight = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 3.0]])
    position = torch.tensor([[0.5, 0.0], [0.0, 0.5], [0.0, 0.0], [9.0, 9.0]])
    network.load_state_dict({"0.weight": weight, "1.weight": position})
    # Of tokens 2 and 1: ([2, 3] + [.5, 0]) w^T and ([0, 1] + [0, .5]) w^T.
    expected = [[[2.5, 3.0, 14.0], [0.0, 1.5, 4.5]]]
    assert network(torch.tensor([[2, 1]])).tolist() == expected


def test_images_without_channels_have_one() -> None:
    network = sequential(
        [
            {"conv2d": {"in": 1, "out": 2, "kernel": [3], "padding": [1]}},
            {"batch_norm": {"features": 2}},
            {"relu": {}},
            {"max_pool": {"kernel": [2]}},
            {"global_avg_pool": {}},
        ]
    ).eval()
    images = torch.rand(5, 8, 6)
    assert network(images).shape == (5, 2)
    assert torch.equal(network(images), network(images.unsqueeze(1)))


def test_a_first_linear_layer_takes_whole_images() -> None:
    network = sequential([{"linear": {"in": 12, "out": 2}}])
    images = torch.rand(5, 3, 4)
    assert torch.equal(network(images), network(images.flatten(1)))


def test_an_unknown_layer_is_named() -> None:
    with pytest.raises(Misuse, match="'capsule'"):
        sequential([{"capsule": {}}])


def test_every_kind_of_layer_of_a_job_file_is_known() -> None:
    schema = (
        Path(__file__).parents[2] / "proto" / "tributary" / "v1" / "model.proto"
    ).read_text()
    (kinds,) = re.findall(r"message LayerSpec \{\s*oneof kind \{(.*?)\}", schema, re.S)
    names = set(re.findall(r"\w+ (\w+) = \d+;", kinds))
    assert {"linear", "attention", "group_norm"} <= names
    assert names == set(layers.KINDS) | {"residual", "tied_linear"}
