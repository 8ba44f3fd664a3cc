# SPDX-License-Identifier: Apache-2.0
"""Trains models on Tributary's parameter servers.

`tributary.torch` trains PyTorch models; `connect` and `Client` are for numpy
arrays and for all arrays that support DLPack.
"""

from __future__ import annotations

from tributary._errors import (
    Cancelled,
    DamagedData,
    Error,
    InvalidSetting,
    Missing,
    Misuse,
    ModelMismatch,
    PlaceTaken,
    Stopped,
    Timeout,
    Unavailable,
    WrongState,
)
from tributary.checkpoint import load_checkpoint, save_safetensors
from tributary.client import Client, connect
from tributary.follower import Follower, Snapshot, follow

__version__ = "0.1.0"
__all__ = [
    "Cancelled",
    "Client",
    "DamagedData",
    "Error",
    "Follower",
    "InvalidSetting",
    "Missing",
    "Misuse",
    "ModelMismatch",
    "PlaceTaken",
    "Snapshot",
    "Stopped",
    "Timeout",
    "Unavailable",
    "WrongState",
    "connect",
    "follow",
    "load_checkpoint",
    "save_safetensors",
]
