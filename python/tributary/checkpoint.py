# SPDX-License-Identifier: Apache-2.0
"""Checkpoints as arrays, without servers, and safetensors."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tributary import _native
from tributary._arrays import stored_copy
from tributary._bits import decoded
from tributary._errors import Missing

Arrays = dict[str, npt.NDArray[Any]]

_MANIFEST = "manifest.ckpt"
# By numpy's names.
_DTYPES = {
    **{"f4": "F32", "b1": "BOOL"},
    **{"i1": "I8", "i2": "I16", "i4": "I32", "i8": "I64"},
    **{"u1": "U8", "u2": "U16", "u4": "U32", "u8": "U64"},
}


def load_checkpoint(path: str | os.PathLike[str], *, optimizer: bool = False) -> Arrays:
    """The tensors of a Tributary checkpoint, by the names of the model: float32, except
    for buffers that float32 cannot hold, which keep their types.

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
            if state:
                tensors[f"optimizer.{state}.{name}"] = values
            else:
                name, values = decoded(name, values)
                tensors[name] = values
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
    """Writes tensors as a safetensors file, atomically: floating-point
    numbers as float32, integers and booleans as they are."""
    arrays = {name: stored_copy(name, tensor) for name, tensor in tensors.items()}
    header: dict[str, object] = {}
    at = 0
    for name, array in arrays.items():
        header[name] = {
            "dtype": _DTYPES[array.dtype.str.lstrip("<|")],
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
