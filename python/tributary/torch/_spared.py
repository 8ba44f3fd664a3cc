# SPDX-License-Identifier: Apache-2.0
"""Buffers that a forward pass over rows of weight 0 leaves as they are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch


class Spared:
    """While it is there, the forward pass of a module does not change the module's own
    float buffers, such as running averages. Counters of batches go on, and so does what
    the program itself writes into buffers."""

    def __init__(self, modules: Iterable[torch.nn.Module]) -> None:
        self._before: dict[int, list[tuple[torch.Tensor, torch.Tensor]]] = {}
        self._hooks: list[Any] = []
        for module in modules:
            if not _floats_of(module):
                continue
            self._hooks += [
                module.register_forward_pre_hook(self._begin, prepend=True),
                module.register_forward_hook(self._end, always_call=True),
            ]

    def end(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        self._before.clear()

    def _begin(self, module: torch.nn.Module, _: Any) -> None:
        self._before[id(module)] = [
            (buffer, buffer.detach().clone()) for buffer in _floats_of(module)
        ]

    def _end(self, module: torch.nn.Module, *_: Any) -> None:
        for buffer, value in self._before.pop(id(module), ()):
            # Through .data: autograd has saved the buffer for backward, where batch
            # norm does not use it, and would refuse another version of it.
            buffer.data.copy_(value)


def _floats_of(module: torch.nn.Module) -> list[torch.Tensor]:
    return [
        buffer
        for buffer in module._buffers.values()
        if buffer is not None and buffer.is_floating_point()
    ]
