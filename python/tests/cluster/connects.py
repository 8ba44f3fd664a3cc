"""Connects and closes many times in one process; test_connects.py starts it.

--places ADDRESS: joins a job of many ranks, one rank after another, and leaves.
Else each connection is a whole job: join, declare, a step and the end. Prints
the memory, the threads and the files at the start, after --warm connections and
after each quarter of the further --count.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import tempfile
from collections import deque
from pathlib import Path

import numpy as np
from processes import Job

import tributary
from tributary import _native

AHEAD = 3  # jobs that are started before they are needed


def figures() -> dict[str, int]:
    gc.collect()
    status = Path("/proc/self/status").read_text()
    fields = dict(line.split(":", 1) for line in status.splitlines())
    return {
        "kib": int(fields["VmRSS"].split()[0]),
        "threads": int(fields["Threads"]),
        "files": len(os.listdir("/proc/self/fd")),
    }


def join_and_leave(address: str, rank: int) -> None:
    session = _native.Session.join(
        coordinator=address,
        rank=rank,
        join_timeout=30.0,
        settings=["training.optimizer={sgd: {learning_rate: 0.1}}"],
        device="cpu",
        arithmetic="",
    )
    assert session.rank == rank


def train(job: Job) -> None:
    with job:
        client = tributary.connect(job.address, rank=0)
        weights = client.declare({"w": np.ones(1000)}, lr=0.5)
        client.step({"w": np.ones(1000)})
        client.finish()
        assert weights["w"][0] == 0.5


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--places")
    parser.add_argument("--warm", type=int, required=True)
    parser.add_argument("--count", type=int, required=True)
    options = parser.parse_args()
    total = options.warm + options.count
    part = max(1, options.count // 4)
    seen = [figures()]
    with tempfile.TemporaryDirectory() as folder:
        jobs: deque[Job] = deque()
        for number in range(total):
            if number >= options.warm and (number - options.warm) % part == 0:
                seen.append(figures())
            if options.places:
                join_and_leave(options.places, number)
                continue
            while len(jobs) < AHEAD and number + len(jobs) < total:
                own = Path(folder) / f"{number + len(jobs)}"
                own.mkdir()
                jobs.append(Job(own))
            train(jobs.popleft())
    seen.append(figures())
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
