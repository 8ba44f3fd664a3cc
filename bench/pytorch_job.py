#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a job's CNN or GPT in PyTorch, as the job file says, for comparison.

usage: bench/pytorch_job.py JOB.yaml WEIGHTS.safetensors [--steps N]
           [--warmup W] [--evaluate] [--compare METRICS.jsonl]

JOB.yaml is resolved (`tributary train --dry-run`), so that model, batch, order
of the samples, optimizer, schedule and clipping are read and not written twice;
WEIGHTS are the initial ones. Prints "samples_per_second=... training_seconds=...
parameters=... loss=..." and with --evaluate the test set's metrics. --compare ends
with 1 where the loss of a step is further than 1e-4 from Tributary's.

One thread; Debian's python3-torch on OpenBLAS. PyTorch runs at its best: see
bench/pytorch_models.py; the data lie in memory in the order of the epoch, so
that batches are views and shuffling is not timed.
"""

import argparse
import gzip
import json
import math
import time

import pytorch_models  # first: sets the threads
import numpy
import torch
import yaml
from torch.nn import functional

from read_weights import read_idx, read_safetensors

TOLERANCE = 1e-4  # of a step's loss, because float32 sums have another order
BITS = (1 << 64) - 1


def mix(x):
    """SplitMix64's mixer, over an array or a number."""
    x = numpy.atleast_1d(numpy.asarray(x, numpy.uint64))
    x = (x ^ (x >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return x ^ (x >> numpy.uint64(31))


def shuffled(rows, seed, epoch):
    """The order of an epoch, by the rule of worker/train/data/batches/sampler.h."""
    golden = 0x9E3779B97F4A7C15
    key = int(mix((seed ^ 0x73687566666C6531) + golden & BITS)[0])
    key = int(mix(key + epoch * golden & BITS)[0])
    i = numpy.arange(rows - 1, 0, -1, dtype=numpy.uint64)
    draws = mix(numpy.uint64(key) + i * numpy.uint64(0xD1B54A32D192ED03))
    # The upper 64 bits of draw * (i + 1), computed from halves.
    half, low = numpy.uint64(32), numpy.uint64(0xFFFFFFFF)
    j = ((draws >> half) * (i + 1) + ((draws & low) * (i + 1) >> half)) >> half
    order = list(range(rows))
    for a, b in zip(i.tolist(), j.tolist()):
        order[a], order[b] = order[b], order[a]
    return torch.tensor(order)


def chosen(values, source):
    """The rows that the source selects: `rows` rows from first_row on."""
    first, rows = source["first_row"], source["rows"]
    return values[first:first + rows if rows else None]


class Images:
    def __init__(self, source):
        source = source["idx"]
        self.images = torch.from_numpy(
            chosen(read_idx(source["images"]), source).copy())
        self.labels = torch.from_numpy(
            chosen(read_idx(source["labels"]), source).astype(numpy.int64))
        self.rows = len(self.labels)

    def take(self, rows):
        """Features and labels of these rows, ready for the model."""
        images = self.images[rows].unsqueeze(1).float().div_(255)
        return (images.contiguous(memory_format=torch.channels_last),
                self.labels[rows])


class Text:
    def __init__(self, source):
        source = source["text"]
        with gzip.open(source["path"], "rt", encoding="utf-8", newline="") as file:
            text = file.read()
        ids = {token: i for i, token in enumerate(sorted(set(text)))}
        part = text[math.floor(source["begin"] * len(text)):
                    math.floor(source["end"] * len(text))]
        tokens = torch.tensor([ids[token] for token in part])
        self.windows = chosen(
            tokens.unfold(0, source["length"] + 1, source["stride"]), source)
        self.rows = len(self.windows)

    def take(self, rows):
        windows = self.windows[rows]
        return windows[:, :-1].contiguous(), windows[:, 1:].contiguous()


def open_data(source):
    return Images(source) if "idx" in source else Text(source)


def batches(data, job, steps):
    """(features, labels) of each step, as views of an epoch's samples."""
    size = job["data"].get("batch_size") or job["data"]["global_batch_size"]
    per_epoch = -(-data.rows // size)
    for epoch in range(-(-steps // per_epoch)):
        order = shuffled(data.rows, job["data"]["shuffle"]["seed"], epoch)
        features, labels = data.take(order[:(steps - epoch * per_epoch) * size])
        for first in range(0, len(labels), size):
            yield features[first:first + size], labels[first:first + size]


def build(job, weights):
    layers = job["model"]["sequential"]
    if "embedding" in layers[0]:
        embedding = layers[0]["embedding"]
        attention = next(part["attention"] for part in layers[2]["residual"]["body"]
                         if "attention" in part)
        model = pytorch_models.Gpt(
            sum("residual" in layer for layer in layers) // 2, embedding["dim"],
            attention["heads"], layers[1]["position_embedding"]["length"],
            embedding["tokens"])
    else:
        model = pytorch_models.cnn()
    model.load_state_dict({name: torch.from_numpy(values.copy()) for name, values
                           in read_safetensors(weights).items()})
    return model


def optimizer_of(job, model):
    (kind, spec), = job["training"]["optimizer"].items()
    decay, spared = float(spec["weight_decay"]), []
    decayed = list(model.parameters())
    if spec["decay_on"] == "matrices":
        spared = [p for p in decayed if p.dim() < 2]
        decayed = [p for p in decayed if p.dim() >= 2]
    groups = [{"params": decayed, "weight_decay": decay}]
    if spared:
        groups.append({"params": spared, "weight_decay": 0.0})
    kinds = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
    return kinds[kind](groups, lr=float(spec["learning_rate"]),
                       betas=(float(spec["beta1"]), float(spec["beta2"])),
                       eps=float(spec["epsilon"]), foreach=True)


def schedule_of(job, rate):
    """Returns a function from step (from 0) to learning rate (docs/job-file.md)."""
    (kind, spec), = job["training"]["learning_rate_schedule"].items()
    if kind == "constant":
        return lambda step: rate
    if kind != "warmup_cosine":
        raise SystemExit(f"wanted constant or warmup_cosine, got {kind}")
    warmup, total, low = spec["warmup"], spec["total"], float(spec["eta_min"])

    def at(step):
        if step < warmup:
            return rate * (step + 1) / warmup
        progress = min(1, (step - warmup) / (total - warmup))
        return low + (rate - low) * (1 + math.cos(math.pi * progress)) / 2
    return at


def clip(parameters, bound):
    """clip_grad_norm_ over all tensors at once; PyTorch 1.13 does one at a time."""
    gradients = [p.grad for p in parameters]
    norm = torch.stack(torch._foreach_norm(gradients)).norm()
    torch._foreach_mul_(gradients, min(1.0, bound / (norm.item() + 1e-6)))


def train(job, model, data, steps, warmup):
    """Losses of all steps; seconds and samples of the steps after the warm-up."""
    parameters = list(model.parameters())
    optimizer = optimizer_of(job, model)
    schedule = schedule_of(job, optimizer.defaults["lr"])
    bound = job["training"]["clip_norm"]
    losses, seconds, samples = [], 0.0, 0
    for step, (features, labels) in enumerate(batches(data, job, steps)):
        begin = time.perf_counter()
        for group in optimizer.param_groups:
            group["lr"] = schedule(step)
        optimizer.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(model(features).flatten(0, -2),
                                        labels.flatten())
        loss.backward()
        if bound > 0:
            clip(parameters, bound)
        optimizer.step()
        losses.append(loss.item())
        if step >= warmup:
            seconds += time.perf_counter() - begin
            samples += len(labels)
    return losses, seconds, samples


def evaluate(model, data):
    """Mean accuracy and loss over all positions."""
    right, loss, count = 0, 0.0, 0
    with torch.no_grad():
        for rows in torch.arange(data.rows).split(250):
            features, labels = data.take(rows)
            logits = model(features).flatten(0, -2)
            labels = labels.flatten()
            right += int((logits.argmax(1) == labels).sum())
            loss += functional.cross_entropy(logits, labels, reduction="sum").item()
            count += len(labels)
    return right / count, loss / count


def compare(losses, path):
    """Whether the first steps' losses agree with Tributary's."""
    with open(path, encoding="utf-8") as file:
        theirs = [json.loads(line)["loss"] for line in file]
    distance = max(abs(a - b) for a, b in zip(losses, theirs, strict=True))
    print(f"largest distance of {len(losses)} losses from Tributary's "
          f"{distance:.1e}, tolerance {TOLERANCE:.0e}")
    return distance <= TOLERANCE


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("job")
    parser.add_argument("weights")
    parser.add_argument("--steps", type=int, default=0, help="0: the job's")
    parser.add_argument("--warmup", type=int, default=0)
    parser.add_argument("--evaluate", action="store_true")
    parser.add_argument("--compare", metavar="METRICS")
    options = parser.parse_args()

    torch.set_num_threads(1)
    with open(options.job, encoding="utf-8") as file:
        job = yaml.safe_load(file)
    data = open_data(job["data"]["train"])
    size = job["data"].get("batch_size") or job["data"]["global_batch_size"]
    steps = (options.steps or job["training"].get("steps") or
             job["training"]["epochs"] * -(-data.rows // size))
    model = build(job, options.weights)
    losses, seconds, samples = train(job, model, data, steps, options.warmup)
    told = {"samples_per_second": f"{samples / seconds:.1f}",
            "training_seconds": f"{seconds:.1f}",
            "parameters": sum(p.numel() for p in model.parameters()),
            "loss": f"{losses[-1]:.5f}"}
    if options.evaluate:
        accuracy, loss = evaluate(model, open_data(job["data"]["test"]))
        told.update(test_accuracy=f"{accuracy:.4f}", test_loss=f"{loss:.4f}")
    print(" ".join(f"{key}={value}" for key, value in told.items()))
    return 0 if not options.compare or compare(losses, options.compare) else 1


if __name__ == "__main__":
    raise SystemExit(main())
