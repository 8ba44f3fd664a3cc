# SPDX-License-Identifier: Apache-2.0
"""Checkpoints as arrays, without servers, and safetensors."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tributary import _native
from tributary._arrays import float32_copy
from tributary._errors import Missing

Arrays = dict[str, npt.NDArray[np.float32]]

_MANIFEST = "manifest.ckpt"


def load_checkpoint(path: str | os.PathLike[str], *, optimizer: bool = False) -> Arrays:
    """The float32 tensors of a Tributary checkpoint, by the names of the model.

    path: a checkpoint, or a directory of checkpoints (a run directory too),
    whose newest is read. optimizer: also the optimizer's tensors, as
    "optimizer.STATE.PARAMETER". DamagedData: use an older checkpoint. Missing:
    there is none.
    """
    reader = _native.Checkpoint.open(str(_folder_of(Path(path))))
    states = ["", *(reader.state_names if optimizer else ())]
    tensors: Arrays = {}
    for tensor, state in enumerate(states):
        for parameter, (name, shape) in enumerate(reader.parameters):
            values = np.empty(shape, np.float32)
            reader.read(tensor, parameter, values)
            tensors[f"optimizer.{state}.{name}" if state else name] = values
    return tensors


def _folder_of(path: Path) -> Path:
    if (path / _MANIFEST).is_file():
        return path
    for folder in (path, path / "checkpoints"):
        complete = sorted(p.parent for p in folder.glob(f"step-*/{_MANIFEST}"))
        if complete:
            return complete[-1]
    raise Missing(f"{path} is not a checkpoint, and no checkpoint is in it")


def save_safetensors(
    path: str | os.PathLike[str], tensors: Mapping[str, npt.ArrayLike]
) -> None:
    """Writes float32 tensors as a safetensors file, which is whole or absent."""
    arrays = {name: float32_copy(name, tensor) for name, tensor in tensors.items()}
    header: dict[str, object] = {}
    at = 0
    for name, array in arrays.items():
        header[name] = {
            "dtype": "F32",
            "shape": list(array.shape),
            "data_offsets": [at, at + array.nbytes],
        }
        at += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    partial = f"{os.fspath(path)}.partial"
    with open(partial, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for array in arrays.values():
            file.write(array.tobytes())
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)
