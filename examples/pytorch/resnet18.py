# SPDX-License-Identifier: Apache-2.0
"""torchvision's ResNet-18 on Fashion-MNIST, through Tributary's servers. Beside it
stands the version for DistributedDataParallel, resnet18_ddp.py.

tributary run --servers 2 --workers 2 resnet18.py --epochs 3

The running averages of the batch norms are buffers. Tributary averages them over the
ranks after each step; DDP takes those of rank 0 before each forward pass.
"""

import argparse

import torch
from fashion import evaluate, fashion
from torch.utils.data import DataLoader
from torchvision.models import resnet18

import tributary.torch as tributary


def build() -> torch.nn.Module:
    """ResNet-18 for images [batch, 1, 28, 28] and ten classes."""
    model = resnet18(weights=None, num_classes=10)
    model.conv1 = torch.nn.Conv2d(1, 64, 7, stride=2, padding=3, bias=False)
    return model


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=32, help="rows of each rank")
    parser.add_argument("--lr", type=float, default=0.02)
    options = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = build()
    data, test = (fashion(part, (1, 28, 28)) for part in ("train6000", "t10k1000"))
    with tributary.connect(checkpoint_every=100) as cluster:
        sampler = cluster.sampler(data)
        loader = DataLoader(data, batch_size=options.batch, sampler=sampler)
        optimizer = cluster.optimizer(
            model,
            "sgd",
            lr=options.lr,
            momentum=0.9,
            weight_decay=1e-4,
            steps_per_epoch=len(loader),
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
