#!/usr/bin/python3
"""What fewer bytes on the wire cost in accuracy.

usage: bench/compression.py [--bin build/release/bin] [--epochs 2] [--seeds 5]

Trains Fashion-MNIST with 2 workers and 2 servers in every wire format, with the
seeds 1, 2, ... in turn, and prints a table for docs/benchmarks.md: bytes that each
worker sends and receives in a step, the test accuracy, and its distance from
float32 with the same seed.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

# Of gradients and of weights.
FORMATS = [("float32", "float32"), ("bfloat16", "float32"), ("float16", "float32"),
           ("bfloat16", "bfloat16"), ("float16", "bfloat16")]
WORKERS = 2


def train(options, folder, wire, weights_wire, seed):
    run = os.path.join(folder, f"{wire}-{weights_wire}-{seed}")
    settings = {"training.epochs": options.epochs, "seed": seed,
                "cluster.workers": WORKERS,
                "strategy.parameter_server.wire": wire,
                "strategy.parameter_server.weights_wire": weights_wire}
    command = [os.path.join(options.bin, "tributary"), "train",
               "examples/fashion-mnist.yaml", "--run-dir", run]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr or done.stdout)
    with open(os.path.join(run, "summary.json")) as file:
        return json.load(file)


def row(formats, runs, reference):
    steps = runs[0]["steps"] * WORKERS
    sent = runs[0]["bytes"]["sent_by_workers"] / steps
    received = runs[0]["bytes"]["received_by_workers"] / steps
    accuracies = [100 * run["test"]["accuracy"] for run in runs]
    apart = [mine - 100 * other["test"]["accuracy"]
             for mine, other in zip(accuracies, reference)]
    return (f"| `{formats[0]}` | `{formats[1]}` | {sent / 1000:.0f} | {received / 1000:.0f} | "
            f"{statistics.mean(accuracies):.2f} ({min(accuracies):.2f} to "
            f"{max(accuracies):.2f}) | {statistics.mean(apart):+.2f} "
            f"({min(apart):+.2f} to {max(apart):+.2f}) |")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    runs = {formats: [] for formats in FORMATS}
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(1, options.seeds + 1):
            for formats in FORMATS:
                runs[formats].append(train(options, folder, *formats, seed))
    print("| `wire` | `weights_wire` | kB sent | kB received | test accuracy, % "
          "| beside float32, points |")
    print("| --- | --- | --- | --- | --- | --- |")
    for formats in FORMATS:
        print(row(formats, runs[formats], runs[FORMATS[0]]))


if __name__ == "__main__":
    main()
