#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's part of bench/gpu_models.py: a job's layers in PyTorch on one device.

usage: bench/pytorch_gpu.py JOB.yaml [--precision float32|bfloat16]
           [--device cuda|cpu] [--steps 30] [--eager]

Prints one JSON object: milliseconds of a step (forward, cross entropy, backward,
AdamW), eager and compiled, medians by the device's clock, and the loss after
them. PyTorch runs as its users run it: fused attention, updates of all tensors
at once, autocast for bfloat16, channels last for images, float32 products
without TF32 as Tributary's.
"""

import argparse
import json
import statistics
import time

import torch
from torch import nn
from torch.nn import functional


class Attention(nn.Module):
    def __init__(self, dim, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.inputs, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x):
        batch, length, dim = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2)
                   for part in self.inputs(x).split(dim, 2))
        y = functional.scaled_dot_product_attention(q, k, v,
                                                    is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(x.shape))


class Position(nn.Module):
    def __init__(self, length, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(length, dim) * 0.02)

    def forward(self, x):
        return x + self.weight


class Residual(nn.Module):
    def __init__(self, body, shortcut):
        super().__init__()
        self.body, self.shortcut = body, shortcut

    def forward(self, x):
        return self.body(x) + (x if self.shortcut is None else self.shortcut(x))


class Tied(nn.Module):
    def __init__(self, embedding):
        super().__init__()
        self.weight = embedding.weight

    def forward(self, x):
        return functional.linear(x, self.weight)


PLAIN = {"relu": lambda: nn.ReLU(inplace=True), "gelu": nn.GELU,
         "global_avg_pool": lambda: nn.Sequential(nn.AdaptiveAvgPool2d(1),
                                                  nn.Flatten())}


def build_layer(layer, made):
    if isinstance(layer, str):
        return PLAIN[layer]()
    (kind, s), = layer.items()
    if kind == "linear":
        return nn.Linear(s["in"], s["out"])
    if kind == "conv2d":
        return nn.Conv2d(s["in"], s["out"], s["kernel"], s["stride"],
                         s["padding"], bias=s["bias"])
    if kind == "batch_norm":
        return nn.BatchNorm2d(s["features"])
    if kind == "max_pool":
        return nn.MaxPool2d(s["kernel"], s["stride"], s["padding"])
    if kind == "layernorm":
        return nn.LayerNorm(s["features"])
    if kind == "attention":
        return Attention(s["dim"], s["heads"], s["causal"])
    if kind == "embedding":
        embedding = nn.Embedding(s["tokens"], s["dim"])
        nn.init.normal_(embedding.weight, std=s["std"])
        return embedding
    if kind == "position_embedding":
        return Position(s["length"], s["dim"])
    if kind == "tied_linear":
        return Tied(made[0])
    if kind == "residual":
        shortcut = s.get("shortcut")
        return Residual(build(s["body"]), build(shortcut) if shortcut else None)
    raise SystemExit(f"no layer {kind} in bench/pytorch_gpu.py")


def build(layers):
    made = []
    for layer in layers:
        made.append(build_layer(layer, made))
    return nn.Sequential(*made)


def batch_of(job, device):
    rows = job["data"]["batch_size"]
    source = job["data"]["train"]
    if "synthetic" in source:
        length = source["synthetic"]["length"]
        tokens = torch.randint(0, 64, (rows, length + 1), device=device)
        return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
    with open(source["npy"]["features"], "rb") as file:
        header = file.read(10)
        shape = eval(file.read(int.from_bytes(header[8:], "little")))["shape"]
    x = torch.randn(shape, device=device)
    if x.dim() == 4:
        x = x.contiguous(memory_format=torch.channels_last)
    classes = 10 if job["name"] != "resnet50" else 1000
    return x, torch.arange(rows, device=device) * 7 % classes


def time_steps(step, device, count):
    for _ in range(5):
        loss = step()
    times = []
    for _ in range(count):
        if device == "cuda":
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in "12")
            begin.record()
            loss = step()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end))
        else:
            begin = time.perf_counter()
            loss = step()
            times.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(times), float(loss)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("job")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--eager", action="store_true", help="compile nothing")
    options = parser.parse_args()
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    with open(options.job, encoding="utf-8") as file:
        job = json.load(file)
    x, labels = batch_of(job, options.device)
    model = build(job["model"]["sequential"]).to(options.device)
    if x.dim() == 4:
        model = model.to(memory_format=torch.channels_last)
    fused = {"fused": True} if options.device == "cuda" else {"foreach": True}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, **fused)
    rounds = options.precision == "bfloat16"

    def loss_of(x, labels):
        with torch.autocast(options.device, torch.bfloat16, enabled=rounds):
            logits = model(x)
        return functional.cross_entropy(logits.flatten(0, -2).float(),
                                        labels.flatten())

    def step_with(loss_of):
        def step():
            optimizer.zero_grad(set_to_none=True)
            loss = loss_of(x, labels)
            loss.backward()
            optimizer.step()
            return loss
        return step

    told = {}
    told["eager_ms"], told["loss"] = time_steps(step_with(loss_of),
                                                options.device, options.steps)
    print(json.dumps(told), flush=True)
    if options.eager:
        return
    try:
        compiled = torch.compile(loss_of)
        told["compiled_ms"], told["loss"] = time_steps(
            step_with(compiled), options.device, options.steps)
    except Exception as error:  # a missing compiler is not a failure
        told["not_compiled"] = str(error).splitlines()[0][:200]
    print(json.dumps(told))


if __name__ == "__main__":
    main()
