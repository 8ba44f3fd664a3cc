# SPDX-License-Identifier: Apache-2.0
"""An MLP in JAX on Fashion-MNIST, through Tributary's servers. Beside it stands the
version with JAX's own collectives, mlp_distributed.py. Both take the same batches, so
their accuracies agree to rounding.

tributary run --servers 2 --workers 2 mlp.py --epochs 5

JAX computes the gradients and the servers apply the optimizer. The client reads the
gradients in JAX's memory (DLPack).
"""

import argparse
import gzip
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import tributary

DATA = Path(__file__).parent.parent / "data"
BATCH = 32  # rows of each rank
Weights = dict[str, jax.Array]


def fashion(part: str) -> tuple[np.ndarray, np.ndarray]:
    """Images [rows, 784] from 0 to 1, and classes [rows]."""
    parts = []
    for name, header_bytes in (("images-idx3", 16), ("labels-idx1", 8)):
        with gzip.open(DATA / f"fashion-{part}-{name}-ubyte.gz") as file:
            parts.append(np.frombuffer(file.read(), np.uint8, offset=header_bytes))
    return parts[0].reshape(-1, 784).astype(np.float32) / 255, parts[1]


def initial() -> dict[str, np.ndarray]:
    """He initialization (He et al. 2015)."""
    random = np.random.default_rng(1)
    weights: dict[str, np.ndarray] = {}
    for i, (inner, outer) in enumerate(((784, 256), (256, 10))):
        matrix = random.normal(0, (2 / inner) ** 0.5, (inner, outer))
        weights[f"w{i}"] = matrix.astype(np.float32)
        weights[f"b{i}"] = np.zeros(outer, np.float32)
    return weights


def scores(weights: Weights, x: jax.Array) -> jax.Array:
    """x: [rows, 784]; returns [rows, 10]."""
    hidden = jax.nn.relu(x @ weights["w0"] + weights["b0"])
    return hidden @ weights["w1"] + weights["b1"]


def mean_loss(weights: Weights, x: jax.Array, y: jax.Array) -> jax.Array:
    shares = jax.nn.log_softmax(scores(weights, x))
    return -shares[jnp.arange(len(y)), y].mean()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    options = parser.parse_args()

    x, y = fashion("train6000")
    loss_and_gradients = jax.jit(jax.value_and_grad(mean_loss))
    with tributary.connect(checkpoint_every=100) as client:
        world = client.world_size
        arrays = client.declare(initial(), "sgd", lr=0.02, momentum=0.9)
        # The servers write the next weights into the same arrays, so JAX gets copies.
        weights = jax.tree.map(lambda array: jnp.array(array, copy=True), arrays)
        batches = len(x) // (BATCH * world)
        # A process that takes the place of a lost one begins at its step.
        while client.steps < options.epochs * batches:
            epoch, batch = divmod(client.steps, batches)
            order = np.random.default_rng(epoch).permutation(len(x))
            mine = order[batch * BATCH * world : (batch + 1) * BATCH * world]
            mine = mine[client.rank :: world]
            loss, gradients = loss_and_gradients(weights, x[mine], y[mine])
            arrays = client.step(gradients, samples=len(mine), loss=float(loss))
            weights = jax.tree.map(lambda array: jnp.array(array, copy=True), arrays)
            if batch == batches - 1:
                print(f"epoch {epoch + 1}: loss {loss:.4f}")
        images, labels = fashion("t10k1000")
        correct = (np.asarray(scores(weights, images)).argmax(1) == labels).mean()
        print(f"accuracy {correct:.4f}")


if __name__ == "__main__":
    main()
