#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the golden groups layers_norm and train_resnet in tests/golden.

PyTorch 1.13 (Debian's python3-torch) in float64 on one thread; tolerances are
4 times the error of the same run in float32, at least 1e-6, or 3e-6 of
trainings. Data-parallel ranks and micro-batches are computed one after the
other. Each normalizes with its own statistics; their means, weighted by
samples, move the running statistics.
"""
import copy
import json
import pathlib

import torch
from torch import nn

FOLDER = pathlib.Path(__file__).parent.parent


class Group:
    def __init__(self):
        self.bytes, self.lines = b"", []

    def attribute(self, case, key, value):
        self.lines.append(f"A\t{case}\t{key}\t{json.dumps(value)}")

    def tensor(self, case, name, value, role, tolerance=None):
        kind = {torch.float32: "f32", torch.float64: "f64", torch.int64: "i64",
                torch.uint8: "u8"}[value.dtype]
        data = value.detach().contiguous().numpy().tobytes()
        shape = ",".join(map(str, value.shape)) or "-"
        tol = "-" if tolerance is None else f"{tolerance:.2g}"
        self.lines.append("\t".join(map(str, (
            "T", case, name, role, kind, shape, len(self.bytes), len(data), tol,
            "-"))))
        self.bytes += data + b"\0" * (-len(data) % 8)

    def expect(self, case, name, wide, narrow, least=1e-6):
        scale = wide.abs().max().item() or 1.0
        error = (wide - narrow.double()).abs().max().item() / scale
        self.tensor(case, name, wide, "expect", max(least, 4 * error))

    def write(self, name):
        head = ("#A case key json-value | #T case tensor role dtype shape "
                "offset nbytes tol_f32 scale-tensor")
        (FOLDER / f"{name}.tsv").write_text("\n".join([head] + self.lines) + "\n")
        (FOLDER / f"{name}.bin").write_bytes(self.bytes)


def norm_results(kind, inputs, attributes, dtype):
    x, dy = (inputs[n].to(dtype) for n in ("x", "dy"))
    layer = kind(x.shape[1], momentum=attributes["momentum"],
                 eps=attributes["eps"]).to(dtype)
    with torch.no_grad():
        layer.weight.copy_(inputs["gamma"])
        layer.bias.copy_(inputs["beta"])
        layer.running_mean.copy_(inputs["mean"])
        layer.running_var.copy_(inputs["var"])
    x.requires_grad_()
    layer.train()
    y = layer(x)
    y.backward(dy)
    layer.eval()
    return {"y": y, "d_x": x.grad, "d_gamma": layer.weight.grad,
            "d_beta": layer.bias.grad, "new_mean": layer.running_mean,
            "new_var": layer.running_var, "y_eval": layer(x)}


def add_case(group, case, attributes, inputs, results):
    """results(dtype): the expected tensors, computed in this type."""
    for key, value in attributes.items():
        group.attribute(case, key, value)
    for name, value in inputs.items():
        group.tensor(case, name, value, "input")
    wide, narrow = results(torch.float64), results(torch.float32)
    for name in wide:
        group.expect(case, name, wide[name], narrow[name])


def add_batch_norms(group):
    cases = [("features", (7, 5), 0.0, 1.0, 0.1, 1e-5),
             ("features_wide", (33, 70), 2.0, 0.5, 0.3, 1e-3),
             ("image", (4, 3, 5, 4), 0.0, 1.0, 0.1, 1e-5),
             ("one_sample", (1, 2, 3, 3), 1.0, 2.0, 1.0, 1e-5),
             ("images", (16, 16, 5, 5), -1.0, 3.0, 0.1, 1e-5),
             ("far_from_0", (8, 4, 6, 6), 400.0, 1.0, 0.1, 1e-5)]
    for seed, (case, shape, mean, std, momentum, eps) in enumerate(cases):
        torch.manual_seed(seed)
        channels = shape[1]
        inputs = {"x": torch.randn(shape) * std + mean,
                  "gamma": torch.randn(channels), "beta": torch.randn(channels),
                  "mean": torch.randn(channels),
                  "var": torch.rand(channels) + 0.5, "dy": torch.randn(shape)}
        attributes = {"op": "batchnorm", "momentum": momentum, "eps": eps}
        kind = nn.BatchNorm1d if len(shape) == 2 else nn.BatchNorm2d
        add_case(group, case, attributes, inputs,
                 lambda dtype: norm_results(kind, inputs, attributes, dtype))


def rms_results(inputs, eps, dtype):
    """PyTorch has RMSNorm from 2.4 on: here its formula, with autograd."""
    x, gamma, dy = (inputs[n].to(dtype).clone() for n in ("x", "gamma", "dy"))
    x.requires_grad_()
    gamma.requires_grad_()
    y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * gamma
    y.backward(dy)
    return {"y": y, "d_x": x.grad, "d_gamma": gamma.grad}


def add_rms_norms(group):
    cases = [("rms_short", (3, 3), 0.0, 1.0, 2.0**-23),
             ("rms_wide", (33, 70), 2.0, 0.5, 1e-5),
             ("rms_sequence", (4, 6, 32), 0.0, 3.0, 1e-6),
             ("rms_far_from_0", (8, 300), 400.0, 1.0, 2.0**-23),
             ("rms_mostly_epsilon", (5, 40), 0.0, 1e-3, 1e-5)]
    for seed, (case, shape, mean, std, eps) in enumerate(cases):
        torch.manual_seed(100 + seed)
        inputs = {"x": torch.randn(shape) * std + mean,
                  "gamma": torch.randn(shape[-1]), "dy": torch.randn(shape)}
        add_case(group, case, {"op": "rmsnorm", "eps": eps}, inputs,
                 lambda dtype: rms_results(inputs, eps, dtype))


def group_results(inputs, groups, eps, dtype):
    x, dy = (inputs[n].to(dtype).clone() for n in ("x", "dy"))
    layer = nn.GroupNorm(groups, x.shape[1], eps).to(dtype)
    with torch.no_grad():
        layer.weight.copy_(inputs["gamma"])
        layer.bias.copy_(inputs["beta"])
    x.requires_grad_()
    y = layer(x)
    y.backward(dy)
    return {"y": y, "d_x": x.grad, "d_gamma": layer.weight.grad,
            "d_beta": layer.bias.grad}


def add_group_norms(group):
    cases = [("group_features", (7, 6), 3, 0.0, 1.0, 1e-5),
             ("group_one", (4, 3, 5, 4), 1, 2.0, 0.5, 1e-3),
             ("group_each_channel", (3, 5, 6, 7), 5, 0.0, 3.0, 1e-5),
             ("group_images", (16, 12, 9, 5), 4, -1.0, 3.0, 1e-5),
             ("group_far_from_0", (6, 4, 8, 6), 2, 400.0, 1.0, 1e-5)]
    for seed, (case, shape, groups, mean, std, eps) in enumerate(cases):
        torch.manual_seed(200 + seed)
        inputs = {"x": torch.randn(shape) * std + mean,
                  "gamma": torch.randn(shape[1]), "beta": torch.randn(shape[1]),
                  "dy": torch.randn(shape)}
        add_case(group, case, {"op": "groupnorm", "groups": groups, "eps": eps},
                 inputs, lambda dtype: group_results(inputs, groups, eps, dtype))


def layers_norm():
    group = Group()
    add_batch_norms(group)
    add_rms_norms(group)
    add_group_norms(group)
    group.write("layers_norm")


class Residual(nn.Module):
    def __init__(self, body, shortcut):
        super().__init__()
        self.body = nn.Sequential(*body)
        if shortcut:
            self.shortcut = nn.Sequential(*shortcut)

    def forward(self, x):
        around = self.shortcut(x) if hasattr(self, "shortcut") else x
        return self.body(x) + around


class GlobalAverage(nn.Module):
    def forward(self, x):
        return x.mean((2, 3))


def normed(inputs, outputs, kernel, stride):
    return [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False),
            nn.BatchNorm2d(outputs, momentum=1.0)]


def resnet(channels, classes):
    """6 n + 2 layers with n = 1, named as the preset's."""
    layers = normed(1, channels[0], 3, 1) + [nn.ReLU()]
    inputs = channels[0]
    for stage, outputs in enumerate(channels):
        stride = 2 if stage else 1
        shortcut = (normed(inputs, outputs, 1, stride)
                    if stride != 1 or inputs != outputs else [])
        layers += [Residual(normed(inputs, outputs, 3, stride) + [nn.ReLU()] +
                            normed(outputs, outputs, 3, 1), shortcut), nn.ReLU()]
        inputs = outputs
    return nn.Sequential(*layers, GlobalAverage(), nn.Linear(inputs, classes))


RUNNING = ("running_mean", "running_var")
BATCH, STEPS, RATE, MOMENTUM, DECAY, MOVE = 16, 12, 0.05, 0.9, 1e-3, 0.1


def train(model, pixels, labels, cuts, dtype):
    """cuts(rows): the rows of every rank or micro-batch."""
    model = copy.deepcopy(model).to(dtype)
    model.train()
    buffers = {n: b for n, b in model.named_buffers() if n.endswith(RUNNING)}
    running = {n: (torch.zeros if n.endswith("mean") else torch.ones)(
        b.shape, dtype=dtype) for n, b in buffers.items()}
    optimizer = torch.optim.SGD(model.parameters(), RATE, MOMENTUM,
                                weight_decay=DECAY)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        total, seen = 0.0, {n: 0.0 for n in buffers}
        for rows in cuts(list(range(step * BATCH, (step + 1) * BATCH))):
            share = len(rows) / BATCH
            x = (pixels[rows].float() / 16).to(dtype)
            loss = share * nn.functional.cross_entropy(model(x), labels[rows])
            loss.backward()
            total += loss.item()
            for name, buffer in buffers.items():  # momentum 1: the batch's own
                seen[name] = seen[name] + share * buffer.clone()
        optimizer.step()
        for name in running:
            running[name] += MOVE * (seen[name] - running[name])
        losses.append(total)
    final = {n: p.detach() for n, p in model.named_parameters()}
    return torch.tensor(losses, dtype=torch.float64), {**final, **running}


def train_resnet():
    group = Group()
    source = {}
    for line in (FOLDER / "train_cnn.tsv").read_text().splitlines():
        part = line.split("\t")
        if part[0] == "T" and part[2] in ("data", "label"):
            raw = (FOLDER / "train_cnn.bin").read_bytes()
            begin = int(part[6])
            kind = torch.uint8 if part[4] == "u8" else torch.int64
            source[part[2]] = torch.frombuffer(
                bytearray(raw[begin:begin + int(part[7])]),
                dtype=kind).reshape(*map(int, part[5].split(",")))
    torch.manual_seed(3)
    model = resnet([4, 8, 8], 10)
    cuts = {"whole": lambda rows: [rows],
            "ranks_2": lambda rows: [rows[0::2], rows[1::2]],
            "parts_2": lambda rows: [rows[:BATCH // 2], rows[BATCH // 2:]]}
    for case, cut in cuts.items():
        for name in ("data", "label"):
            group.tensor(case, name, source[name][:STEPS * BATCH], "input")
        for name, value in model.state_dict().items():
            if not name.endswith("num_batches_tracked"):
                group.tensor(case, "init." + name, value, "input")
        wide = train(model, source["data"], source["label"], cut, torch.float64)
        narrow = train(model, source["data"], source["label"], cut,
                       torch.float32)
        group.expect(case, "loss", wide[0], narrow[0], 3e-6)
        for name in wide[1]:
            group.expect(case, "final." + name, wide[1][name], narrow[1][name],
                         3e-6)
    group.write("train_resnet")


torch.set_num_threads(1)
layers_norm()
train_resnet()
