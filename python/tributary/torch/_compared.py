# SPDX-License-Identifier: Apache-2.0
"""Texts by which the ranks of a job are compared, beside the declared tensors."""

from __future__ import annotations

import sys
import zlib

import torch

from tributary.torch._bits import bytes_of
from tributary.torch._declare import Declared, Model, Role


def compared_settings(model: Model, declared: Declared) -> list[str]:
    """Settings of the job about buffers. The coordinator compares the settings of all
    ranks as texts, and its message shows both. Checksums change nothing: they are
    comments of YAML."""
    settings = []
    if isinstance(model, torch.nn.Module) and declared.buffers != "local":
        settings += [
            _comment(f"buffer {name} (persistent=False) with checksum {checksum:08x}")
            for name, checksum in _checksums_of(model).items()
        ]
    if any(entry.role is Role.BUFFER for entry in declared.entries):
        settings.append(f"program.buffers={declared.buffers}")
    return settings


def _checksums_of(model: torch.nn.Module) -> dict[str, int]:
    """By name, for the buffers that are not saved, so that ranks do not send them."""
    saved = model.state_dict(keep_vars=True)
    return {
        name: zlib.crc32(bytes_of(buffer).cpu().numpy())
        for name, buffer in model.named_buffers()
        if name not in saved
        and buffer.layout is torch.strided
        and not (buffer.is_quantized or buffer.is_meta)
    }


def _comment(text: str) -> str:
    return f"program={{}}  # {text}"


def arithmetic_text() -> str:
    """Names all that the bits of gradients depend on, beside the program."""
    parts = [
        f"torch {torch.__version__}",
        f"instructions {torch.backends.cpu.get_cpu_capability()}",
        f"{torch.get_num_threads()} threads",
        f"python {sys.version_info.major}.{sys.version_info.minor}",
    ]
    if torch.cuda.is_available():
        parts.append(f"cuda {torch.version.cuda} {torch.cuda.get_device_name()}")
        parts.append(f"cudnn {torch.backends.cudnn.version()}")
    return ", ".join(parts)
