# SPDX-License-Identifier: Apache-2.0
"""The commands of the wheel, which become programs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tributary import __main__ as commands


@pytest.fixture
def became(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """What `os.execv` was called with: empty programs stand in for the real ones."""
    for name in ("tributary", "tributary-coordinator", "tributary-server"):
        (tmp_path / name).touch()
    calls: list[list[str]] = []
    monkeypatch.setattr(commands, "PROGRAMS", tmp_path)
    monkeypatch.setattr(os, "execv", lambda _, arguments: calls.append(arguments))
    monkeypatch.setenv("PYTHON", "")  # so that its end is undone too
    monkeypatch.delenv("PYTHON")
    return calls


def test_a_command_becomes_its_program_with_the_same_arguments(
    became: list[list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "argv", ["tributary-server", "--listen", "host:0"])
    commands.server()
    assert became == [[str(tmp_path / "tributary-server"), "--listen", "host:0"]]


def test_run_starts_programs_with_the_python_of_the_package(
    became: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["tributary", "run", "train.py"])
    commands.main()
    assert became[0][1:] == ["run", "train.py"]
    assert os.environ["PYTHON"] == sys.executable


def test_a_python_that_the_user_has_chosen_stays(
    became: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHON", "python3.12")
    monkeypatch.setattr(sys, "argv", ["tributary", "run", "train.py"])
    commands.main()
    assert os.environ["PYTHON"] == "python3.12"


def test_other_commands_leave_the_environment_alone(
    became: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["tributary", "train", "run"])
    commands.main()
    assert "PYTHON" not in os.environ


def test_a_package_without_the_program_says_so(
    became: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["tributary-worker"])
    with pytest.raises(SystemExit, match="tributary-worker is missing"):
        commands.worker()
    assert became == []
