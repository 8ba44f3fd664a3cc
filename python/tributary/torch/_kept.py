# SPDX-License-Identifier: Apache-2.0
"""Gradients of a step that have not been sent yet, which only autograd may change."""

from __future__ import annotations

import functools

import torch

from tributary._errors import Misuse


class Kept:
    """A gradient after a backward pass."""

    def __init__(self, name: str, gradient: torch.Tensor) -> None:
        self._name = name
        self._gradient = gradient
        self._version = gradient._version

    def check(self, now: torch.Tensor | None, unscaled: bool = False) -> None:
        """Misuse: the parameter's gradient, `now`, is no longer this one. unscaled:
        a GradScaler has unscaled it since."""
        if now is not self._gradient:
            raise Misuse(
                f"the gradient of {self._name} was removed within a step; call "
                "optimizer.zero_grad(), which waits for the end of a step of several "
                "batches, and not that of the model"
            )
        changes = _unscaling(now.device.type) if unscaled else 0
        if not now.is_sparse and now._version != self._version + changes:
            raise Misuse(
                f"the gradient of {self._name} was changed after backward(), while it "
                "is that of a part of the step or of this rank alone; clip with "
                "cluster.optimizer(..., clip_norm=...), and scale the loss instead of "
                "gradients"
            )


@functools.cache
def _unscaling(device: str) -> int:
    """By how much unscaling increases a gradient's version: torch does not say."""
    one, found = torch.ones(1, device=device), torch.zeros(1, device=device)
    before = one._version
    torch._amp_foreach_non_finite_check_and_unscale_([one], found, torch.ones_like(one))
    return one._version - before
