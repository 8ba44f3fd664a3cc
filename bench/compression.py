#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the accuracy or loss that fewer bytes or late gradients cost.

usage: bench/compression.py [--bin build/release/bin] [--seeds 5] [--only REGEX]
           [--job examples/fashion-mnist.yaml] [--set training.epochs=2]...

Trains a job with 2 workers and 2 servers in every wire format, the compressing ones
with and without error feedback, and with a delay of one step, with the seeds 1, 2, ... in turn, and prints a
table for docs/benchmarks.md: bytes that each worker sends and receives in a step,
the test accuracy (or loss, where the job has no accuracy), and its distance from
float32 with the same seed. --only selects rows such as "top_k, no feedback";
float32 is always one of them. --set changes the job.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

# Fields of strategy.parameter_server.
ROWS = {"float32": "wire: float32",
        "delayed": "sync: {bsp: {delay: 1}}",
        "bfloat16": "wire: bfloat16",
        "float16": "wire: float16",
        "bfloat16 both ways": "wire: bfloat16, weights_wire: bfloat16",
        "float16, weights bfloat16": "wire: float16, weights_wire: bfloat16"}
for compressing in ("int8", "top_k", "one_bit"):
    ROWS[compressing] = f"wire: {compressing}, error_feedback: true"
    ROWS[f"{compressing}, no feedback"] = f"wire: {compressing}, error_feedback: false"
WORKERS = 2


def train(options, folder, row, seed):
    run = os.path.join(folder, re.sub(r"\W+", "-", f"{row}-{seed}"))
    settings = [*options.settings, f"seed={seed}", f"cluster.workers={WORKERS}",
                "cluster.servers=2", f"strategy={{parameter_server: {{{ROWS[row]}}}}}"]
    command = [os.path.join(options.bin, "tributary"), "train", options.job,
               "--run-dir", run]
    for setting in settings:
        command += ["--set", setting]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr or done.stdout)
    with open(os.path.join(run, "summary.json")) as file:
        return json.load(file)


def result(run):
    test = run["test"]
    return 100 * test["accuracy"] if "accuracy" in test else test["loss"]


def spread(numbers, form):
    return (f"{statistics.mean(numbers):{form}} ({min(numbers):{form}} to "
            f"{max(numbers):{form}})")


def line(row, runs, reference):
    steps = runs[0]["steps"] * WORKERS
    sent = runs[0]["bytes"]["sent_by_workers"] / steps
    received = runs[0]["bytes"]["received_by_workers"] / steps
    results = [result(run) for run in runs]
    apart = [mine - result(other) for mine, other in zip(results, reference)]
    digits = ".2f" if "accuracy" in runs[0]["test"] else ".4f"
    return (f"| {row} | {sent / 1000:.1f} | {received / 1000:.1f} | "
            f"{spread(results, digits)} | {spread(apart, '+' + digits)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--job", default="examples/fashion-mnist.yaml")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    options = parser.parse_args()
    rows = [row for row in ROWS if row == "float32" or re.search(options.only, row)]
    runs = {row: [] for row in rows}
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(1, options.seeds + 1):
            for row in rows:
                runs[row].append(train(options, folder, row, seed))
    accuracy = "accuracy" in runs["float32"][0]["test"]
    print(f"| format | kB sent | kB received | test "
          f"{'accuracy, %' if accuracy else 'loss'} | beside float32"
          f"{', points' if accuracy else ''} |")
    print("| --- | --- | --- | --- | --- |")
    for row in rows:
        print(line(row, runs[row], runs["float32"]))


if __name__ == "__main__":
    main()
