# SPDX-License-Identifier: Apache-2.0
"""Buffers of every type keep their bits on real servers and in checkpoints."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from runs import check, start  # noqa: E402

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("wire", ["float32", "bfloat16"])
def test_buffers_keep_their_bits(tmp_path: Path, wire: str) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(
        f"strategy: {{parameter_server: {{wire: {wire}, weights_wire: {wire}}}}}\n"
    )
    options = ["--servers", "2", "--workers", "2", "--job", str(job)]
    program = [str(HERE / "buffers_program.py"), str(tmp_path / "run")]
    done = start(tmp_path, options, program)
    check(done, tmp_path)
    log = (tmp_path / "run" / "logs" / "worker-0.log").read_text()
    assert "all buffers are the same" in log


DECLARES = """
import os, torch, tributary.torch as tributary
rank = int(os.environ["TRIBUTARY_RANK"])
model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
with tributary.connect() as cluster:
    cluster.optimizer(model, lr=0.1, {keywords})
"""


def outcome_of(folder: Path, program: str) -> str:
    """The exit code and the output of a job of two ranks."""
    (folder / "program.py").write_text(program)
    done = start(folder, ["--workers", "2"], [str(folder / "program.py")])
    return f"{done.returncode} {done.stdout} {done.stderr}"


def test_ranks_that_treat_buffers_differently(tmp_path: Path) -> None:
    same = DECLARES.format(keywords='buffers="rank0"')
    (tmp_path / "same").mkdir()
    assert outcome_of(tmp_path / "same", same).startswith("0 ")
    other = DECLARES.format(keywords='buffers=["average", "rank0"][rank]')
    outcome = outcome_of(tmp_path, other)
    assert outcome.startswith("1 ")
    assert re.search('buffers=(average|rank0)" instead of', outcome), outcome


def test_ranks_with_different_constants(tmp_path: Path) -> None:
    table = "torch.manual_seed({seed})\nmodel.register_buffer(%s)\nwith tributary"
    table = table % "'table', torch.rand(3), persistent=False"
    program = DECLARES.format(keywords="").replace("with tributary", table)
    (tmp_path / "same").mkdir()
    same = outcome_of(tmp_path / "same", program.format(seed=7))
    assert same.startswith("0 ")
    outcome = outcome_of(tmp_path, program.format(seed="rank"))
    assert outcome.startswith("1 ")
    assert "buffer table (persistent=False) with checksum" in outcome
