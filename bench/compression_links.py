#!/usr/bin/python3
"""Steps per second over slow links in each wire format.

usage: bench/compression_links.py [--bin build/release/bin] [--rate 200mbit]
                                  [--steps 40] [--rounds 5]

Trains bench/jobs/mlp1024.yaml (7.5 MB of weights) with 2 workers and 2 servers on
four simulated hosts (bench/shaped_hosts.sh; needs root), in rounds of float32 and
of bfloat16 for gradients and for both directions. Prints a table for
docs/benchmarks.md: medians, and the median of the ratios to float32 of the same
round.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

FORMATS = [("float32", "float32"), ("bfloat16", "float32"), ("bfloat16", "bfloat16")]
PREFIX = "wire"
SHAPED = "bench/shaped_hosts.sh"
COORDINATOR = "10.77.0.1:7070"


def on_host(host, *command, **options):
    return subprocess.Popen(["ip", "netns", "exec", f"{PREFIX}{host}", *command],
                            stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, **options)


def steps_per_second(options, run, wire, weights_wire):
    program = lambda name: os.path.join(options.bin, f"tributary-{name}")
    settings = [f"training.steps={options.steps}",
                f"strategy.parameter_server.wire={wire}",
                f"strategy.parameter_server.weights_wire={weights_wire}"]
    coordinator = on_host(1, program("coordinator"), "--job", "bench/jobs/mlp1024.yaml",
                          "--run-dir", run, "--listen", COORDINATOR,
                          *[word for s in settings for word in ("--set", s)])
    processes = [coordinator]
    for host in (1, 2):
        processes.append(on_host(host, program("server"), "--coordinator", COORDINATOR,
                                 "--listen", f"10.77.0.{host}:0"))
    for host in (3, 4):
        processes.append(on_host(host, program("worker"), "--coordinator", COORDINATOR))
    try:
        for process in processes:
            if process.wait(timeout=300) != 0:
                sys.exit(f"{process.args} failed")
    finally:
        for process in processes:
            process.kill()
    with open(os.path.join(run, "summary.json")) as file:
        summary = json.load(file)
    return summary["steps"] / summary["training_seconds"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--rate", default="200mbit")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    rates = {formats: [] for formats in FORMATS}
    subprocess.run([SHAPED, "up", "4", options.rate, PREFIX], check=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            for turn in range(options.rounds):
                for formats in FORMATS:
                    run = os.path.join(folder, "-".join(formats) + str(turn))
                    rates[formats].append(steps_per_second(options, run, *formats))
    finally:
        subprocess.run([SHAPED, "down", PREFIX], check=True)
    print("| `wire` | `weights_wire` | steps/s | beside float32 |")
    print("| --- | --- | --- | --- |")
    for formats in FORMATS:
        ratios = [mine / other for mine, other in zip(rates[formats], rates[FORMATS[0]])]
        print(f"| `{formats[0]}` | `{formats[1]}` | {statistics.median(rates[formats]):.2f} | "
              f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) |")


if __name__ == "__main__":
    main()
