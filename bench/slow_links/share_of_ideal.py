#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how much of their links' rate a job's servers and workers use.

usage: bench/slow_links/share_of_ideal.py [--bins build/release/bin[,OTHER]]
           [--rates 200mbit,1gbit] [--sizes 1,2,4,8] [--steps 30] [--rounds 5]
           [--batch 16] [--set KEY=VALUE]...

Trains bench/jobs/mlp1024.yaml (B = 7.5 MB of weights) with W workers and as many
servers, each on a simulated host of its own (needs root). The ideal step takes as
long as a link needs for B bytes: workers send and receive at the same time, and
computing is free. So the batch of all workers together, --batch, is small, because
all hosts share the machine's cores. --set changes the job, for example
strategy.parameter_server.bucket_bytes=256KiB. Prints a table for
docs/benchmarks.md: medians of milliseconds a step (without the first 5), and the
ideal's share of them. With two directories of programs, rounds of both are
interleaved, and the last column compares them.
"""

import argparse
import json
import os
import statistics
import tempfile

import shaped_job

WARM_UP = 5
BYTES = 4 * (784 * 1024 + 1024 + 1024 * 1024 + 1024 + 1024 * 10 + 10)
JOB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../jobs/mlp1024.yaml")


def bytes_per_second(rate):
    units = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
    return float(rate[:-4]) * units[rate[-4:]] / 8


def milliseconds(directory, size, steps, batch, settings):
    """The mean of a run's steps after the warm-up."""
    with tempfile.TemporaryDirectory() as run:
        shaped_job.train(directory, JOB, run, size, size,
                         [f"training.steps={steps + WARM_UP}",
                          f"data.batch_size={batch // size}", *settings])
        with open(os.path.join(run, "metrics.jsonl")) as file:
            seconds = [json.loads(line)["step_seconds"] for line in file]
    return 1e3 * statistics.mean(seconds[WARM_UP:])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bins", default="build/release/bin")
    parser.add_argument("--rates", default="200mbit,1gbit")
    parser.add_argument("--sizes", default="1,2,4,8")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--set", action="append", default=[], dest="settings")
    options = parser.parse_args()
    bins = options.bins.split(",")
    print("| Mbit/s | W = S | ideal ms |" + " ms | share |" * len(bins) +
          (" last / first |" if len(bins) > 1 else ""))
    print("| --- " * (3 + 2 * len(bins) + (len(bins) > 1)) + "|")
    for rate in options.rates.split(","):
        ideal = 1e3 * BYTES / bytes_per_second(rate)
        for size in map(int, options.sizes.split(",")):
            times = {directory: [] for directory in bins}
            with shaped_job.hosts(2 * size, rate):
                for _ in range(options.rounds):
                    for directory in bins:
                        times[directory].append(milliseconds(
                            directory, size, options.steps, options.batch,
                            options.settings))
            row = f"| {8e-6 * bytes_per_second(rate):.0f} | {size} | {ideal:.1f} |"
            for directory in bins:
                median = statistics.median(times[directory])
                row += f" {median:.1f} | {ideal / median:.2f} |"
            if len(bins) > 1:
                ratios = [new / old for old, new in zip(times[bins[0]], times[bins[-1]])]
                row += (f" {statistics.median(ratios):.2f} "
                        f"({min(ratios):.2f} to {max(ratios):.2f}) |")
            print(row, flush=True)


if __name__ == "__main__":
    main()
