# SPDX-License-Identifier: Apache-2.0
"""Softmax regression on the first tenth of Fashion-MNIST, with numpy alone.

tributary run --servers 2 --workers 2 softmax.py --epochs 5
"""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path

import numpy as np

import tributary

DATA = Path(__file__).parent.parent / "data"
BATCH = 32


def read(name: str, header_bytes: int) -> np.ndarray:
    with gzip.open(DATA / f"fashion-train6000-{name}-ubyte.gz") as file:
        return np.frombuffer(file.read(), np.uint8, offset=header_bytes)


def loss_and_gradients(
    weights: dict[str, np.ndarray], x: np.ndarray, y: np.ndarray
) -> tuple[float, dict[str, np.ndarray]]:
    """The mean cross entropy of x [n, 784] and classes y [n]."""
    scores = x @ weights["w"] + weights["b"]
    scores -= scores.max(1, keepdims=True)
    shares = np.exp(scores)
    shares /= shares.sum(1, keepdims=True)
    rows = np.arange(len(y))
    loss = -np.log(shares[rows, y]).mean()
    shares[rows, y] -= 1
    shares /= len(y)
    return float(loss), {"w": x.T @ shares, "b": shares.sum(0)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    options = parser.parse_args()

    x = read("images-idx3", 16).reshape(-1, 784).astype(np.float32) / 255
    y = read("labels-idx1", 8)
    with tributary.connect(checkpoint_every=100) as client:
        initial = {"w": np.zeros((784, 10)), "b": np.zeros(10)}
        weights = client.declare(initial, "sgd", lr=0.1)
        batches = len(x) // (BATCH * client.world_size)
        # A process that takes the place of a lost one begins at its step.
        while client.steps < options.epochs * batches:
            epoch, batch = divmod(client.steps, batches)
            order = np.random.default_rng(epoch).permutation(len(x))
            first = batch * BATCH * client.world_size + client.rank
            last = (batch + 1) * BATCH * client.world_size
            mine = order[first : last : client.world_size]
            loss, gradients = loss_and_gradients(weights, x[mine], y[mine])
            client.step(gradients, samples=len(mine), loss=loss)
            if batch == batches - 1:
                print(f"epoch {epoch + 1}: loss {loss:.4f}")


if __name__ == "__main__":
    main()
