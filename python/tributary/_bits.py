# SPDX-License-Identifier: Apache-2.0
"""Tensors that travel as their bits, as the servers and checkpoints hold them.

The servers hold float32 and compute means. A value that float32 cannot hold, such as
an integer of 40 bits, an infinity or a mask, is written as its bytes, one in each
float32, in memory order; eight booleans share a byte. The mean of equal bytes,
rounded, is that byte. The name has the type and shape: "mask.as_bits(bool,4,4)".
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

_NAME = re.compile(r"(.+)\.as_bits\(([a-z0-9]+)((?:,\d+)*)\)", re.DOTALL)


def name_of_bits(name: str, dtype: str, shape: Sequence[int]) -> str:
    return f"{name}.as_bits({','.join([dtype, *map(str, shape)])})"


def decoded(name: str, values: npt.NDArray[np.float32]) -> tuple[str, Any]:
    """A tensor of a checkpoint, by the name of the model: `values` as they are, or
    the tensor whose bytes they hold (bfloat16 as float32)."""
    match = _NAME.fullmatch(name)
    if match is None:
        return name, values
    own_name, dtype, sides = match.groups()
    shape = [int(side) for side in sides.split(",")[1:]]
    data = np.rint(values).astype(np.uint8)
    if dtype == "bool":
        bits = np.unpackbits(data, count=math.prod(shape), bitorder="little")
        return own_name, bits.astype(np.bool_).reshape(shape)
    if dtype == "bfloat16":
        upper = data.view(np.uint16).astype(np.uint32)
        return own_name, (upper << 16).view(np.float32).reshape(shape)
    return own_name, data.view(dtype).reshape(shape)
