# SPDX-License-Identifier: Apache-2.0
"""torchvision's ResNet-18 on Fashion-MNIST, with DistributedDataParallel: the version
beside resnet18.py.

torchrun --nproc-per-node 2 resnet18_ddp.py --epochs 3

The running averages of the batch norms are buffers. DDP takes those of rank 0 before
each forward pass; Tributary averages them over the ranks after each step.
"""

import argparse

import torch
from fashion import evaluate, fashion
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler
from torchvision.models import resnet18


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
    torch.distributed.init_process_group("gloo")
    replica = DistributedDataParallel(model, gradient_as_bucket_view=True)
    sampler = DistributedSampler(data, seed=1)
    loader = DataLoader(data, batch_size=options.batch, sampler=sampler)
    optimizer = torch.optim.SGD(
        model.parameters(), lr=options.lr, momentum=0.9, weight_decay=1e-4
    )

    for epoch in range(options.epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(replica(x), y)
            loss.backward()
            optimizer.step()
        if torch.distributed.get_rank() == 0:
            _, correct, samples = evaluate(model, test)
            print(f"epoch {epoch + 1}: accuracy {correct / samples:.4f}")

    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
