# SPDX-License-Identifier: Apache-2.0
"""Buffers of every type keep their bits on real servers and in checkpoints."""

from __future__ import annotations

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
