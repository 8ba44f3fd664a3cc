#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tributary's presets in PyTorch for comparison: a CNN and a GPT, one process.

Prints milliseconds per step as "ms_per_step=...": forward, cross entropy,
backward, Adam. One thread; Debian's python3-torch on OpenBLAS. PyTorch runs at
its best: gradients set to None instead of zero, updates over all tensors at
once, batches that are views, and of each layer the fastest form it has.
bench/pytorch_job.py trains the same models by a job file.
"""

import argparse
import math
import os
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

import torch
from torch import nn
from torch.nn import functional


def cnn():
    """Tributary's preset. With channels last, oneDNN's convolutions and the pools are
    half again as fast, and an in-place ReLU saves a pass over memory."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 128), nn.ReLU(inplace=True),
        nn.Linear(128, 10)).to(memory_format=torch.channels_last)


class Attention(nn.Module):
    """The fastest form in PyTorch 1.13 on CPUs, which has no fused
    scaled_dot_product_attention there, and nn.MultiheadAttention scales and
    masks in separate passes; baddbmm does that within the product."""

    def __init__(self, dim, heads, length):
        super().__init__()
        self.heads = heads
        self.in_proj_weight = nn.Parameter(torch.randn(3 * dim, dim) * 0.02)
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * dim))
        self.out_proj = nn.Linear(dim, dim)
        mask = torch.full((length, length), -math.inf).triu(1)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x):
        batch, length, dim = x.shape
        depth = dim // self.heads
        qkv = functional.linear(x, self.in_proj_weight, self.in_proj_bias)
        q, k, v = (qkv.view(batch, length, 3, self.heads, depth)
                   .permute(2, 0, 3, 1, 4)
                   .reshape(3, batch * self.heads, length, depth).unbind())
        scores = torch.baddbmm(self.mask, q, k.transpose(1, 2),
                               alpha=depth ** -0.5)
        y = torch.bmm(torch.softmax(scores, -1), v)
        return self.out_proj(y.view(batch, self.heads, length, depth)
                             .transpose(1, 2).reshape(x.shape))


class PositionEmbedding(nn.Module):
    def __init__(self, length, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(length, dim) * 0.02)

    def forward(self, x):
        return x + self.weight


class Residual(nn.Module):
    def __init__(self, *body):
        super().__init__()
        self.body = nn.Sequential(*body)

    def forward(self, x):
        return x + self.body(x)


class Gpt(nn.Sequential):
    """Tributary's preset, with its parameters' names and a tied head."""

    def __init__(self, layers, dim, heads, length, vocabulary):
        tokens = nn.Embedding(vocabulary, dim)
        nn.init.normal_(tokens.weight, std=0.02)
        blocks = []
        for _ in range(layers):
            blocks += [
                Residual(nn.LayerNorm(dim), Attention(dim, heads, length)),
                Residual(nn.LayerNorm(dim), nn.Linear(dim, 4 * dim), nn.GELU(),
                         nn.Linear(4 * dim, dim))]
        super().__init__(tokens, PositionEmbedding(length, dim), *blocks,
                         nn.LayerNorm(dim))

    def forward(self, ids):
        return functional.linear(super().forward(ids), self[0].weight)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=("cnn", "gpt"), default="cnn")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--warmup", type=int, default=10)
    options = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(1)
    batches = 64
    if options.model == "cnn":
        model, batch, classes = cnn(), 64, 10
        features = torch.rand(batches, batch, 1, 28, 28)
        labels = torch.randint(classes, (batch,))
    else:
        model, batch, classes = Gpt(2, 64, 4, 64, 65), 32, 65
        features = torch.randint(classes, (batches, batch, 64))
        labels = torch.randint(classes, (batch * 64,))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, foreach=True)

    begin = 0.0
    for step in range(options.warmup + options.steps):
        if step == options.warmup:
            begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        logits = model(features[step % batches]).view(-1, classes)
        loss = functional.cross_entropy(logits, labels)
        loss.backward()
        optimizer.step()
        loss.item()
    seconds = time.perf_counter() - begin
    print(f"ms_per_step={1e3 * seconds / options.steps:.4f} "
          f"loss={loss.item():.4f}")


if __name__ == "__main__":
    main()
