#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the golden group optim_papers in tests/golden: optimizers that PyTorch does
not have, or not in every release, from the formulas of their papers.

numpy in float64 over the weights and gradients of the group optim; tolerances are
4 times the error of the same run in float32, at least 1e-6.
"""
import math

import numpy

from golden_group import Group, shared_input

KEPT = [1, 2, 3, 5, 10, 15, 20]


def lion(weights, gradients, rates, attributes, dtype):
    """Chen et al. 2023, Algorithm 2."""
    weights, average = weights.astype(dtype), numpy.zeros(weights.shape, dtype)
    beta1, beta2 = (dtype(b) for b in attributes["betas"])
    decay = dtype(attributes.get("weight_decay", 0))
    kept = []
    for step, (gradient, rate) in enumerate(zip(gradients, rates), 1):
        gradient, rate = gradient.astype(dtype), dtype(rate)
        update = beta1 * average + (1 - beta1) * gradient
        weights = weights - rate * (numpy.sign(update) + decay * weights)
        average = beta2 * average + (1 - beta2) * gradient
        if step in KEPT:
            kept.append(weights)
    return {"w": numpy.stack(kept), "state_exp_avg": average}


SHAPES = [(10, 10), (1,), (12, 13)]


def adafactor(weights, gradients, rates, attributes, dtype):
    """torch.optim.Adafactor (Shazeer & Stern 2018) on tensors of SHAPES."""
    eps1, eps2 = dtype(attributes["eps"]), attributes["eps2"]
    decay, most = attributes.get("weight_decay", 0), attributes["d"]
    kept, begin, tensors = [], 0, []
    for shape in SHAPES:
        size = math.prod(shape)
        factored = len(shape) > 1
        tensors.append({
            "at": slice(begin, begin + size), "shape": shape,
            "row": numpy.zeros((shape[0], 1) if factored else shape, dtype),
            "col": numpy.zeros((1, shape[1]) if factored else shape, dtype)})
        begin += size
    weights = weights.astype(dtype)
    for step, (gradient, rate) in enumerate(zip(gradients, rates), 1):
        part = dtype(step ** attributes["beta2_decay"])
        weights = weights.copy()
        for t in tensors:
            g = gradient[t["at"]].astype(dtype).reshape(t["shape"])
            w = weights[t["at"]].reshape(t["shape"])
            size = math.sqrt(w.size)
            alpha = (max(eps2, float(numpy.linalg.norm(w)) / size)
                     * min(rate, 1 / math.sqrt(step)))
            if len(t["shape"]) > 1:
                t["row"] += part * ((g * g).mean(1, keepdims=True) - t["row"])
                t["col"] += part * ((g * g).mean(0, keepdims=True) - t["col"])
                variance = t["row"] @ t["col"] / max(t["row"].mean(), eps1)
            else:
                t["row"] += part * (g * g - t["row"])
                variance = t["row"]
            update = g / numpy.sqrt(numpy.maximum(variance, eps1 * eps1))
            clip = max(1.0, float(numpy.linalg.norm(update)) / (size * most))
            w = w * dtype(1 - rate * decay) - dtype(alpha / clip) * update
            weights[t["at"]] = w.ravel()
        if step in KEPT:
            kept.append(weights)
    def expanded(key):
        return numpy.concatenate([numpy.broadcast_to(
            t[key], t["shape"]).ravel() for t in tensors])
    columns = expanded("col")
    return {"w": numpy.stack(kept), "state_row_var": expanded("row"),
            "state_col_var": columns}


CASES = [("adafactor", adafactor,
          {"op": "adafactor", "lr": 1e-2, "beta2_decay": -0.8,
           "eps": 2.0 ** -23, "eps2": 1e-3, "d": 1.0}),
         ("adafactor_wd", adafactor,
          {"op": "adafactor", "lr": 0.3, "beta2_decay": -0.5, "eps": 1e-3,
           "eps2": 1e-2, "d": 0.5, "weight_decay": 0.1, "lr_sched": "cosine"}),
         ("lion", lion, {"op": "lion", "lr": 1e-2, "betas": [0.9, 0.99]}),
         ("lion_wd", lion, {"op": "lion", "lr": 3e-3, "betas": [0.95, 0.98],
                            "weight_decay": 0.1}),
         ("lion_cosine", lion, {"op": "lion", "lr": 2e-2, "betas": [0.9, 0.99],
                                "weight_decay": 0.01, "lr_sched": "cosine"})]


def main():
    group = Group()
    weights, gradients = shared_input("w0"), shared_input("grads")
    steps = len(gradients)
    for case, optimizer, attributes in CASES:
        for key, value in {**attributes, "steps": KEPT}.items():
            group.attribute(case, key, value)
        rates = [attributes["lr"]] * steps
        if "lr_sched" in attributes:
            rates = [attributes["lr"] * (1 + math.cos(math.pi * t / steps)) / 2
                     for t in range(steps)]
            group.tensor(case, "lr", numpy.array(rates), "input")
        wide, narrow = (optimizer(weights, gradients, rates, attributes, dtype)
                        for dtype in (numpy.float64, numpy.float32))
        for name in wide:
            group.expect(case, name, wide[name], narrow[name])
    group.write("optim_papers")


main()
