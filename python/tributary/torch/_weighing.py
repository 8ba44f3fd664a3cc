# SPDX-License-Identifier: Apache-2.0
"""Gradients of a batch that count by its rows among the batches of a step."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

import torch


class Weighing:
    """Multiplies gradients by `share` before autograd adds them to those of the step.

    That happens in the nodes of autograd that accumulate, so torch.autograd.grad sees
    gradients as they are. before: is called with the parameter's index.
    """

    def __init__(self, before: Callable[[int], None]) -> None:
        self.share = 1.0  # the factor of the next gradients
        self._before = before
        self._hooks: dict[int, tuple[Any, Any]] = {}  # node and handle, by index

    def add(self, index: int, parameter: torch.Tensor) -> None:
        """A parameter that requires a gradient; nothing if it was added before."""
        if index in self._hooks:
            return
        with torch.enable_grad():
            view = parameter.view_as(parameter)
        assert view.grad_fn is not None
        node = view.grad_fn.next_functions[0][0]
        assert node is not None
        hook = functools.partial(_weigh, weakref.ref(self), index)
        self._hooks[index] = node, node.register_prehook(hook)

    def add_late(self, index: int, parameter: torch.Tensor) -> None:
        """A parameter whose first gradient has accumulated already, because it did
        not require a gradient when the loop began."""
        if index in self._hooks:
            return
        self.add(index, parameter)
        if parameter.grad is not None:
            parameter.grad = self._weighed(parameter.grad)

    def end(self) -> None:
        for _, handle in self._hooks.values():
            handle.remove()
        self._hooks.clear()

    def weigh(self, index: int, gradient: torch.Tensor) -> torch.Tensor:
        self._before(index)
        return self._weighed(gradient)

    def _weighed(self, gradient: torch.Tensor) -> torch.Tensor:
        if self.share == 1.0:
            return gradient
        # Rows of weight 0 do not count, whatever their gradient is.
        return gradient * self.share if self.share else torch.zeros_like(gradient)


def _weigh(
    this: weakref.ref[Weighing], index: int, gradients: tuple[torch.Tensor, ...]
) -> tuple[torch.Tensor, ...] | None:
    weighing = this()
    if weighing is None or gradients[0] is None:
        return None
    return (weighing.weigh(index, gradients[0]),)
