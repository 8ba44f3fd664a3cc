# SPDX-License-Identifier: Apache-2.0
"""The layers of a job file as PyTorch modules, with the parameters' names that
Tributary gives them (docs/job-file.md#model)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from tributary._errors import Misuse

Spec = dict[str, Any]


def _with_channel(x: torch.Tensor) -> torch.Tensor:
    """Images [rows, height, width] have one channel."""
    return x.unsqueeze(1) if x.dim() == 3 else x


class Linear(nn.Linear):
    """Works on the last axis. As a model's first layer it also takes whole images."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[-1] != self.in_features:
            x = x.flatten(1)
        return super().forward(x)


class TiedLinear(nn.Module):
    """A linear layer whose weight is that of an embedding."""

    def __init__(self, embedding: nn.Module) -> None:
        super().__init__()
        # Within a tuple, so that the weight keeps its one name.
        self._owner = (embedding,)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.linear(x, self._owner[0].weight)


class RMSNorm(nn.Module):
    """torch.nn.RMSNorm, which PyTorch has from 2.4 on."""

    def __init__(self, features: int, epsilon: float) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.weight = nn.Parameter(torch.ones(features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean_square = x.pow(2).mean(-1, keepdim=True)
        return x * torch.rsqrt(mean_square + self.epsilon) * self.weight


class BatchNorm(nn.Module):
    """Over the channels of images, or over [features]."""

    def __init__(self, features: int, momentum: float, epsilon: float) -> None:
        super().__init__()
        self.momentum = momentum
        self.epsilon = epsilon
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.batch_norm(
            _with_channel(x),
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training,
            self.momentum,
            self.epsilon,
        )


class GroupNorm(nn.GroupNorm):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(_with_channel(x))


class Conv2d(nn.Conv2d):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(_with_channel(x))


class MaxPool2d(nn.MaxPool2d):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(_with_channel(x))


class AvgPool2d(nn.AvgPool2d):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(_with_channel(x))


class GlobalAvgPool(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return _with_channel(x).mean((2, 3))


class Embedding(nn.Embedding):
    """Takes token ids of any type."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x.long())


class PositionEmbedding(nn.Module):
    def __init__(self, length: int, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(length, dim))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.weight[: x.shape[1]]


class Attention(nn.Module):
    """Self-attention with the parameters of nn.MultiheadAttention."""

    def __init__(self, dim: int, heads: int, causal: bool, qkv_bias: bool) -> None:
        super().__init__()
        self.heads = heads
        self.causal = causal
        self.in_proj_weight = nn.Parameter(torch.zeros(3 * dim, dim))
        if qkv_bias:
            self.in_proj_bias = nn.Parameter(torch.zeros(3 * dim))
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj = nn.Linear(dim, dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, length, dim = x.shape
        qkv = functional.linear(x, self.in_proj_weight, self.in_proj_bias)
        q, k, v = (
            part.reshape(rows, length, self.heads, dim // self.heads).transpose(1, 2)
            for part in qkv.chunk(3, dim=-1)
        )
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out_proj(y.transpose(1, 2).reshape(rows, length, dim))


class Residual(nn.Module):
    def __init__(self, body: nn.Module, shortcut: nn.Module | None) -> None:
        super().__init__()
        self.body = body
        self.shortcut = shortcut

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x) + (x if self.shortcut is None else self.shortcut(x))


def _pair(values: list[int] | None, default: int | tuple[int, ...]) -> tuple[int, ...]:
    """A size such as a kernel's: one number, or [height, width]."""
    if not values:
        return default if isinstance(default, tuple) else (default, default)
    return (values[0], values[0]) if len(values) == 1 else (values[0], values[1])


def _conv2d(spec: Spec) -> nn.Module:
    return Conv2d(
        spec["in"],
        spec["out"],
        _pair(spec["kernel"], 1),
        _pair(spec.get("stride"), 1),
        _pair(spec.get("padding"), 0),
        _pair(spec.get("dilation"), 1),
        spec.get("groups", 1),
        spec.get("bias", True),
    )


def _max_pool(spec: Spec) -> nn.Module:
    kernel = _pair(spec["kernel"], 1)
    stride = _pair(spec.get("stride"), kernel)
    return MaxPool2d(kernel, stride, _pair(spec.get("padding"), 0))


def _avg_pool(spec: Spec) -> nn.Module:
    kernel = _pair(spec["kernel"], 1)
    stride = _pair(spec.get("stride"), kernel)
    return AvgPool2d(
        kernel,
        stride,
        _pair(spec.get("padding"), 0),
        count_include_pad=spec.get("count_include_pad", True),
    )


# The default values are those of job-file.md; a run's model.json has them all.
KINDS: dict[str, Callable[[Spec], nn.Module]] = {
    "linear": lambda s: Linear(s["in"], s["out"], s.get("bias", True)),
    "layernorm": lambda s: nn.LayerNorm(s["features"], s.get("epsilon", 1e-5)),
    "rms_norm": lambda s: RMSNorm(s["features"], s.get("epsilon", 2.0**-23)),
    "batch_norm": lambda s: BatchNorm(
        s["features"], s.get("momentum", 0.1), s.get("epsilon", 1e-5)
    ),
    "group_norm": lambda s: GroupNorm(
        s["groups"], s["features"], s.get("epsilon", 1e-5), s.get("affine", True)
    ),
    "relu": lambda s: nn.ReLU(),
    "sigmoid": lambda s: nn.Sigmoid(),
    "tanh": lambda s: nn.Tanh(),
    "silu": lambda s: nn.SiLU(),
    "gelu": lambda s: nn.GELU(s.get("approximate", "none")),
    "dropout": lambda s: nn.Dropout(s.get("p", 0.5)),
    "flatten": lambda s: nn.Flatten(),
    "conv2d": _conv2d,
    "max_pool": _max_pool,
    "avg_pool": _avg_pool,
    "global_avg_pool": lambda s: GlobalAvgPool(),
    "embedding": lambda s: Embedding(s["tokens"], s["dim"]),
    "position_embedding": lambda s: PositionEmbedding(s["length"], s["dim"]),
    "attention": lambda s: Attention(
        s["dim"], s["heads"], s.get("causal", False), s.get("qkv_bias", True)
    ),
}


def _owner_of(name: str, earlier: list[nn.Module]) -> nn.Module:
    """The module of a weight such as "0.weight"."""
    first, *path = name.split(".")[:-1]
    module: Any = earlier[int(first)]
    for part in path:
        module = getattr(module, part)
    return module


def _build(layer: Spec, earlier: list[nn.Module]) -> nn.Module:
    ((kind, spec),) = layer.items()
    if kind == "tied_linear":
        return TiedLinear(_owner_of(spec["to"], earlier))
    if kind == "residual":
        shortcut = spec.get("shortcut")
        return Residual(
            nn.Sequential(*(_build(inner, earlier) for inner in spec["body"])),
            nn.Sequential(*(_build(inner, earlier) for inner in shortcut))
            if shortcut
            else None,
        )
    if kind not in KINDS:
        raise Misuse(
            f"model.json has a layer {kind!r}, which this version does not know"
        )
    return KINDS[kind](spec)


def sequential(layers: list[Spec]) -> nn.Sequential:
    """The layers of a `sequential`, as in model.json: [{"linear": {"in": 4, ...}},
    {"relu": {}}]. Weights are PyTorch's initial ones."""
    modules: list[nn.Module] = []
    for layer in layers:
        modules.append(_build(layer, modules))
    return nn.Sequential(*modules)
