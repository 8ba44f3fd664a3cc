# SPDX-License-Identifier: Apache-2.0
"""What the coordinator compares between the ranks beside the declared tensors."""

from __future__ import annotations

import sys

import torch

from tributary.torch._declare import Declared, Role


def compared_settings(declared: Declared) -> list[str]:
    """Settings of the job that change nothing: the part that differs between ranks
    is a comment of YAML. The coordinator compares the settings of all ranks as
    texts, and its message shows both."""
    if any(entry.role is Role.BUFFER for entry in declared.entries):
        return [_comment(f"buffers={declared.buffers}")]
    return []


def _comment(text: str) -> str:
    return f"program={{}}  # {text}"


def arithmetic_text() -> str:
    """What the bits of gradients depend on, beside the program."""
    parts = [
        f"torch {torch.__version__}",
        f"instructions {torch.backends.cpu.get_cpu_capability()}",
        f"{torch.get_num_threads()} threads",
        f"python {sys.version_info.major}.{sys.version_info.minor}",
    ]
    if torch.cuda.is_available():
        parts.append(f"cuda {torch.version.cuda} {torch.cuda.get_device_name()}")
    return ", ".join(parts)
