#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the golden group optim/groups in tests/golden: torch.optim's parameter
groups, with rates of their own in every step, a frozen parameter, and clipping.

PyTorch in float64 over the weights and gradients of the group optim; tolerances
are 4 times the error of the same run in float32, at least 1e-6.
"""
import math

import numpy
import torch

from golden_group import Group, shared_input

# The parameters in order; the last one is frozen.
PARAMETERS = [("0.weight", (12, 13)), ("0.bias", (60,)), ("1.weight", (41,))]
GROUP_OPTIONS = {"weight_decay": 0.3}  # of 0.bias
CASES = [("sgd", torch.optim.SGD, {"lr": 0.1, "weight_decay": 0.01}, 0.02),
         ("momentum", torch.optim.SGD,
          {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.01}, 0.1),
         ("adamw", torch.optim.AdamW, {"lr": 1e-2, "weight_decay": 0.1}, 3e-3)]
CLIP_NORM = 2.0


def rates_of(step, rate, group_rate):
    """A rate that falls, and one that rises."""
    return rate * (1 + math.cos(math.pi * step / 20)) / 2, group_rate * (step + 1)


def train(kind, options, group_rate, clip_norm, dtype):
    weights, gradients = shared_input("w0"), shared_input("grads")
    parts, begin = [], 0
    for _, shape in PARAMETERS:
        size = math.prod(shape)
        parts.append((slice(begin, begin + size), shape))
        begin += size
    parameters = [
        torch.tensor(weights[at].reshape(shape), dtype=dtype, requires_grad=True)
        for at, shape in parts]
    optimizer = kind([{"params": parameters[:1]},
                      {"params": parameters[1:2], **GROUP_OPTIONS}], **options)
    for step, gradient in enumerate(gradients):
        for parameter, (at, shape) in zip(parameters[:2], parts):
            parameter.grad = torch.tensor(gradient[at].reshape(shape), dtype=dtype)
        if clip_norm > 0:
            torch.nn.utils.clip_grad_norm_(parameters[:2], clip_norm)
        for group, rate in zip(optimizer.param_groups,
                               rates_of(step, options["lr"], group_rate)):
            group["lr"] = rate
        optimizer.step()
    return numpy.concatenate([p.detach().numpy().ravel() for p in parameters])


def main():
    torch.set_num_threads(1)
    group = Group()
    steps = len(shared_input("grads"))
    for name, kind, options, group_rate in CASES:
        rates = numpy.array([rates_of(step, options["lr"], group_rate)
                             for step in range(steps)])
        for clip_norm in (0.0, CLIP_NORM):
            case = name + ("_clipped" if clip_norm else "")
            for key, value in {"op": kind.__name__.lower(), **options,
                               "group_weight_decay": GROUP_OPTIONS["weight_decay"],
                               "clip_norm": clip_norm}.items():
                group.attribute(case, key, value)
            group.tensor(case, "lr", rates, "input")
            group.expect(case, "w", *(
                train(kind, options, group_rate, clip_norm, dtype)
                for dtype in (torch.float64, torch.float32)))
    group.write("optim/groups")


main()
