# SPDX-License-Identifier: Apache-2.0
"""Trains a model with buffers that float32 cannot hold; test_buffers_travel.py
starts it. The argument is the run directory, whose checkpoint rank 0 reads."""

from __future__ import annotations

import sys

import torch

import tributary.torch as tributary

BUFFERS = {
    "mask": torch.full((3, 3), float("-inf")).triu(1),
    "least": torch.full((2,), torch.finfo(torch.float32).min),
    "flags": torch.arange(19) % 3 == 0,
    "ids": torch.tensor([2**31 + 12345, 2**53 + 1, -(2**63)]),
    "serial": torch.tensor([2**31 - 1], dtype=torch.int32),
    "pi": torch.tensor(3.14159265358979, dtype=torch.float64),
    "roots": torch.tensor([1 + 2j, -1j]),
    "bytes": torch.tensor([0, 1, 255], dtype=torch.uint8),
    "count": torch.tensor(7),
    "empty": torch.zeros(0, 2),
}


def is_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.dtype is other.dtype and torch.equal(one, other)


def main() -> None:
    model = torch.nn.Linear(3, 1)
    for name, value in BUFFERS.items():
        model.register_buffer(name, value.clone())
    model.register_buffer("scale", torch.ones(2))
    with tributary.connect(checkpoint_every=3) as cluster:
        rank = cluster.rank
        if rank > 0:  # rank 0's count
            model.flags.logical_not_()
            model.ids.add_(1)
        # Ranks with different rows, of which there are 3 and 5.
        optimizer = cluster.optimizer(model, "adam", lr=0.1)
        for scale in (2.0**20, 2.0**-3, 2.0**-10):
            model.scale.fill_(scale)
            cluster.samples = 3 + 2 * rank
            optimizer.zero_grad()
            model(torch.ones(2, 3) * (rank + 1)).square().mean().backward()
            optimizer.step()
            for name, value in BUFFERS.items():
                assert is_same(getattr(model, name), value), name
            assert model.scale.tolist() == [scale, scale], model.scale
    if rank == 0:
        held = tributary.load_checkpoint(sys.argv[1])
        for name, value in BUFFERS.items():
            if name in ("bytes", "count"):
                value = value.float()
            assert name == "empty" or is_same(held[name], value), name
        print("all buffers are the same")


if __name__ == "__main__":
    main()
