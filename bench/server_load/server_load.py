#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the memory that a server takes under load with the documented bound.

usage: bench/server_load/server_load.py [--workers 64] [--megabytes 64] NAME=BIN [NAME=BIN ...]

Starts the tributary-coordinator and the tributary-server of each folder of programs
BIN and lets server_load_workers (of the last BIN, or --driver) be all workers of
a job with SGD over gRPC:

  rank order, random order, burst   two steps of a model of --megabytes; workers push
                                    one after the other or all at once
  silent                            40 steps of a model of 8 MB, in which the last
                                    worker never reads an answer

Prints a Markdown table: the server's peak resident memory (VmHWM) less that of the
idle server, the bound of docs/failures.md for any order of arrival, the ratio, and
the median seconds of a step. NAME:old=BIN: programs whose pushes do not announce the
samples of all ranks.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

MESSAGE = 64 + 1 / 16  # MiB: kMaxMessageBytes
SILENT_MEGABYTES, SILENT_STEPS = 8, 40
LIMIT_SECONDS = 600

# The workers declare another model, of the size that is measured.
JOB = """
name: load
model: {{sequential: [{{linear: {{in: 16, out: 1}}}}]}}
data: {{train: {{synthetic: {{kind: mlp_teacher, rows: 64000}}}}, batch_size: 1}}
training: {{steps: 1000, loss: mse, optimizer: {{sgd: {{learning_rate: 0.01}}}}}}
strategy: {{parameter_server: {{sync: bsp, transport: grpc, sync_timeout_seconds: 1800}}}}
cluster: {{servers: 1, workers: {workers}, lease_seconds: 600, on_worker_loss: fail}}
"""


def bound(weights, workers):
    """MiB of a server beside its idle process: docs/failures.md, with SGD."""
    copies = 2 * weights              # current and being written
    total = 1 * weights               # the sum of a step
    contributions = workers * weights
    connections = 16 * workers        # gRPC's buffers, and what malloc keeps
    unread = (workers + 2) * weights + MESSAGE
    return copies + total + contributions + connections + unread


def resident(pid, field):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return int(re.search(rf"{field}:\s+(\d+) kB", status.read()).group(1)) / 1024


class Job:
    """A coordinator and a server without workers."""

    def __init__(self, folder, programs, workers):
        self.processes = []
        job = os.path.join(folder, "job.yaml")
        with open(job, "w", encoding="utf-8") as file:
            file.write(JOB.format(workers=workers))
        coordinator = self.start(
            folder, [os.path.join(programs, "tributary-coordinator"), "--job", job,
                     "--run-dir", os.path.join(folder, "run"),
                     "--listen", "127.0.0.1:0"])
        self.address = self.wait_for(folder, coordinator)
        self.server = self.start(
            folder, [os.path.join(programs, "tributary-server"),
                     "--coordinator", self.address])
        time.sleep(2)
        self.idle = resident(self.server.pid, "VmRSS")

    def start(self, folder, command):
        log = open(os.path.join(folder, f"{len(self.processes)}.log"), "wb")
        process = subprocess.Popen(command, stdout=log, stderr=log)
        self.processes.append(process)
        return process

    def wait_for(self, folder, coordinator):
        for _ in range(300):
            with open(os.path.join(folder, "0.log"), encoding="utf-8") as log:
                text = log.read()
            found = re.search(r"coordinator (\S+:\d+)", text)
            if found:
                return found.group(1)
            if coordinator.poll() is not None:
                sys.exit(text)
            time.sleep(0.1)
        sys.exit("the coordinator does not start: " + text)

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()


def measure(programs, driver, workers, megabytes, steps, arguments):
    """(MiB that the server took at most, seconds of each step)."""
    with tempfile.TemporaryDirectory() as folder:
        job = Job(folder, programs, workers)
        try:
            run = subprocess.run(
                [driver, "--coordinator", job.address, "--workers", str(workers),
                 "--megabytes", str(megabytes), "--steps", str(steps), *arguments],
                stdout=subprocess.PIPE, text=True, timeout=LIMIT_SECONDS, check=True)
            peak = resident(job.server.pid, "VmHWM") - job.idle
        finally:
            job.end()
    return peak, [float(line) for line in run.stdout.split()]


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n")[2])
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--megabytes", type=int, default=64)
    parser.add_argument("--driver")
    parser.add_argument("--only", action="append", help="a load; may be repeated")
    parser.add_argument("builds", nargs="+", metavar="NAME[:old]=BIN")
    options = parser.parse_args()
    builds = [build.split("=", 1) for build in options.builds]
    driver = options.driver or os.path.join(builds[-1][1], "server_load_workers")
    cases = [(name, options.megabytes, 2, ["--order", order])
             for name, order in [("rank order", "rank"), ("random order", "random"),
                                 ("burst", "burst")]]
    cases.append(("silent", SILENT_MEGABYTES, SILENT_STEPS,
                  ["--order", "burst", "--silent"]))
    print("| load | programs | peak MiB | bound MiB | ratio | s a step |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for case, megabytes, steps, arguments in cases:
        if options.only and case not in options.only:
            continue
        for name, programs in builds:
            name, _, old = name.partition(":")
            peak, seconds = measure(programs, driver, options.workers, megabytes, steps,
                                    arguments + ([] if old else ["--announce"]))
            most = bound(megabytes, options.workers)
            print(f"| {case}, {megabytes} MiB | {name} | {peak:.0f} | {most:.0f} | "
                  f"{peak / most:.2f} | {statistics.median(seconds):.2f} |", flush=True)


if __name__ == "__main__":
    main()
