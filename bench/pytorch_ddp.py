#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""One rank of the comparison program: an MLP, or torchvision's ResNet-18, on
Fashion-MNIST under PyTorch DDP, gloo.

Prints milliseconds per step as "ms_per_step=... loss=...". World size 1 trains
without DDP. One thread a rank. PyTorch runs at its best: gradients set to None
instead of zero (4 % of a step), gradients that are views of DDP's buckets and a
static graph (3 to 15 %), updates over all tensors at once, batches that are views.
With --update tributary the same loop trains through Tributary, as a program
of `tributary run`. Each treats batch norms' averages by its default: DDP broadcasts
rank 0's before each step, and Tributary averages those of all ranks after it.
"""

import argparse
import gzip
import os
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy
import torch
import torch.distributed
from torch import nn


def read_idx(path):
    """Reads IDX: two zero bytes, type, rank, big-endian extents, then the bytes."""
    with gzip.open(path) as file:
        raw = file.read()
    rank = raw[3]
    shape = [int.from_bytes(raw[4 + 4 * i:8 + 4 * i], "big")
             for i in range(rank)]
    return numpy.frombuffer(raw, numpy.uint8, offset=4 + 4 * rank).reshape(shape)


def build(widths):
    layers = []
    for i, (inner, outer) in enumerate(zip(widths, widths[1:])):
        layers += ([nn.ReLU()] if i else []) + [nn.Linear(inner, outer)]
    return nn.Sequential(*layers)


def resnet18():
    """For images [batch, 1, 28, 28]. Names and layers are torchvision's."""
    from torchvision.models import resnet18
    model = resnet18(num_classes=10)
    model.conv1 = nn.Conv2d(1, 64, 7, stride=2, padding=3, bias=False)
    return model


def optimizer_of_tributary(model, options):
    import tributary.torch
    cluster = tributary.torch.connect()
    optimizer = cluster.optimizer(
        model, options.optimizer, lr=0.01 if options.optimizer == "sgd" else 0.001)
    options.rank, options.world = cluster.rank, cluster.world_size
    return cluster, optimizer


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--model", choices=("mlp", "resnet18"), default="mlp")
    parser.add_argument("--widths", default="784,1024,1024,10", help="of the MLP")
    parser.add_argument("--batch", type=int, default=128, help="per rank")
    parser.add_argument("--optimizer", choices=("sgd", "adam"), default="sgd")
    parser.add_argument("--update", choices=("foreach", "fused", "tributary"),
                        default="foreach",
                        help="fused needs PyTorch 2.4 or later on a CPU")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--warmup", type=int, default=20)
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--world", type=int, default=1)
    parser.add_argument("--port", type=int, default=29500)
    parser.add_argument("--save", help="a file for rank 0's weights at the end")
    options = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(1)
    images = read_idx(options.data + "/train-images-idx3-ubyte.gz")
    labels = read_idx(options.data + "/train-labels-idx1-ubyte.gz")
    images = torch.from_numpy(images.reshape(len(images), -1) / 255.0).float()
    labels = torch.from_numpy(labels.astype(numpy.int64))

    if options.model == "resnet18":
        model = resnet18()
        images = images.view(-1, 1, 28, 28)
    else:
        model = build([int(w) for w in options.widths.split(",")])
    cluster = None
    if options.update == "tributary":
        cluster, optimizer = optimizer_of_tributary(model, options)
    elif options.world > 1:
        torch.distributed.init_process_group(
            "gloo", init_method=f"tcp://127.0.0.1:{options.port}",
            rank=options.rank, world_size=options.world)
        model = nn.parallel.DistributedDataParallel(
            model, gradient_as_bucket_view=True, static_graph=True)
    if options.update != "tributary":
        update = {options.update: True}
        optimizer = (torch.optim.SGD(model.parameters(), lr=0.01, **update)
                     if options.optimizer == "sgd"
                     else torch.optim.Adam(model.parameters(), **update))
    loss_function = nn.CrossEntropyLoss()

    # Sharded as by DistributedSampler, in the file's order.
    images = images[options.rank::options.world].contiguous()
    labels = labels[options.rank::options.world].contiguous()
    batches_in_epoch = len(images) // options.batch
    for step in range(options.warmup + options.steps):
        if step == options.warmup:
            start = time.perf_counter()
        first = step % batches_in_epoch * options.batch
        rows = slice(first, first + options.batch)
        optimizer.zero_grad(set_to_none=True)
        loss = loss_function(model(images[rows]), labels[rows])
        loss.backward()
        optimizer.step()
    seconds = time.perf_counter() - start
    if options.rank == 0:
        print(f"ms_per_step={1e3 * seconds / options.steps:.3f} "
              f"loss={loss.item():.4f}", flush=True)
        if options.save:
            plain = getattr(model, "module", model)  # DDP's
            torch.save(plain.state_dict(), options.save)
    if cluster is not None:
        cluster.finish()


if __name__ == "__main__":
    main()
