# SPDX-License-Identifier: Apache-2.0
"""Real coordinators, servers and ranks, each started by hand."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tributary

ROOT = Path(__file__).parents[3]
# Only a process that hangs reaches it.
DEADLINE = 300

# Runs the statements of the first argument, and prints the error that ends them.
_RANK = """
import sys, numpy as np, tributary
try:
    exec(sys.argv[1])
except tributary.Error as error:
    print(f"{type(error).__name__}: {error}", flush=True)
"""


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def environment(**changes: str) -> dict[str, str]:
    """This process' environment with changes, without a launcher's variables."""
    variables = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    for name in [*variables]:
        if name.startswith(("TRIBUTARY_RANK", "TRIBUTARY_WORLD", "TRIBUTARY_COORD")):
            del variables[name]
    return {**variables, **changes}


def program() -> str:
    """The path of `tributary`, beside which the other programs are."""
    in_package = Path(tributary.__file__).parent / "bin" / "tributary"
    default = str(in_package) if in_package.is_file() else "tributary"
    return os.environ.get("TRIBUTARY_PROGRAM", default)


class Rank:
    """A process that runs Python statements with `tributary` and numpy `np`."""

    def __init__(self, statements: str, *, cwd: Path | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _RANK, statements],
            env=environment(),
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_for(self, line: str) -> None:
        """Returns when the process has printed this line."""
        assert self.process.stdout is not None
        for printed in self.process.stdout:
            if printed.strip() == line:
                return
        raise AssertionError(f"{line} was not printed: {self.errors()}")

    def errors(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.read()

    def output(self) -> str:
        """All that it prints, after its end. Fails when it hangs."""
        try:
            output, errors = self.process.communicate(timeout=DEADLINE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            pytest.fail(f"hangs: {self.process.communicate()}")
        return output + errors


class Job:
    """A coordinator and servers. Use it in a `with` block, which kills them."""

    def __init__(
        self,
        folder: Path,
        *options: str,
        servers: int = 1,
        workers: int = 1,
    ) -> None:
        self.folder = folder
        self.address = f"127.0.0.1:{free_port()}"
        self._children: list[subprocess.Popen[bytes]] = []
        run = folder / "run"
        counts = ["--servers", str(servers), "--workers", str(workers)]
        listen = ["--listen", self.address, "--run-dir", str(run)]
        self._start("coordinator", *counts, *listen, *options)
        self.servers = [
            self._start("server", "--coordinator", self.address) for _ in range(servers)
        ]

    def _start(self, kind: str, *arguments: str) -> subprocess.Popen[bytes]:
        log = (self.folder / f"{kind}-{len(self._children)}.log").open("wb")
        with log:
            child = subprocess.Popen(
                [f"{program()}-{kind}", *arguments],
                stdout=log,
                stderr=log,
                env=environment(),
                cwd=self.folder,
            )
        self._children.append(child)
        return child

    def rank(self, rank: int, statements: str, connect: str = "") -> Rank:
        """Starts a rank. `client` is its connection, with keywords `connect`."""
        opening = (
            f"client = tributary.connect({self.address!r}, rank={rank}, {connect})"
        )
        return Rank(f"{opening}\n{statements}")

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *_: Any) -> None:
        for child in self._children:
            child.send_signal(signal.SIGKILL)
        for child in self._children:
            child.wait()
