# SPDX-License-Identifier: Apache-2.0
"""Trains a golden case through the servers; test_golden.py starts it.

Rank 0 writes the weights that it has at the end to --output.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import torch

import tributary.torch as tributary

sys.path.append(str(Path(__file__).parents[1]))

import golden  # noqa: E402
from golden_task import batches_of, model_of  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--group", required=True)
    parser.add_argument("--case", required=True)
    parser.add_argument("--kind", required=True)
    parser.add_argument("--keywords", type=json.loads, required=True)
    parser.add_argument("--unweighted", action="store_true")
    parser.add_argument("--output", required=True)
    options = parser.parse_args()

    torch.set_num_threads(1)
    cases = golden.read(options.group)
    case = cases[options.case]
    inputs = cases.get("shared", case)
    model = model_of(options.group, inputs)
    rates = case.tensors.get("lr")  # of each step, where it changes
    with tributary.connect() as cluster:
        if cluster.rank > 0:  # rank 0's weights must count
            for parameter in model.parameters():
                torch.nn.init.normal_(parameter)
        optimizer = cluster.optimizer(model, options.kind, **options.keywords)
        batches = batches_of(options.group, inputs, cluster.rank, cluster.world_size)
        accumulate = case.attributes.get("accumulate", 1)
        total = 0.0
        for _, (x, labels) in cluster.resume(batches, accumulate=accumulate):
            optimizer.zero_grad()
            if rates is not None:
                optimizer.param_groups[0]["lr"] = float(rates[cluster.steps])
            cluster.samples = 1 if options.unweighted else len(x)
            loss = torch.nn.functional.cross_entropy(model(x), labels)
            part = loss / cluster.micro_batches
            part.backward()
            total += part.item()
            optimizer.step(loss=total)
            if not cluster.accumulating:
                total = 0.0
    if cluster.rank == 0:
        torch.save(model.state_dict(), options.output)


if __name__ == "__main__":
    main()
