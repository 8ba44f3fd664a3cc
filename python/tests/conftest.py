# SPDX-License-Identifier: Apache-2.0
"""The tests use a fake of the C++ client (fake_native.py)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import fake_native  # noqa: E402

sys.modules["tributary._native"] = fake_native


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every test starts with a job that nobody has trained, of one rank."""
    for name in ("RANK", "WORLD_SIZE", "SLURM_PROCID", "SLURM_NTASKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TRIBUTARY_COORDINATOR", "coordinator:1")
    monkeypatch.setenv("TRIBUTARY_RANK", "0")
    monkeypatch.setenv("TRIBUTARY_WORLD_SIZE", "1")
    session = fake_native.Session
    for name in ("world", "first_steps", "job_weights", "start_error", "last"):
        monkeypatch.setattr(session, name, getattr(session, name))
    yield
