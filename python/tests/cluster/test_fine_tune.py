# SPDX-License-Identifier: Apache-2.0
"""A job that starts from a file of PyTorch, beside the same training in PyTorch."""

from __future__ import annotations

import os
import subprocess
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

pytestmark = pytest.mark.cluster

safetensors = pytest.importorskip("safetensors.torch")

PROGRAM = os.environ.get("TRIBUTARY_PROGRAM", "tributary")
ROWS, STEPS, RATE = 48, 20, 0.1
JOB = """
device: cpu
model:
  initialize_from: pretrained.safetensors
  initialize_rules:
    - {tensors: 0.*, from: encoder.dense.*}
    - {tensors: 1.*, from: encoder.norm.*}
    - {tensors: 3.*, fresh: true}
  initialize_unused: [classifier.*, "*.num_batches_tracked"]
  sequential:
    - linear: {in: 12, out: 16}
    - batch_norm: {features: 16}
    - relu
    - linear: {in: 16, out: 3}
data:
  train: {npy: {features: x.npy, labels: y.npy}}
  batch_size: ROWS
  shuffle: none
training:
  steps: STEPS
  loss: cross_entropy
  optimizer: {sgd: {learning_rate: RATE}}
  parameter_groups: [{parameters: [FROZEN], frozen: true}]
"""


def pretrained(dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """A body and a head for other classes, as a file of another program has them."""
    torch.manual_seed(3)
    encoder = OrderedDict(dense=nn.Linear(12, 16), norm=nn.BatchNorm1d(16))
    model = nn.ModuleDict({"encoder": nn.Sequential(encoder), "classifier": nn.Linear(16, 5)})
    model.get_submodule("encoder")(torch.randn(100, 12))  # moves the running averages
    return model.to(dtype).state_dict()


def train(folder: Path, run: str, frozen: str) -> dict[str, torch.Tensor]:
    job = JOB.replace("ROWS", str(ROWS)).replace("STEPS", str(STEPS))
    job = job.replace("RATE", str(RATE)).replace("FROZEN", frozen)
    path = folder / f"{run}.yaml"
    path.write_text(job)
    done = subprocess.run(
        [PROGRAM, "train", path, "--run-dir", folder / run], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return safetensors.load_file(folder / run / "weights.safetensors")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_a_new_head_learns_as_in_pytorch(tmp_path: Path, dtype: torch.dtype) -> None:
    generator = np.random.default_rng(1)
    x = generator.standard_normal((ROWS, 12), dtype=np.float32)
    y = generator.integers(0, 3, ROWS)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    given = pretrained(dtype)
    safetensors.save_file(given, tmp_path / "pretrained.safetensors")

    start = train(tmp_path, "start", '"*"')
    tuned = train(tmp_path, "tuned", "0.*, 1.*")
    body = [name for name in start if not name.startswith("3.")]
    for name in body:
        theirs = name.replace("0.", "encoder.dense.").replace("1.", "encoder.norm.")
        assert torch.equal(start[name], given[theirs].float()), name
        assert torch.equal(tuned[name], start[name]), name

    model = nn.Sequential(nn.Linear(12, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))
    model[1].momentum = 0.0  # the averages are frozen as well
    model.load_state_dict(start, strict=False)
    optimizer = torch.optim.SGD(model[3].parameters(), lr=RATE)
    for _ in range(STEPS):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(torch.from_numpy(x)), torch.from_numpy(y)).backward()
        optimizer.step()
    for name in ("3.weight", "3.bias"):
        assert not torch.equal(tuned[name], start[name])
        torch.testing.assert_close(
            tuned[name], model.state_dict()[name], rtol=1e-5, atol=1e-6
        )
