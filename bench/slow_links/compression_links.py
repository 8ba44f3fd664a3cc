#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Steps per second over slow links in each wire format, and with a delay.

usage: bench/slow_links/compression_links.py [--bin build/release/bin] [--rate 200mbit]
                                  [--steps 40] [--rounds 5]

Trains bench/jobs/mlp1024.yaml (7.5 MB of weights) with 2 workers and 2 servers on
four simulated hosts (bench/slow_links/shaped_hosts.sh; needs root), in rounds of float32 and
of bfloat16 for gradients and for both directions, each without and with late
gradients. Prints a table for
docs/benchmarks.md: medians, and the median of the ratios to float32 of the same
round.
"""

import argparse
import os
import statistics
import tempfile

import shaped_job

WIRES = [("float32", "float32"), ("bfloat16", "float32"), ("bfloat16", "bfloat16")]
FORMATS = [(*wires, delay) for wires in WIRES for delay in (0, 1)]


def steps_per_second(options, run, wire, weights_wire, delay):
    summary = shaped_job.train(
        options.bin, "bench/jobs/mlp1024.yaml", run, servers=2, workers=2,
        settings=[f"training.steps={options.steps}",
                  f"strategy.parameter_server.wire={wire}",
                  f"strategy.parameter_server.weights_wire={weights_wire}",
                  f"strategy.parameter_server.sync={{bsp: {{delay: {delay}}}}}"])
    return summary["steps"] / summary["training_seconds"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--rate", default="200mbit")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    rates = {formats: [] for formats in FORMATS}
    with shaped_job.hosts(4, options.rate), tempfile.TemporaryDirectory() as folder:
        for turn in range(options.rounds):
            for formats in FORMATS:
                run = os.path.join(folder, "-".join(map(str, (*formats, turn))))
                rates[formats].append(steps_per_second(options, run, *formats))
    print("| `wire` | `weights_wire` | `delay` | steps/s | beside float32 |")
    print("| --- | --- | --- | --- | --- |")
    for formats in FORMATS:
        ratios = [mine / other for mine, other in zip(rates[formats], rates[FORMATS[0]])]
        print(f"| `{formats[0]}` | `{formats[1]}` | {formats[2]} | {statistics.median(rates[formats]):.2f} | "
              f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) |")


if __name__ == "__main__":
    main()
