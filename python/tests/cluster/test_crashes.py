# SPDX-License-Identifier: Apache-2.0
"""A run that loses processes ends with the bits of an undisturbed one."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from runs import AMONG_RANKS, PROGRAM, check, digest, run, start  # noqa: E402

pytestmark = pytest.mark.cluster

TRAINING = (
    *("--kind", "adamw", "--keywords", json.dumps({"lr": 1e-3})),
    *("--epochs", "2", "--checkpoint-every", "10"),
)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    return digest(run(tmp_path_factory.mktemp("undisturbed"), 2, *TRAINING))


def kill(folder: Path, victim: str) -> list[str]:
    return ["--kill", "37", "--victim", victim, "--killed", str(folder / "killed")]


@pytest.mark.parametrize("victim", ["rank", "server"])
def test_a_killed_process_changes_no_bit(
    tmp_path: Path, undisturbed: str, victim: str
) -> None:
    output = run(tmp_path, 2, *TRAINING, *kill(tmp_path, victim))
    assert (tmp_path / "killed").exists()
    assert digest(output) == undisturbed


@pytest.mark.parametrize("victim", ["rank", "server"])
def test_with_a_delay_a_killed_process_changes_no_bit(
    tmp_path: Path, victim: str
) -> None:
    keywords = {"lr": 1e-3, "sync": {"bsp": {"delay": 1}}}
    delayed = (*TRAINING[:3], json.dumps(keywords), *TRAINING[4:])
    for name in ("undisturbed", "disturbed"):
        (tmp_path / name).mkdir()
    wanted = digest(run(tmp_path / "undisturbed", 2, *delayed))
    output = run(tmp_path / "disturbed", 2, *delayed, *kill(tmp_path, victim))
    assert (tmp_path / "killed").exists()
    assert digest(output) == wanted


@pytest.mark.parametrize("exchange", AMONG_RANKS)
def test_without_servers_the_bits_are_the_same(
    tmp_path: Path, undisturbed: str, exchange: str
) -> None:
    among = AMONG_RANKS[exchange]
    output = run(tmp_path, 2, *TRAINING, *kill(tmp_path, "rank"), exchange=among)
    assert (tmp_path / "killed").exists()
    assert digest(output) == undisturbed


@pytest.mark.parametrize("exchange", AMONG_RANKS)
def test_a_killed_launcher_of_ranks_alone_is_resumed(
    tmp_path: Path, undisturbed: str, exchange: str
) -> None:
    output = str(tmp_path / "weights.pt")
    program = [PROGRAM, "--output", output, *TRAINING, *kill(tmp_path, "launcher")]
    program += ["--run", str(tmp_path / "run")]
    options = [*AMONG_RANKS[exchange], "--workers", "2"]
    killed = start(tmp_path, options, program)
    assert killed.returncode < 0
    resumed = tmp_path / "resumed"
    resumed.mkdir()
    options = ["--workers", "2", "--resume", str(tmp_path / "run")]
    check(start(resumed, options, program), resumed)
    assert digest(Path(output)) == undisturbed


def test_a_device_writes_to_the_memory_that_servers_read_after_a_rollback(
    tmp_path: Path, undisturbed: str
) -> None:
    output = run(tmp_path, 2, *TRAINING, "--pinned", *kill(tmp_path, "server"))
    assert (tmp_path / "killed").exists()
    assert digest(output) == undisturbed


def test_a_killed_launcher_and_another_number_of_servers_change_no_bit(
    tmp_path: Path, undisturbed: str
) -> None:
    output = str(tmp_path / "weights.pt")
    program = [PROGRAM, "--output", output, *TRAINING, *kill(tmp_path, "launcher")]
    program += ["--run", str(tmp_path / "run")]
    killed = start(tmp_path, ["--servers", "2", "--workers", "2"], program)
    assert killed.returncode < 0
    resumed = tmp_path / "resumed"
    resumed.mkdir()
    options = ["--servers", "3", "--workers", "2", "--resume", str(tmp_path / "run")]
    check(start(resumed, options, program), resumed)
    assert digest(Path(output)) == undisturbed


@pytest.mark.skipif(shutil.which("torchrun") is None, reason="torchrun is not there")
def test_torchruns_elastic_agent_may_restart_the_ranks(
    tmp_path: Path, undisturbed: str
) -> None:
    output = str(tmp_path / "weights.pt")
    options = ["--servers", "2", "--workers", "2", "--once"]
    agent = ["torchrun", "--nproc-per-node", "2", "--max-restarts", "3"]
    program = [PROGRAM, "--output", output, *TRAINING, *kill(tmp_path, "rank")]
    check(start(tmp_path, options, [*agent, *program]), tmp_path)
    assert (tmp_path / "killed").exists()
    assert digest(Path(output)) == undisturbed
