# SPDX-License-Identifier: Apache-2.0
"""Runs program.py under the command `tributary`."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from processes import DEADLINE

HERE = Path(__file__).parent
PROGRAM = str(HERE / "program.py")


def start(
    folder: Path, options: list[str], program: list[str]
) -> subprocess.CompletedProcess[str]:
    """Runs `tributary run` with the run directory folder/run to its end."""
    command = [
        os.environ.get("TRIBUTARY_PROGRAM", "tributary"), "run", *options,
        "--python", sys.executable, "--run-dir", str(folder / "run"), *program,
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent.parent)}
    environment.pop("TRIBUTARY_RANK", None)  # of the tests with a fake
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=DEADLINE
    )


def check(done: subprocess.CompletedProcess[str], folder: Path) -> None:
    """Fails with the logs unless the run has ended well."""
    logs = "".join(p.read_text() for p in (folder / "run").glob("logs/*"))
    assert done.returncode == 0, done.stdout + done.stderr + logs


SERVERS = ("--servers", "2")
# The options with which the ranks exchange gradients among themselves.
AMONG_RANKS = {
    "all_reduce": ("--set", "strategy=all_reduce"),
    "sharded": ("--set", "strategy.all_reduce.sharded=true"),
}


def run(
    folder: Path, workers: int, *arguments: str, exchange: Sequence[str] = SERVERS
) -> Path:
    """Trains to the end; returns the file of the weights."""
    output = folder / "weights.pt"
    options = [*exchange, "--workers", str(workers)]
    done = start(folder, options, [PROGRAM, "--output", str(output), *arguments])
    check(done, folder)
    return output


def digest(path: Path) -> str:
    sha256 = hashlib.sha256()
    for tensor in torch.load(path).values():
        sha256.update(tensor.numpy().tobytes())
    return sha256.hexdigest()
