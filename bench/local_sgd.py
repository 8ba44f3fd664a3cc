#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what local_sgd costs and saves, compared with bsp.

usage: bench/local_sgd.py [--bin build/release/bin] [--epochs 5]

Trains Fashion-MNIST with 2 workers and 2 servers by bsp and by local_sgd with
periods 1, 10 and 50, and prints a table for docs/benchmarks.md: bytes each worker
sends and receives for a sample, test accuracy, samples per second. Then trains
with plain SGD by bsp and by local_sgd with period 1 and plain averaging, which
are the same but for rounding, and prints the distance of their weights.
"""

import argparse
import json
import math
import os
import struct
import subprocess
import sys
import tempfile


def train(options, folder, name, *settings):
    run = os.path.join(folder, name)
    command = [os.path.join(options.bin, "tributary"), "train",
               "examples/fashion-mnist.yaml", "--run-dir", run,
               "--set", f"training.epochs={options.epochs}"]
    for setting in settings:
        command += ["--set", setting]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr or done.stdout)
    with open(os.path.join(run, "summary.json")) as file:
        return run, json.load(file)


def weights(run):
    with open(os.path.join(run, "weights.safetensors"), "rb") as file:
        raw = file.read()
    end = 8 + int.from_bytes(raw[:8], "little")
    return struct.unpack(f"<{(len(raw) - end) // 4}f", raw[end:])


def sync(value):
    return f"strategy.parameter_server.sync={value}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--epochs", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print("| sync | bytes a sample | test accuracy | samples/s |")
        print("| --- | --- | --- | --- |")
        for name, value in [("bsp", "bsp")] + [
                (f"local_sgd, period {h}", f"{{local_sgd: {{period: {h}}}}}")
                for h in (1, 10, 50)]:
            _, summary = train(options, folder, name, sync(value))
            moved = sum(summary["bytes"].values()) / summary["samples"]
            print(f"| {name} | {moved:.0f} | "
                  f"{summary['test']['accuracy']:.4f} | "
                  f"{summary['samples_per_second']:.0f} |", flush=True)

        sgd = "training.optimizer={sgd: {learning_rate: 0.1}}"
        plain = ("{local_sgd: {period: 1, outer: "
                 "{learning_rate: 1, momentum: 0}}}")
        a = weights(train(options, folder, "sgd", sgd, sync("bsp"))[0])
        b = weights(train(options, folder, "plain", sgd, sync(plain))[0])
        distance = math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b)))
        size = math.sqrt(sum(x * x for x in a))
        print(f"\nplain averaging, period 1, beside bsp with SGD after "
              f"{options.epochs} epochs: |a - b| / |a| = {distance / size:.2e}, "
              f"greatest difference {max(abs(x - y) for x, y in zip(a, b)):.2e}")


if __name__ == "__main__":
    main()
