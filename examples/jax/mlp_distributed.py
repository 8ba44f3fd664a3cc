# SPDX-License-Identifier: Apache-2.0
"""An MLP in JAX on Fashion-MNIST, with JAX's own collectives between processes: the
version beside mlp.py.

for rank in 0 1; do python mlp_distributed.py --rank $rank & done; wait

The rows of a batch are divided among the processes, and the weights are on all of them.
The compiler therefore inserts the sum of the gradients, which gloo computes on CPUs.
"""

import argparse
import gzip
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

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


@jax.jit
def update(
    weights: Weights, momenta: Weights, x: jax.Array, y: jax.Array
) -> tuple[jax.Array, Weights, Weights]:
    """A step of SGD with momentum: the loss, the weights and the momenta."""
    loss, gradients = jax.value_and_grad(mean_loss)(weights, x, y)
    momenta = jax.tree.map(lambda m, g: 0.9 * m + g, momenta, gradients)
    return loss, jax.tree.map(lambda w, m: w - 0.02 * m, weights, momenta), momenta


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--world", type=int, default=2)
    parser.add_argument("--coordinator", default="127.0.0.1:29400")
    options = parser.parse_args()

    x, y = fashion("train6000")
    world = options.world
    jax.distributed.initialize(options.coordinator, world, options.rank)
    mesh = Mesh(jax.devices(), ("rows",))
    by_rows, everywhere = NamedSharding(mesh, P("rows")), NamedSharding(mesh, P())
    weights = {
        name: jax.make_array_from_process_local_data(everywhere, value)
        for name, value in initial().items()
    }
    momenta = jax.tree.map(jnp.zeros_like, weights)
    batches = len(x) // (BATCH * world)
    for step in range(options.epochs * batches):
        epoch, batch = divmod(step, batches)
        order = np.random.default_rng(epoch).permutation(len(x))
        mine = order[batch * BATCH * world : (batch + 1) * BATCH * world]
        mine = mine[options.rank :: world]
        loss, weights, momenta = update(
            weights,
            momenta,
            jax.make_array_from_process_local_data(by_rows, x[mine]),
            jax.make_array_from_process_local_data(by_rows, y[mine]),
        )
        if batch == batches - 1 and options.rank == 0:
            print(f"epoch {epoch + 1}: loss {loss:.4f}")
    images, labels = fashion("t10k1000")
    local = jax.tree.map(np.asarray, weights)
    correct = (np.asarray(scores(local, images)).argmax(1) == labels).mean()
    if options.rank == 0:
        print(f"accuracy {correct:.4f}")


if __name__ == "__main__":
    main()
