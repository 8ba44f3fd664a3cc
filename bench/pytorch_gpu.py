#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's part of bench/gpu_models.py: a job's layers in PyTorch on one device.

usage: bench/pytorch_gpu.py JOB.yaml [--precision float32|bfloat16]
           [--device cuda|cpu] [--steps 30] [--variants eager,compiled]

Prints a JSON object after each variant: the milliseconds of a step (forward, cross
entropy, backward, AdamW) of all variants so far, medians by the device's clock.
PyTorch runs as its users run it: fused attention, updates of all tensors at once,
autocast for bfloat16, channels last for images. Variants are words joined with +:

  eager          float32 products without TF32, as Tributary's
  padded         the vocabulary is padded to a multiple of 64
  tf32           float32 products and convolutions with TF32
  deterministic  operations that give the same bits again, as Tributary's do
  compiled       torch.compile
  graphs         torch.compile with CUDA graphs (mode="reduce-overhead")
  host           the batch comes from pinned host memory in each step
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


def build_layer(layer, made, multiple):
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
        tokens = -(-s["tokens"] // multiple) * multiple
        embedding = nn.Embedding(tokens, s["dim"])
        nn.init.normal_(embedding.weight, std=s["std"])
        return embedding
    if kind == "position_embedding":
        return Position(s["length"], s["dim"])
    if kind == "tied_linear":
        return Tied(made[0])
    if kind == "residual":
        shortcut = s.get("shortcut")
        return Residual(build(s["body"], multiple),
                        build(shortcut, multiple) if shortcut else None)
    raise SystemExit(f"no layer {kind} in bench/pytorch_gpu.py")


def build(layers, multiple=1):
    """multiple: the rows of an embedding are padded to a multiple of it."""
    made = []
    for layer in layers:
        made.append(build_layer(layer, made, multiple))
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


def measure(job, options, words):
    """Milliseconds of a step of one variant."""
    deterministic = "deterministic" in words
    torch.use_deterministic_algorithms(deterministic, warn_only=True)
    torch.backends.cudnn.deterministic = deterministic
    torch.backends.cudnn.benchmark = not deterministic
    torch.backends.cuda.matmul.allow_tf32 = "tf32" in words
    torch.backends.cudnn.allow_tf32 = "tf32" in words
    torch.manual_seed(1)
    x, labels = batch_of(job, options.device)
    model = build(job["model"]["sequential"],
                  64 if "padded" in words else 1).to(options.device)
    if x.dim() == 4:
        model = model.to(memory_format=torch.channels_last)
    fused = {"fused": True} if options.device == "cuda" else {"foreach": True}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, **fused)
    rounds = options.precision == "bfloat16"
    on_host = x.cpu().pin_memory() if "host" in words else None

    def loss_of(x, labels):
        with torch.autocast(options.device, torch.bfloat16, enabled=rounds):
            logits = model(x)
        return functional.cross_entropy(logits.flatten(0, -2).float(),
                                        labels.flatten())

    if "compiled" in words:
        loss_of = torch.compile(loss_of)
    elif "graphs" in words:
        loss_of = torch.compile(loss_of, mode="reduce-overhead")

    def step():
        optimizer.zero_grad(set_to_none=True)
        if on_host is not None:
            x.copy_(on_host, non_blocking=True)
        loss = loss_of(x, labels)
        loss.backward()
        optimizer.step()
        return loss

    return time_steps(step, options.device, options.steps)[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("job")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--variants", default="eager,compiled")
    options = parser.parse_args()
    with open(options.job, encoding="utf-8") as file:
        job = json.load(file)
    told = {}
    for variant in options.variants.split(","):
        try:
            told[variant] = round(measure(job, options, variant.split("+")), 3)
        except Exception as error:  # a missing compiler is not a failure
            told["why"] = f"{variant}: {str(error).splitlines()[0][:200]}"
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
