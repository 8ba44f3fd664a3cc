#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost model's constants that no job contains (docs/parallelism.md).

usage: bench/plan_calibration.py [--build build/release]

The core time to send or receive bytes and messages. One to four workers and
servers, two models, among hosts of 1 Gbit/s: the CPU seconds of all processes and
of the kernel's network, less those of one worker that computes the whole batch
alone, split by least squares into bytes and messages. The duration of steps is
not used.

Needs root, and a machine that does nothing else.
"""

import argparse
import math
import os
import resource

import plan_grid


def cpu_seconds():
    """CPU seconds of all ended children and of the kernel's network code."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open("/proc/stat", encoding="utf-8") as stat:
        softirq = int(stat.readline().split()[7])
    return (used.ru_utime + used.ru_stime +
            softirq / os.sysconf("SC_CLK_TCK"))


def cpu_of_a_step(grid, cell, few=20, many=120):
    spent = []
    for steps in (few, many):
        job = plan_grid.write_job(grid.folder, cell, steps)
        before = cpu_seconds()
        grid.tributary("train", cell, job)
        spent.append(cpu_seconds() - before)
    return (spent[1] - spent[0]) / (many - few)


def measure_cpu(grid):
    rows = []  # bytes and messages at their ends, seconds
    for model in plan_grid.MODELS:
        alone = cpu_of_a_step(
            grid, plan_grid.Cell(1000, 1, model, "all_reduce", 0))
        for workers, servers in ((1, 1), (1, 4), (2, 2), (4, 4)):
            cell = plan_grid.Cell(1000, workers, model, "parameter_server",
                                  servers)
            seconds = cpu_of_a_step(grid, cell) - alone
            sent = 2 * workers * plan_grid.parameter_bytes(model)
            messages = 2 * workers * math.ceil(
                plan_grid.parameter_bytes(model) / plan_grid.BLOCK * servers)
            rows.append((2 * sent, 2 * messages, seconds))
            print(f"{model}, {workers} workers, {servers} servers: "
                  f"{sent / 1e6:.2f} MB and {messages} messages take "
                  f"{seconds * 1e3:.1f} ms", flush=True)
    # Minimizes the sum of squared relative errors over two unknowns.
    a = [(b / s, m / s) for b, m, s in rows]
    bb = sum(x * x for x, _ in a)
    bm = sum(x * y for x, y in a)
    mm = sum(y * y for _, y in a)
    b1, m1 = sum(x for x, _ in a), sum(y for _, y in a)
    det = bb * mm - bm * bm
    print(f"an end of a byte {(b1 * mm - m1 * bm) / det * 1e9:.2f} ns, of a "
          f"message {(m1 * bb - b1 * bm) / det * 1e6:.0f} us")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", default="build/release")
    options = parser.parse_args()
    grid = plan_grid.Grid(options)
    try:
        grid.hosts("up", str(plan_grid.HOSTS), "1000mbit")
        measure_cpu(grid)
    finally:
        grid.close()


if __name__ == "__main__":
    main()
