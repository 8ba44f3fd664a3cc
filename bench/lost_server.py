#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how long a job stands still when a server is killed.

usage: bench/lost_server.py [--bin build/release/bin] [--rounds 10] [--every 50]

Trains a model of 1,018,001 parameters with two servers, two workers and a checkpoint
after every --every steps. In each of --rounds jobs, `kill -9` ends server 1 while the
job trains. Prints the median, the least and the most seconds from there

- to the first step that is trained after the rollback, and
- to the step that the job had reached before: steps that are trained again count.
"""

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import tempfile
import time
import urllib.request

JOB = """name: lost-server
model:
  sequential: [{linear: {in: 16, out: 1000}}, relu: {}, {linear: {in: 1000, out: 1000}},
               relu: {}, {linear: {in: 1000, out: 1}}]
data: {train: {synthetic: {kind: mlp_teacher, rows: 6400}}, batch_size: 32}
training: {steps: 100000000, loss: mse, optimizer: {adam: {learning_rate: 0.0001}}}
cluster: {servers: 2, workers: 2}
checkpoint: {at_end: false}
"""
LIMIT_SECONDS = 60


def page(address, path):
    with urllib.request.urlopen(f"http://{address}{path}", timeout=9) as answer:
        return answer.read().decode()


def wait(read, condition):
    """The first value that meets the condition, and its time."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < deadline:
        if condition(value := read()):
            return value, time.monotonic()
        time.sleep(0.005)
    raise SystemExit(f"not within {LIMIT_SECONDS} s: {value}")


def servers(coordinator):
    """The servers of the job, by index."""
    members = json.loads(page(coordinator, "/status.json"))["members"]
    return [member for member in members if member["role"] == "server"]


def lose_server(coordinator, every):
    """Seconds until training goes on, and until the lost steps are trained again."""
    wait(lambda: page(coordinator, "/status.json"),
         lambda text: json.loads(text)["phase"] == "running")
    left, lost = servers(coordinator)

    def version():
        """The updates that the other server has applied; -1 while it has no blocks."""
        series = r"^tributary_server_min_version\S* (\d+)"
        found = re.search(series, page(left["metrics_address"], "/metrics"), re.M)
        return int(found.group(1)) if found else -1

    # Kills late in the time between two checkpoints, so that steps are lost.
    reached, killed = wait(version, lambda now: now >= 2 * every + every * 3 // 4)
    os.kill(lost["pid"], signal.SIGKILL)
    back, _ = wait(version, lambda now: 0 <= now < reached)
    _, going = wait(version, lambda now: now > back)
    _, level = wait(version, lambda now: now >= reached)
    return going - killed, level - killed


def measure(program, every):
    """lose_server for a new job: only a job's first replacement starts at once."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "job.yaml"), "w", encoding="utf-8") as file:
            file.write(JOB)
        command = [program, "train", "job.yaml", "--metrics-listen", "127.0.0.1:0",
                   "--set", f"checkpoint.every_steps={every}"]
        job = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
        try:
            for line in job.stdout:
                if address := re.search(r"status page: http://([^/]+)", line):
                    return lose_server(address.group(1), every)
            raise SystemExit("the job has ended")
        finally:
            job.terminate()
            job.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--every", type=int, default=50)
    options = parser.parse_args()
    program = os.path.abspath(os.path.join(options.bin, "tributary"))
    times = [measure(program, options.every) for _ in range(options.rounds)]
    for name, seconds in zip(("training goes on", "as far as before"), zip(*times)):
        print(f"{name}: {statistics.median(seconds):.2f} s "
              f"({min(seconds):.2f} to {max(seconds):.2f})")


if __name__ == "__main__":
    main()
