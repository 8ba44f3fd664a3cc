# SPDX-License-Identifier: Apache-2.0
"""Keeps a forward pass over rows of weight 0 from changing buffers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch


class Spared:
    """While this object exists, the forward pass of a module does not change the
    module's own float buffers, such as running averages. Counters of batches still
    count, and the program's own writes into buffers still take effect.

    A compiled model does not call hooks that it was compiled without: then `settle`
    gives all float buffers their values back."""

    def __init__(self, modules: Iterable[torch.nn.Module]) -> None:
        self._before: dict[int, list[tuple[torch.Tensor, torch.Tensor]]] = {}
        self._hooks: list[Any] = []
        self._all: list[tuple[torch.Tensor, torch.Tensor]] = []  # with their values
        self._called = False
        for module in modules:
            if not _floats_of(module):
                continue
            self._all += [(b, b.detach().clone()) for b in _floats_of(module)]
            self._hooks += [
                module.register_forward_pre_hook(self._begin, prepend=True),
                module.register_forward_hook(self._end, always_call=True),
            ]

    def settle(self) -> None:
        """Call it before the step sends the buffers."""
        if not self._called:
            for buffer, value in self._all:
                buffer.detach().copy_(value)

    def end(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        self._before.clear()
        self._all.clear()

    def _begin(self, module: torch.nn.Module, _: Any) -> None:
        self._called = True
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
