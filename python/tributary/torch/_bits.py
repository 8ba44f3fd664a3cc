# SPDX-License-Identifier: Apache-2.0
"""Tensors that travel as their bits (tributary/_bits.py), and their bytes."""

from __future__ import annotations

import torch

# float32 holds every integer up to here.
EXACT_INTEGERS = 2**24
# Larger integers travel as their bits from the start, because counters grow.
_EXACT_MEANS = 2**20
# Beyond this number, the sum over the ranks may become infinite.
_LARGEST = 2.0**100

_UNSIGNED = tuple(
    getattr(torch, name) for name in ("uint32", "uint64") if hasattr(torch, name)
)
_ALWAYS = (
    *(torch.bool, torch.float64, torch.complex64, torch.complex128),
    *_UNSIGNED,
)
# The types whose bits can travel: those that numpy knows, and bfloat16.
WITH_BITS = (
    *_ALWAYS,
    *(torch.float16, torch.bfloat16, torch.float32, torch.int32, torch.int64),
)
_BIT_VALUES = (1, 2, 4, 8, 16, 32, 64, 128)


def needs_bits(tensor: torch.Tensor) -> bool:
    """Whether float32 cannot hold the values of this buffer or their mean, now or
    later. Waits for the device."""
    if tensor.dtype in _ALWAYS or tensor.dtype.is_complex:
        return True
    if tensor.dtype.is_floating_point:
        return not bool((tensor.float().abs() < _LARGEST).all())
    if tensor.dtype in (torch.int32, torch.int64):
        large = (tensor >= _EXACT_MEANS) | (tensor <= -_EXACT_MEANS)
        return bool(large.any())
    return False


def bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    """[bytes], uint8, on the tensor's device."""
    flat = tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
    if flat.dtype is not torch.bool:
        return flat.view(torch.uint8)
    padded = torch.nn.functional.pad(flat.to(torch.uint8), (0, -flat.numel() % 8))
    values = torch.tensor(_BIT_VALUES, dtype=torch.uint8, device=flat.device)
    return (padded.view(-1, 8) * values).sum(1, dtype=torch.uint8)


def put_bytes(data: torch.Tensor, tensor: torch.Tensor) -> None:
    """Sets the tensor to these bytes: uint8, on any device."""
    data = data.to(tensor.device, non_blocking=tensor.is_cuda)
    if tensor.dtype is torch.bool:
        values = torch.tensor(_BIT_VALUES, dtype=torch.uint8, device=data.device)
        bits = (data.view(-1, 1) & values) != 0
        tensor.copy_(bits.view(-1)[: tensor.numel()].view(tensor.shape))
    else:
        tensor.copy_(data.view(tensor.dtype).view(tensor.shape))
