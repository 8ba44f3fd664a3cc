# SPDX-License-Identifier: Apache-2.0
"""The commands of the wheel: each runs one of the programs that it contains."""

from __future__ import annotations

import os
import sys
from pathlib import Path

PROGRAMS = Path(__file__).parent / "bin"


def main() -> None:
    """`tributary`. Programs of `tributary run` use the Python of this package."""
    if sys.argv[1:2] == ["run"]:
        os.environ.setdefault("PYTHON", sys.executable)
    become("tributary")


def coordinator() -> None:
    become("tributary-coordinator")


def server() -> None:
    become("tributary-server")


def worker() -> None:
    become("tributary-worker")


def become(name: str) -> None:
    """Replaces this process by a program, with the same arguments.

    SystemExit: the package does not contain it.
    """
    program = PROGRAMS / name
    if not program.is_file():
        sys.exit(
            f"{program} is missing: this package was built without the programs; "
            "install the wheel (python/README.md)"
        )
    os.execv(program, [str(program), *sys.argv[1:]])


if __name__ == "__main__":
    main()
