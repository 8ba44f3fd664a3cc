# SPDX-License-Identifier: Apache-2.0
"""The binding itself, without servers. Each test starts a process, since this
process uses the fake."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import fake_native
import pytest

import tributary

pytestmark = pytest.mark.cluster
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(tributary.__file__).parent.parent)}


def output_of(program: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("rows", [1, 2, 1000])
def test_the_order_is_that_of_the_fake(rows: int) -> None:
    program = (
        "import sys; from tributary import _native\n"
        "rows, seed, epoch = map(int, sys.argv[1:])\n"
        "print(_native.shuffled_order(rows, seed, epoch).tolist())"
    )
    for seed, epoch in ((1, 0), (2**63 + 5, 7)):
        wanted = fake_native.shuffled_order(rows, seed, epoch).tolist()
        assert output_of(program, str(rows), str(seed), str(epoch)) == f"{wanted}\n"


def test_the_checksum_is_crc32c() -> None:
    program = (
        "import numpy; from tributary._native import crc32c\n"
        "print(crc32c(b'123456789'), crc32c(b'6789', crc32c(b'12345')))\n"
        "print(crc32c(numpy.frombuffer(b'123456789', 'u1')))"
    )
    # RFC 3720's check value.
    assert output_of(program).split() == [str(0xE3069283)] * 3


def test_statuses_become_exceptions(tmp_path: Path) -> None:
    program = (
        "import sys, tributary, numpy\n"
        "from tributary import _native\n"
        "def kind(call):\n"
        "    try: call()\n"
        "    except tributary.Error as error: print(type(error).__name__)\n"
        "kind(lambda: _native.Checkpoint.open(sys.argv[1]))\n"
        "kind(lambda: _native.shuffled_order(0, 1, 1))\n"
        "client = tributary.connect('127.0.0.1:1', rank=0, join_timeout=0.5)\n"
        "kind(lambda: client.declare({'w': numpy.ones(1)}, lr=0.1))\n"
    )
    wanted = ["Missing", "InvalidSetting", "Unavailable"]
    assert output_of(program, str(tmp_path)).split() == wanted


def test_ctrl_c_ends_a_wait_for_the_coordinator() -> None:
    # A process started in the background may have inherited that it ignores SIGINT.
    program = (
        "import signal, tributary, numpy\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "client = tributary.connect('127.0.0.1:1', rank=0, join_timeout=600)\n"
        "print('joining', flush=True)\n"
        "client.declare({'w': numpy.ones(1)}, lr=0.1)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "joining\n"
        process.send_signal(signal.SIGINT)
        try:
            _, errors = process.communicate(timeout=300)
        finally:
            process.kill()
    assert "KeyboardInterrupt" in errors
