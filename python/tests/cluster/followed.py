# SPDX-License-Identifier: Apache-2.0
"""A job whose weights after step n are all -n / 2, and a process that follows it
and writes what it saw to the file that is the first argument; test_follower.py
starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np

import tributary

FOLLOWED_READS = 3


def follow(output: str) -> None:
    follower = tributary.follow()
    reads = []
    for snapshot in follower:
        arrays = snapshot.weights.values()
        least = min(float(array.min()) for array in arrays)
        most = max(float(array.max()) for array in arrays)
        reads.append((snapshot.updates, snapshot.consistent, least, most))
        if len(reads) == FOLLOWED_READS:
            print("enough", flush=True)
    try:
        follower.read()
        end = "none"
    except tributary.Stopped as stopped:
        end = f"Stopped: {stopped}"
    with open(output, "w") as file:
        json.dump({"shapes": follower.shapes, "reads": reads, "end": end}, file)


def train(output: str) -> None:
    arrays = {"w": np.zeros(400_000), "b": np.zeros(3)}
    ones = {name: np.ones(array.shape) for name, array in arrays.items()}
    with tributary.connect() as client:
        client.declare(arrays, "sgd", lr=0.5)
        follower = subprocess.Popen(
            [sys.executable, __file__, output, "follow"], stdout=subprocess.PIPE
        )
        assert follower.stdout is not None
        os.set_blocking(follower.stdout.fileno(), False)
        while not follower.stdout.read():
            assert follower.poll() is None
            client.step(ones)
    assert follower.wait() == 0


if __name__ == "__main__":
    (follow if len(sys.argv) > 2 else train)(sys.argv[1])
