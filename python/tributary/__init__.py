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

__version__ = "0.1.0"
__all__ = [
    "Cancelled",
    "Client",
    "DamagedData",
    "Error",
    "InvalidSetting",
    "Missing",
    "Misuse",
    "ModelMismatch",
    "PlaceTaken",
    "Stopped",
    "Timeout",
    "Unavailable",
    "WrongState",
    "connect",
    "load_checkpoint",
    "save_safetensors",
]
