# SPDX-License-Identifier: Apache-2.0
"""An MLP on Fashion-MNIST, through Tributary's servers. Beside it stands the
version for DistributedDataParallel, mlp_ddp.py.

tributary run --servers 2 --workers 2 mlp.py --epochs 5
"""

import argparse

import torch
from fashion import evaluate, fashion
from torch.utils.data import DataLoader

import tributary.torch as tributary


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    options = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)
    )
    data, test = fashion("train6000"), fashion("t10k1000")
    with tributary.connect(checkpoint_every=100) as cluster:
        sampler = cluster.sampler(data)
        loader = DataLoader(data, batch_size=32, sampler=sampler)
        optimizer = cluster.optimizer(
            model, "adamw", lr=1e-3, weight_decay=0.01, steps_per_epoch=len(loader)
        )

        # `tributary run` prints the sum of all ranks' parts.
        def report(_: int) -> None:
            loss, correct, samples = evaluate(
                model, test, cluster.rank, cluster.world_size
            )
            cluster.evaluated(loss_sum=loss, correct=correct, samples=samples)

        for _, (x, y) in cluster.resume(loader, options.epochs, on_epoch_end=report):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step(loss=loss)


if __name__ == "__main__":
    main()
