# SPDX-License-Identifier: Apache-2.0
"""Random numbers that depend on the job's position and not on earlier draws."""

from __future__ import annotations

import hashlib
import random
import struct
import sys

import torch


def reseed(seed: int, rank: int, position: int, part: int) -> None:
    """Seeds torch (on every device), `random` and numpy where it is loaded, as a
    function of the arguments. part: of the position, for example a batch."""
    bits = _mixed(seed, rank, position, part)
    torch.manual_seed(bits)
    random.seed(bits)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(bits % 2**32)


def reseed_generator(
    generator: torch.Generator, seed: int, rank: int, epoch: int
) -> None:
    """Seeds a generator of the program for an epoch, as a function of the arguments.
    seed: the one that the program has given it."""
    generator.manual_seed(_mixed(seed, rank, epoch, -1))


def _mixed(seed: int, rank: int, position: int, part: int) -> int:
    packed = struct.pack("<QQqq", seed % 2**64, rank, position, part)
    digest = hashlib.blake2b(packed, digest_size=8, person=b"tributary").digest()
    return int.from_bytes(digest, "little")
