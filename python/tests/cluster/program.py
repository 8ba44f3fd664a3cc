# SPDX-License-Identifier: Apache-2.0
"""Trains an MLP through real servers; the tests of this folder start it.

Rank 0 writes the weights to --output as a dict of torch.save. --kill STEP: after its
STEP-th step rank 1 kills a process of the job (--victim): itself, a server or the
launcher, and the launcher only once --run has a complete checkpoint. The file --killed
marks that this has happened. --pinned: gradients go through a double of a device
(pinned.py).
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pinned
import torch
from task import BATCH, data, loss_of, mlp
from torch.utils.data import DataLoader, TensorDataset

import tributary.torch as tributary


def wait_for_checkpoint(run: Path) -> None:
    """Checkpoints are written while training goes on, so a step says nothing of them."""
    end = time.monotonic() + 100
    while not list(run.glob("checkpoints/*/manifest.ckpt")):
        if time.monotonic() > end:
            raise TimeoutError(f"no checkpoint in {run}")
        time.sleep(0.02)


def kill(victim: str, run: Path | None) -> None:
    pid = os.getpid()
    if victim == "server":
        status = [
            os.environ.get("TRIBUTARY_PROGRAM", "tributary"), "status", "--json",
            "--coordinator", os.environ["TRIBUTARY_COORDINATOR"],
        ]  # fmt: skip
        members = json.loads(subprocess.check_output(status))["members"]
        pid = next(m["pid"] for m in members if m["role"] == "server")
    elif victim == "launcher" and run is not None:
        wait_for_checkpoint(run)
        pid = os.getppid()
    os.kill(pid, signal.SIGKILL)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", default="sgd")
    parser.add_argument("--keywords", type=json.loads, default={"lr": 0.1})
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--kill", type=int, default=-1)
    parser.add_argument("--killed", type=Path)
    parser.add_argument("--victim", choices=("rank", "server", "launcher"))
    parser.add_argument("--run", type=Path)
    parser.add_argument("--checkpoint-every", type=int, default=0)
    parser.add_argument("--pinned", action="store_true")
    parser.add_argument("--look", type=int, default=-1, help="save after this step")
    options = parser.parse_args()
    if options.pinned:
        pinned.use()

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    model = mlp()
    rows = TensorDataset(*data())
    settings = {}
    if options.checkpoint_every > 0:
        settings["checkpoint_every"] = options.checkpoint_every
    with tributary.connect(**settings) as cluster:
        optimizer = cluster.optimizer(model, options.kind, **options.keywords)
        sampler = cluster.sampler(rows)
        loader = DataLoader(rows, batch_size=BATCH, sampler=sampler)
        loop = cluster.resume(loader, options.epochs, accumulate=options.accumulate)
        for _, (x, y) in loop:
            optimizer.zero_grad()
            (loss_of(model, x, y) / cluster.micro_batches).backward()
            optimizer.step()
            if cluster.steps == options.look:
                with cluster.newest_weights():
                    if cluster.rank == 0:
                        torch.save(model.state_dict(), f"{options.output}.look")
            kills = cluster.rank == 1 and cluster.steps == options.kill
            if kills and not options.killed.exists():
                options.killed.touch()
                kill(options.victim, options.run)
    if cluster.rank == 0:
        torch.save(model.state_dict(), options.output)


if __name__ == "__main__":
    main()
