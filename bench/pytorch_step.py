#!/usr/bin/env python3
"""PyTorch's side of step_bench.cc: the same step, on one thread."""

import argparse
import time

import torch

BATCHES = 16


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="784,1024,1024,10")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--optimizer", choices=["sgd", "adam"], default="sgd")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--warmup", type=int, default=20)
    flags = parser.parse_args()
    sizes = [int(size) for size in flags.sizes.split(",")]

    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    torch.manual_seed(1)
    layers = []
    for i, (width_in, width_out) in enumerate(zip(sizes, sizes[1:])):
        if i > 0:
            layers.append(torch.nn.ReLU(inplace=True))
        layers.append(torch.nn.Linear(width_in, width_out))
    model = torch.nn.Sequential(*layers)
    # PyTorch at its fastest: foreach updates, gradients set to None.
    if flags.optimizer == "adam":
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, foreach=True)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, foreach=True)
    loss_of = torch.nn.CrossEntropyLoss()
    features = [torch.randn(flags.batch, sizes[0]) for _ in range(BATCHES)]
    labels = [torch.randint(sizes[-1], (flags.batch,)) for _ in range(BATCHES)]

    total, parts = [], ([], [], [])
    for step in range(flags.warmup + flags.steps):
        x, y = features[step % BATCHES], labels[step % BATCHES]
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model(x), y)
        value = loss.item()
        forward = time.perf_counter()
        loss.backward()
        backward = time.perf_counter()
        optimizer.step()
        end = time.perf_counter()
        if step < flags.warmup:
            continue
        total.append(end - begin)
        for part, seconds in zip(parts, (forward - begin, backward - forward,
                                         end - backward)):
            part.append(seconds)

    def median_ms(seconds):
        return 1e3 * sorted(seconds)[len(seconds) // 2]

    print(f"{median_ms(total):.3f} ms a step (median of {flags.steps}): "
          f"forward {median_ms(parts[0]):.3f}, "
          f"backward {median_ms(parts[1]):.3f}, "
          f"update {median_ms(parts[2]):.3f}; last loss {value:.3f}")


if __name__ == "__main__":
    main()
