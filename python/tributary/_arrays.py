# SPDX-License-Identifier: Apache-2.0
"""Arrays of any library as numpy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tributary._errors import Misuse


def host_view(name: str, array: Any) -> npt.NDArray[Any]:
    """A numpy view of an array, or a copy of one on another device.

    Misuse: it does not hold numbers.
    """
    view = array if isinstance(array, np.ndarray) else _imported(array)
    if view.dtype.kind not in "fiu" and str(view.dtype) != "bfloat16":
        raise Misuse(f"{name} wants numbers, got {view.dtype}")
    return view


def _imported(array: Any) -> npt.NDArray[Any]:
    if hasattr(array, "__dlpack__"):
        try:
            return np.from_dlpack(array)
        except (BufferError, RuntimeError, TypeError):
            pass  # From another device, or of a type that DLPack lacks.
    return np.asarray(array)


def float32_copy(name: str, array: Any) -> npt.NDArray[np.float32]:
    """In C order, little-endian."""
    return np.array(host_view(name, array), dtype="<f4", order="C")


def stored_copy(name: str, array: Any) -> npt.NDArray[Any]:
    """As a safetensors file holds it: integers and booleans as they are, other
    numbers as float32; in C order, little-endian."""
    view = array if isinstance(array, np.ndarray) else _imported(array)
    if view.dtype.kind not in "iub":
        return float32_copy(name, view)
    return np.array(view, dtype=view.dtype.newbyteorder("<"), order="C")
