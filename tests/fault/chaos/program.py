# SPDX-License-Identifier: Apache-2.0
"""The PyTorch program of a trial, in the way of examples/pytorch.

tributary run --servers 2 --workers 2 program.py adam 40
"""

import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

import tributary.torch as tributary
from jobs import ACCUMULATE, BATCH, ROWS

OPTIMIZERS = {
    "sgd": {"lr": 0.05, "momentum": 0.9},
    "adam": {"lr": 0.003},
}


def data(rows: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randn(rows, 16, generator=torch.Generator().manual_seed(seed))
    return x, torch.tanh(x[:, :4].sum(dim=1, keepdim=True))


def main() -> None:
    kind, epochs = sys.argv[1], int(sys.argv[2])
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Linear(16, 96),
        torch.nn.Tanh(),
        torch.nn.Dropout(0.1),
        torch.nn.Linear(96, 1),
    )
    rows = TensorDataset(*data(ROWS, 1))
    test = data(200, 2)
    loss_of = torch.nn.functional.mse_loss
    with tributary.connect() as cluster:
        loader = DataLoader(rows, batch_size=BATCH, sampler=cluster.sampler(rows))
        steps = -(-len(loader) // ACCUMULATE)
        settings = {**OPTIMIZERS[kind], "steps_per_epoch": steps}
        optimizer = cluster.optimizer(model, kind, **settings)

        def report(_: int) -> None:
            model.eval()
            with torch.no_grad():
                loss = float(loss_of(model(test[0]), test[1]))
            model.train()
            cluster.evaluated(loss_sum=200 * loss, correct=0, samples=200)

        loop = cluster.resume(
            loader, epochs, accumulate=ACCUMULATE, on_epoch_end=report
        )
        for _, (x, y) in loop:
            optimizer.zero_grad()
            loss = loss_of(model(x), y)
            (loss / cluster.micro_batches).backward()
            optimizer.step(loss=loss)


if __name__ == "__main__":
    main()
