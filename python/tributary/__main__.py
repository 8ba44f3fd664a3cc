"""The command `tributary`: runs the program that the wheel contains."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> None:
    """Replaces this process by the program, with the same arguments."""
    program = Path(__file__).parent / "bin" / "tributary"
    if not program.is_file():
        sys.exit(
            f"{program} is missing: this package was built without the programs; "
            "install the wheel (python/README.md)"
        )
    os.execv(program, [str(program), *sys.argv[1:]])


if __name__ == "__main__":
    main()
