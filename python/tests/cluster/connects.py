# SPDX-License-Identifier: Apache-2.0
"""Connects and closes many times in one process; test_connects.py starts it.

Each line of the input is one connection: "ADDRESS" takes a whole job, from joining
to its end, "ADDRESS RANK" only joins and leaves. Answers with a line of JSON: the
memory, threads and files of this process afterwards.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from pathlib import Path

import numpy as np

import tributary
from tributary import _native


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
        metrics_listen="",
        tls="",
        token_file="",
        metrics_token_file="",
        insecure=False,
        insecure_groups=False,
    )
    assert session.rank == rank


def train(address: str) -> None:
    client = tributary.connect(address, rank=0)
    weights = client.declare({"w": np.ones(1000)}, lr=0.5)
    client.step({"w": np.ones(1000)})
    client.finish()
    assert weights["w"][0] == 0.5


def main() -> None:
    for line in sys.stdin:
        address, *rank = line.split()
        if rank:
            join_and_leave(address, int(rank[0]))
        else:
            train(address)
        print(json.dumps(figures()), flush=True)


if __name__ == "__main__":
    main()
