# SPDX-License-Identifier: Apache-2.0
"""An MLP on Fashion-MNIST, with DistributedDataParallel: the version beside
mlp.py.

torchrun --nproc-per-node 2 mlp_ddp.py --epochs 5
"""

import argparse

import torch
from fashion import evaluate, fashion
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


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
    torch.distributed.init_process_group("gloo")
    replica = DistributedDataParallel(model, gradient_as_bucket_view=True)
    sampler = DistributedSampler(data, seed=1)
    loader = DataLoader(data, batch_size=32, sampler=sampler)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)

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
