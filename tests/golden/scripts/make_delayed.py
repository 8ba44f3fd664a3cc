#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the golden group train_delayed in tests/golden: the training of the group
train_mlp with gradients that are one step late (sync: {bsp: {delay: 1}}).

The gradient of step s is computed at the weights after step s - 2 and applied to
those after step s - 1; the first two steps are both computed at the initial weights.
PyTorch in float64; tolerances are 4 times the error of the same run in float32, at
least 1e-6.
"""
import numpy
import torch
from torch.nn.functional import cross_entropy

from golden_group import Group, shared_input

NAMES = ["w0", "b0", "w1", "b1"]
CASES = [("sgd", torch.optim.SGD, {"lr": 0.1}, 0.0),
         ("momentum", torch.optim.SGD, {"lr": 0.02, "momentum": 0.9}, 0.0),
         ("adamw_clip", torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.05}, 0.5)]


def train(kind, options, clip_norm, dtype):
    data = torch.tensor(shared_input("data", "train_mlp"), dtype=dtype) / 16
    labels = torch.tensor(shared_input("label", "train_mlp"))
    weights = [torch.tensor(shared_input(f"init.{name}", "train_mlp"), dtype=dtype,
                            requires_grad=True) for name in NAMES]
    before = [w.detach().clone() for w in weights]  # one step ago
    optimizer = kind(weights, **options)
    losses = []
    for rows in shared_input("order", "train_mlp"):
        late = [w.clone().requires_grad_() for w in before]
        w0, b0, w1, b1 = late
        rows = torch.tensor(rows)
        hidden = torch.relu(data[rows] @ w0.T + b0)
        loss = cross_entropy(hidden @ w1.T + b1, labels[rows])
        losses.append(float(loss.detach()))
        before = [w.detach().clone() for w in weights]
        for weight, gradient in zip(weights, torch.autograd.grad(loss, late)):
            weight.grad = gradient
        if clip_norm > 0:
            torch.nn.utils.clip_grad_norm_(weights, clip_norm)
        optimizer.step()
    return [numpy.array(losses)] + [w.detach().numpy() for w in weights]


def main():
    torch.set_num_threads(1)
    group = Group()
    for case, kind, options, clip_norm in CASES:
        for key, value in {"op": "train_delayed", "opt": kind.__name__.lower(),
                           **options, "clip_norm": clip_norm}.items():
            group.attribute(case, key, value)
        wide, narrow = (train(kind, options, clip_norm, dtype)
                        for dtype in (torch.float64, torch.float32))
        for name, a, b in zip(["loss"] + [f"final.{n}" for n in NAMES], wide, narrow):
            group.expect(case, name, a, b)
    group.write("train_delayed")


main()
