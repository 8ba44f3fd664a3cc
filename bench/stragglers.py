#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of one slow worker under each synchronization policy.

usage: bench/stragglers.py [--bin build/release/bin] [--slow 5] [--seconds 8]

Trains Fashion-MNIST under each policy with 4 workers and 2 servers; one worker's
computation takes --slow times as long. Prints a table for docs/benchmarks.md:
samples per second of all workers in a window of --seconds, beside that of bsp
without a slow worker, the staleness that workers saw at most, and the seconds to
a test accuracy of .86 (an evaluation ends with its slowest worker's part).
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

POLICIES = [
    ("bsp, nobody slow", "bsp", 1),
    ("bsp", "bsp", None),
    ("ssp, staleness 2", "{ssp: {staleness: 2}}", None),
    ("ssp, staleness 8", "{ssp: {staleness: 8}}", None),
    ("async", "async", None),
    ("bsp, 1 backup worker", "{bsp: {backup_workers: 1}}", None),
]
WORKERS = 4
BATCH = 32
GOAL = 0.86
WARM_SECONDS = 2
LIMIT_SECONDS = 90


class Run:
    """One job with daemons: a coordinator, two servers, four workers."""

    def __init__(self, options, folder, sync, slow):
        self.bin, self.processes = options.bin, []
        self.coordinator = self.start(
            "tributary-coordinator", "--job", "examples/fashion-mnist.yaml",
            "--run-dir", os.path.join(folder, "run"), "--listen", "127.0.0.1:0",
            "--set", f"strategy.parameter_server.sync={sync}",
            "--set", f"cluster.workers={WORKERS}", "--set", "cluster.servers=2",
            "--set", f"data.batch_size={BATCH}", "--set", "training.epochs=12")
        line = self.wait_for(r"coordinator (\S+:\d+) waits for")
        self.address = line.group(1)
        for _ in range(2):
            self.start("tributary-server", "--coordinator", self.address)
        for rank in range(WORKERS):
            factor = slow if rank == WORKERS - 1 else 1
            self.start("tributary-worker", "--coordinator", self.address,
                       "--index", str(rank), "--slow-down", str(factor))

    def start(self, program, *arguments):
        process = subprocess.Popen(
            [os.path.join(self.bin, program), *arguments], text=True,
            stdout=subprocess.PIPE if "coordinator" in program
            else subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.processes.append(process)
        return process

    def wait_for(self, pattern):
        for line in self.coordinator.stdout:
            if match := re.search(pattern, line):
                return match
        sys.exit(f"the coordinator ended before it said {pattern}")

    def status(self):
        text = subprocess.run(
            [os.path.join(self.bin, "tributary"), "status", "--json",
             "--coordinator", self.address], capture_output=True, text=True)
        return json.loads(text.stdout) if text.returncode == 0 else None

    def steps(self):
        members = self.status()["members"]
        return sum(m["step"] for m in members if m["role"] == "worker")

    def end(self):
        for process in self.processes:
            process.send_signal(signal.SIGKILL)
            process.wait()


def wait_until_running(run):
    while (status := run.status()) is None or status["phase"] != "running":
        time.sleep(0.02)
    return time.monotonic()


def measure(options, sync, slow):
    with tempfile.TemporaryDirectory() as folder:
        run = Run(options, folder, sync, slow)
        begin = wait_until_running(run)
        time.sleep(WARM_SECONDS)
        before, at = run.steps(), time.monotonic()
        time.sleep(options.seconds)
        rate = (run.steps() - before) * BATCH / (time.monotonic() - at)
        reached = None
        for line in run.coordinator.stdout:
            match = re.search(r"test accuracy ([0-9.]+)", line)
            if match and float(match.group(1)) >= GOAL:
                reached = time.monotonic() - begin
                break
            if time.monotonic() - begin > LIMIT_SECONDS:
                break
        run.end()
        return rate, reached


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--slow", type=float, default=5)
    parser.add_argument("--seconds", type=float, default=8)
    options = parser.parse_args()
    print("| sync | samples/s | of bsp with nobody slow | seconds to .86 |")
    print("| --- | --- | --- | --- |")
    unslowed = None
    for name, sync, slow in POLICIES:
        rate, reached = measure(options, sync, slow or options.slow)
        unslowed = unslowed or rate
        text = f"{reached:.1f}" if reached else f"over {LIMIT_SECONDS}"
        print(f"| {name} | {rate:.0f} | {rate / unslowed:.2f} | {text} |",
              flush=True)


if __name__ == "__main__":
    main()
