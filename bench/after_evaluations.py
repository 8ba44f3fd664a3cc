#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures whether a job becomes slower with the number of its evaluations.

usage: bench/after_evaluations.py [--bin build/release/bin] [--evaluations 20000]
                                  [--rounds 5] [--seconds 10]

Trains a small job with one server and one worker that evaluates after every step.
When it has --evaluations evaluations behind it, an equal job is started beside it, so
that both have the same load. Counts the steps of both in --rounds rounds of --seconds
seconds each, and prints the ratio of each round (the old job's steps over the new
job's) and their median.
"""

import argparse
import os
import statistics
import subprocess
import tempfile
import time

JOB = """name: after-evaluations
model: {sequential: [{linear: {in: 16, out: 1}}]}
data:
  train: {synthetic: {kind: mlp_teacher, rows: 1000}}
  test: {synthetic: {kind: mlp_teacher, rows: 20, first_row: 1000000}}
  batch_size: 10
training: {steps: 100000000, loss: mse, optimizer: {sgd: {learning_rate: 0.001}}}
evaluation: {every_steps: 1}
cluster: {servers: 1, workers: 1}
checkpoint: {at_end: false}
"""
SETTLE = 500  # steps of the new job before the first round


def evaluations(run):
    try:
        with open(os.path.join(run, "evaluations.jsonl"), "rb") as file:
            return file.read().count(b"\n")
    except FileNotFoundError:
        return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--evaluations", type=int, default=20000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    program = os.path.abspath(os.path.join(options.bin, "tributary"))
    jobs = []

    def start(name):
        command = [program, "train", "job.yaml", "--run-dir", name]
        jobs.append(subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL))
        return os.path.join(folder, name)

    def await_evaluations(run, count):
        while evaluations(run) < count:
            if any(job.poll() is not None for job in jobs):
                raise SystemExit("a job has ended")
            time.sleep(0.2)

    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "job.yaml"), "w", encoding="utf-8") as file:
            file.write(JOB)
        try:
            begin = time.monotonic()
            old = start("old")
            await_evaluations(old, options.evaluations)
            alone = options.evaluations / (time.monotonic() - begin)
            new = start("new")
            await_evaluations(new, SETTLE)
            ratios = []
            for number in range(options.rounds):
                before = evaluations(old), evaluations(new)
                time.sleep(options.seconds)
                steps = [evaluations(old) - before[0], evaluations(new) - before[1]]
                ratios.append(steps[0] / steps[1])
                print(f"round {number + 1}: {steps[0]} and {steps[1]} steps, "
                      f"ratio {ratios[-1]:.3f}")
        finally:
            for job in jobs:
                job.terminate()
            for job in jobs:
                job.wait()
    print(f"{alone:.0f} steps/s alone; after {options.evaluations} evaluations "
          f"{statistics.median(ratios):.3f} of the steps of a new job (median)")


if __name__ == "__main__":
    main()
