#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of leaving a data set on disk (data.stream).

usage: bench/streamed_data.py [--bin build/release/bin] [--gib 4] [--rounds 3]
                              [--workers 2] [--limit-mib 512] [--steps 4000]
                              [--folder FOLDER]

Writes a set of --gib GiB of random images (uint8, 28 x 28) into FOLDER, or a
temporary folder, and removes it at the end. Trains an MLP on it with --workers
workers and one server, in each round once with the rows in memory and once with the
rows on disk, in interleaved order. Each worker with rows on disk is in a memory cgroup
of --limit-mib MiB, which counts the pages of the files that it reads, too; this needs
root. Prints a table for docs/benchmarks.md: samples per second without the first
quarter of the steps, their ratio, the seconds until the first step, and the largest
resident memory of a worker.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

SIDE = 28
JOB = """name: streamed-data
model:
  sequential: [flatten, {{linear: {{in: 784, out: 256}}}}, relu, {{linear: {{in: 256, out: 10}}}}]
data:
  train: {{npy: {{features: x.npy, labels: y.npy}}}}
  batch_size: 64
training:
  steps: {steps}
  loss: cross_entropy
  optimizer: {{sgd: {{learning_rate: 0.01}}}}
cluster: {{servers: 1, workers: {workers}}}
checkpoint: {{at_end: false}}
"""


def write_npy(path, shape, blocks):
    header = str({"descr": "|u1", "fortran_order": False, "shape": shape})
    header = header.ljust((10 + len(header) + 64) // 64 * 64 - 11) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
        for block in blocks:
            file.write(block)


def write_set(folder, gib):
    rows = int(gib * 2**30) // (SIDE * SIDE)
    size = rows * SIDE * SIDE
    noise = os.urandom(64 * 2**20)

    def images():
        left = size
        while left > 0:
            begin = int.from_bytes(os.urandom(3), "little") % 2**20
            block = noise[begin:begin + min(left, 8 * 2**20)]
            left -= len(block)
            yield block

    write_npy(os.path.join(folder, "x.npy"), (rows, SIDE, SIDE), images())
    write_npy(os.path.join(folder, "y.npy"), (rows,),
              [bytes(i % 10 for i in range(10)) * (rows // 10) + bytes(rows % 10)])
    return rows


class MemoryLimit:
    """A memory cgroup, of version 1 or 2."""

    def __init__(self, name, mib):
        two = os.path.exists("/sys/fs/cgroup/cgroup.controllers")
        root = "/sys/fs/cgroup" if two else "/sys/fs/cgroup/memory"
        self.folder = os.path.join(root, f"{name}-{os.getpid()}")
        os.mkdir(self.folder)
        self.write("memory.max" if two else "memory.limit_in_bytes", mib * 2**20)
        if os.path.exists(os.path.join(self.folder, "memory.swap.max")):
            self.write("memory.swap.max", 0)

    def write(self, name, value):
        with open(os.path.join(self.folder, name), "w", encoding="ascii") as file:
            file.write(str(value))

    def enter(self):
        self.write("cgroup.procs", os.getpid())

    def remove(self):
        for _ in range(100):
            try:
                os.rmdir(self.folder)
                return
            except OSError:
                time.sleep(0.05)


def run(options, folder, stream):
    run_dir = os.path.join(folder, "stream" if stream else "memory")
    subprocess.run(["rm", "-rf", run_dir], check=True)
    words = ["--set", "data.stream={}"] if stream else []
    program = lambda name: os.path.join(os.path.abspath(options.bin), name)
    begin = time.monotonic()
    coordinator = subprocess.Popen(
        [program("tributary-coordinator"), "--job", "job.yaml", "--run-dir", run_dir,
         "--listen", "127.0.0.1:0", *words], cwd=folder, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    line = ""
    while "waits for" not in line:
        line = coordinator.stdout.readline()
        if not line:
            sys.exit("the coordinator did not start")
    address = line.split("coordinator ")[1].split()[0]
    limits, members = [], []
    log = open(os.path.join(folder, "members.log"), "w", encoding="utf-8")
    members.append(subprocess.Popen([program("tributary-server"), "--coordinator", address],
                                    stdout=log, stderr=log))
    for rank in range(options.workers):
        enter = None
        if stream:
            limits.append(MemoryLimit(f"streamed-data-{rank}", options.limit_mib))
            enter = limits[-1].enter
        members.append(subprocess.Popen(
            [program("tributary-worker"), "--coordinator", address], preexec_fn=enter,
            stdout=log, stderr=log))
    coordinator.communicate()
    codes = [member.wait() for member in members]
    for limit in limits:
        limit.remove()
    if coordinator.returncode != 0 or any(codes):
        print(open(log.name, encoding="utf-8").read(), file=sys.stderr)
        sys.exit("the run failed")
    seconds = time.monotonic() - begin
    with open(os.path.join(run_dir, "metrics.jsonl"), encoding="utf-8") as file:
        steps = [json.loads(line) for line in file]
    with open(os.path.join(run_dir, "summary.json"), encoding="utf-8") as file:
        summary = json.load(file)
    late = steps[len(steps) // 4:]
    return {
        "rate": sum(s["samples"] for s in late) / sum(s["step_seconds"] for s in late),
        "start": seconds - summary["training_seconds"],
        "data": sum(s["data_seconds"] for s in late) / sum(s["step_seconds"] for s in late),
        "resident": max(p["peak_memory_bytes"] for p in summary["processes"]
                        if p["role"] == "worker"),
    }


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--gib", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--limit-mib", type=int, default=512)
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        rows = write_set(folder, options.gib)
        with open(os.path.join(folder, "job.yaml"), "w", encoding="utf-8") as file:
            file.write(JOB.format(steps=options.steps, workers=options.workers))
        results = {False: [], True: []}
        for number in range(options.rounds):
            for stream in ((False, True) if number % 2 == 0 else (True, False)):
                results[stream].append(run(options, folder, stream))
                print(("disk" if stream else "memory"), results[stream][-1], file=sys.stderr)
    median = lambda stream, key: statistics.median(r[key] for r in results[stream])
    print(f"{rows} rows, {options.workers} workers, {options.rounds} rounds\n")
    print("| rows | samples/s | share of the step that waits for rows | seconds until the first step "
          "| resident MiB of a worker |\n| --- | --- | --- | --- | --- |")
    for stream, name in ((False, "in memory"),
                         (True, f"on disk, {options.limit_mib} MiB for each worker")):
        print(f"| {name} | {median(stream, 'rate'):.0f} | {median(stream, 'data'):.3f} "
              f"| {median(stream, 'start'):.1f} | {median(stream, 'resident') / 2**20:.0f} |")
    ratios = [d["rate"] / m["rate"] for d, m in zip(results[True], results[False])]
    print(f"\non disk / in memory: {statistics.median(ratios):.2f} "
          f"({', '.join(f'{r:.2f}' for r in ratios)})")


if __name__ == "__main__":
    main()
