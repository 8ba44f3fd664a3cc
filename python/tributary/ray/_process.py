# SPDX-License-Identifier: Apache-2.0
"""Child processes that cannot outlive this one, and the coordinator as one."""

from __future__ import annotations

import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from tributary._errors import Error, Missing, Timeout, Unavailable

_PROGRAMS = Path(__file__).parents[1] / "bin"
# Before the program starts, asks the kernel to kill it when its parent dies.
# preexec_fn would run Python between fork and exec, beside Ray's threads.
_START = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL
if os.getppid() != int(sys.argv[1]):
    os._exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""
_LISTENS = re.compile(r".*: coordinator (\S+) waits for servers.*")
_START_SECONDS = 60


def find_program(name: str) -> str:
    """The path of a program of this package, or else of the PATH.

    Missing: there is none.
    """
    contained = _PROGRAMS / name
    path = str(contained) if contained.is_file() else shutil.which(name)
    if path is None:
        raise Missing(
            f"there is no {name} on this node: neither {contained} nor in the PATH"
        )
    return path


def start(
    words: list[str],
    stdout: int | None = None,
    stderr: int | None = None,
    text: str = "",
) -> subprocess.Popen[str]:
    """Starts a program that is killed when this process, or the thread that calls
    this, ends. Ctrl-C on the terminal does not reach it. It finds `text` on its
    standard input."""
    process = subprocess.Popen(
        [sys.executable, "-S", "-E", "-c", _START, str(os.getpid()), *words],
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=stderr,
        text=True,
        start_new_session=True,
    )
    assert process.stdin is not None
    try:
        process.stdin.write(text)  # fits into the pipe
        process.stdin.close()
    except BrokenPipeError:
        pass  # it has ended; its exit code says why
    return process


def make_keys(roles: list[str]) -> dict[str, str]:
    """New certificates of one run: by role, the input of a daemon with `--tls -`. The
    folder in which they were made, with the authority's key, is removed before this
    returns, so that nobody can issue another certificate.

    Unavailable: they cannot be made.
    """
    with tempfile.TemporaryDirectory(prefix="tributary-tls-") as folder:
        made = subprocess.run(
            [find_program("tributary"), "certificates", "--out", folder],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode != 0:
            raise Unavailable(made.stderr.strip())
        return {role: _bundle(Path(folder, role)) for role in roles}


def _bundle(own: Path) -> str:
    """Certificate, key and authority of one role."""
    return (
        json.dumps(
            {
                "authority": (own / "ca.crt").read_text(),
                "certificate": (own / "tls.crt").read_text(),
                "key": (own / "tls.key").read_text(),
                "token": "",
                "page_token": "",
            }
        )
        + "\n"
    )


class Coordinator:
    """A `tributary-coordinator` on this machine, which writes the run directory.

    `words`: further words of its command line. `keys`: its certificate.
    """

    def __init__(self, words: list[str], host: str, keys: str) -> None:
        program = find_program("tributary-coordinator")
        self._process = start(
            [program, "--listen", f"{host}:0", "--tls", "-", *words],
            subprocess.PIPE,
            subprocess.PIPE,
            keys,
        )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._errors: list[str] = []
        self._readers = [
            threading.Thread(target=read, daemon=True)
            for read in (self._read_lines, self._read_errors)
        ]
        for reader in self._readers:
            reader.start()
        try:
            self.address = self._await_address()
        except BaseException:
            self.kill()
            raise

    def lines(self) -> list[str]:
        """What it has printed since the last call."""
        lines = []
        while not self._lines.empty():
            lines.append(self._lines.get())
        return lines

    def exit_code(self) -> int | None:
        """None: it is alive. Else `lines` has all of its lines."""
        code = self._process.poll()
        if code is not None:
            for reader in self._readers:
                reader.join(_START_SECONDS)
        return code

    def error(self) -> str:
        """The last line that is an error of the command; empty: there is none."""
        marked = [line for line in self._errors if line.startswith("tributary")]
        return (marked or self._errors or [""])[-1].strip()

    def stop(self, seconds: float) -> None:
        """Asks it to stop at the next common step, with a checkpoint. Kills it
        when it has not ended after so long, or at Ctrl-C."""
        try:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            pass
        finally:
            self.kill()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def _read_lines(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.rstrip("\n"))

    def _read_errors(self) -> None:
        """Also reads its log, and keeps the last lines; the run directory has all."""
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._errors = [*self._errors[-20:], line]

    def _await_address(self) -> str:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            try:
                line = self._lines.get(timeout=0.1)
            except queue.Empty:
                if self.exit_code() is not None and self._lines.empty():
                    raise Unavailable(self.error()) from None
                continue
            if found := _LISTENS.fullmatch(line):
                return found[1]
        raise Timeout(f"the coordinator did not listen within {_START_SECONDS} s")


def failure(code: int, message: str) -> Error:
    """The error of a coordinator that has ended without success."""
    if code < 0:
        return Unavailable(f"the coordinator was killed by signal {-code}")
    return Error(message or f"the coordinator exited with code {code}")
