# SPDX-License-Identifier: Apache-2.0
"""Checkpoints without servers, and safetensors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from fake_native import Checkpoint
from safetensors.numpy import load_file

import tributary
import tributary.torch


def checkpoints(run: Path) -> Path:
    """A run directory whose newest whole checkpoint is that of step 20."""
    for step, whole in ((10, True), (20, True), (30, False)):
        folder = run / "checkpoints" / f"step-{step:012}"
        folder.mkdir(parents=True)
        if whole:
            (folder / "manifest.ckpt").touch()
    return run


def test_the_newest_whole_checkpoint_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    real = Checkpoint.open

    def open_and_note(folder: str) -> object:
        opened.append(Path(folder).name)
        return real(folder)

    monkeypatch.setattr(Checkpoint, "open", open_and_note)
    run = checkpoints(tmp_path)
    tensors = tributary.load_checkpoint(run)
    tributary.load_checkpoint(run / "checkpoints")
    tributary.load_checkpoint(run / "checkpoints" / "step-000000000010")
    assert opened == ["step-000000000020"] * 2 + ["step-000000000010"]
    np.testing.assert_array_equal(tensors["w"], [[0, 1], [2, 3]])


def test_the_optimizers_state_has_its_own_names(tmp_path: Path) -> None:
    run = checkpoints(tmp_path)
    tensors = tributary.torch.load_checkpoint(run, optimizer=True)
    assert list(tensors) == ["w", "optimizer.exp_avg.w"]
    wanted = torch.tensor([[10.0, 11], [12, 13]])
    assert torch.equal(tensors["optimizer.exp_avg.w"], wanted)


def test_a_directory_without_a_checkpoint_is_missing(tmp_path: Path) -> None:
    with pytest.raises(tributary.Missing, match="no checkpoint"):
        tributary.load_checkpoint(tmp_path)


def test_safetensors_can_be_read_back(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    tensors = {"a": np.arange(6.0).reshape(2, 3), "b.c": torch.ones(())}
    tributary.save_safetensors(path, tensors)
    read = load_file(path)
    np.testing.assert_array_equal(read["a"], tensors["a"].astype(np.float32))
    assert read["b.c"].shape == () and read["b.c"] == 1
    assert [p.name for p in tmp_path.iterdir()] == ["w.safetensors"]
