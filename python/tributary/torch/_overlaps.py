# SPDX-License-Identifier: Apache-2.0
"""Tensors that share memory, of any strides."""

from __future__ import annotations

import math

import torch


def extent_of(tensor: torch.Tensor) -> tuple[int, int]:
    """[begin, end) of the addresses from the first to the last element."""
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    last = sum((side - 1) * stride for side, stride in steps)
    begin = tensor.data_ptr()
    return begin, begin + (last + 1) * tensor.element_size()


def repeats_elements(tensor: torch.Tensor) -> bool:
    """Whether several elements are in the same place, as expand() makes them."""
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    return any(side > 1 and stride == 0 for side, stride in steps)


def overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors on a device share a byte. Other columns of a matrix do
    not, although their extents overlap."""
    (begin, end), (other_begin, other_end) = extent_of(one), extent_of(other)
    if end <= other_begin or other_end <= begin:
        return False
    if one.is_contiguous() and other.is_contiguous():
        return True
    start = min(begin, other_begin)
    unit = math.gcd(one.element_size(), other.element_size(), begin - other_begin)
    used = torch.zeros((max(end, other_end) - start) // unit, dtype=torch.bool)
    _units_of(one, used, start, unit).fill_(True)
    return bool(_units_of(other, used, start, unit).any())


def _units_of(
    tensor: torch.Tensor, used: torch.Tensor, start: int, unit: int
) -> torch.Tensor:
    """The part of `used`, whose first unit is at address `start`, that is the
    tensor's memory."""
    parts = tensor.element_size() // unit
    return used.as_strided(
        (*tensor.shape, parts),
        (*(stride * parts for stride in tensor.stride()), 1),
        (tensor.data_ptr() - start) // unit,
    )
