#!/usr/bin/python3
"""The rival of the presets: a CNN and a GPT under PyTorch, one process.

Prints milliseconds per step as "ms_per_step=...": forward, cross entropy,
backward, Adam. One thread; Debian's python3-torch on OpenBLAS. PyTorch runs at
its best: gradients set to None instead of zero, updates over all tensors at
once, batches that are views.
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
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 128), nn.ReLU(),
        nn.Linear(128, 10))


class Attention(nn.Module):
    def __init__(self, dim, heads, length):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        mask = torch.full((length, length), -math.inf).triu(1)
        self.register_buffer("mask", mask)

    def forward(self, x):
        batch, time_, dim = x.shape
        q, k, v = (part.view(batch, time_, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(x).split(dim, 2))
        scores = q @ k.transpose(2, 3) * (dim // self.heads) ** -0.5
        weights = torch.softmax(scores + self.mask, -1)
        return self.out((weights @ v).transpose(1, 2).reshape(x.shape))


class Residual(nn.Module):
    def __init__(self, *body):
        super().__init__()
        self.body = nn.Sequential(*body)

    def forward(self, x):
        return x + self.body(x)


class Gpt(nn.Module):
    def __init__(self, layers, dim, heads, length, vocabulary):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, dim)
        self.positions = nn.Parameter(torch.randn(length, dim) * 0.02)
        blocks = []
        for _ in range(layers):
            blocks += [
                Residual(nn.LayerNorm(dim), Attention(dim, heads, length)),
                Residual(nn.LayerNorm(dim), nn.Linear(dim, 4 * dim), nn.GELU(),
                         nn.Linear(4 * dim, dim))]
        self.blocks = nn.Sequential(*blocks, nn.LayerNorm(dim))

    def forward(self, ids):
        x = self.blocks(self.tokens(ids) + self.positions)
        return functional.linear(x, self.tokens.weight)


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
