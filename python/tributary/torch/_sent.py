# SPDX-License-Identifier: Apache-2.0
"""Gradients that have been sent, and checks that they have not changed since."""

from __future__ import annotations

from typing import Any

import torch

from tributary._errors import Misuse


def _noting(name: str) -> Any:
    """A method of torch.Tensor before which the value is kept."""

    def call(self: SentGradient, *arguments: Any, **keywords: Any) -> Any:
        self.keep()
        return getattr(torch.Tensor, name)(self, *arguments, **keywords)

    return call


class SentGradient(torch.Tensor):
    """The class of a gradient from its sending to the end of the step. Changes
    increase its version. Writes through `.data`, numpy and the like do not, so the
    tensor keeps a copy of its value before it first exposes its memory."""

    __torch_function__ = torch._C._disabled_torch_function_impl
    kept: torch.Tensor | None = None

    def keep(self) -> None:
        if self.kept is None:
            self.kept = self.detach().clone()

    @property
    def data(self) -> torch.Tensor:
        self.keep()
        return torch.Tensor.data.__get__(self)  # type: ignore[attr-defined]

    @data.setter
    def data(self, value: torch.Tensor) -> None:
        self.keep()
        torch.Tensor.data.__set__(self, value)  # type: ignore[attr-defined]

    numpy = _noting("numpy")
    data_ptr = _noting("data_ptr")
    storage = _noting("storage")
    untyped_storage = _noting("untyped_storage")
    _indices = _noting("_indices")
    _values = _noting("_values")
    values = _noting("values")
    __array__ = _noting("__array__")
    __dlpack__ = _noting("__dlpack__")

    def __deepcopy__(self, memo: dict[int, Any]) -> torch.Tensor:
        return self.detach().clone()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.detach().__reduce_ex__(protocol)

    def __repr__(self, **keywords: Any) -> str:
        return self.detach().__repr__(**keywords)


class Sent:
    """One gradient that has been sent."""

    def __init__(self, name: str, gradient: torch.Tensor) -> None:
        self._name = name
        self._gradient = gradient
        self._version = gradient._version
        if type(gradient) is torch.Tensor:
            gradient.__class__ = SentGradient

    def check(self, now: torch.Tensor | None) -> None:
        """Misuse: the parameter's gradient, `now`, differs from the sent one."""
        if now is None:
            raise Misuse(
                f"the gradient of {self._name} was removed after backward() had sent "
                "it; call zero_grad() before backward() or after step()"
            )
        if now is not self._gradient:
            raise self._misuse("replaced")
        if now._version != self._version:
            raise self._misuse("changed")
        kept = getattr(now, "kept", None)
        if kept is not None and not _is_equal(now, kept):
            raise self._misuse("changed")

    def _misuse(self, what: str) -> Misuse:
        return Misuse(
            f"the gradient of {self._name} was {what} after backward() had sent it; "
            "clip with cluster.optimizer(..., clip_norm=...), and scale the loss "
            "instead of gradients"
        )

    def release(self) -> None:
        """Ends the watch: the program may change the gradient again."""
        if type(self._gradient) is SentGradient:
            self._gradient.__dict__.pop("kept", None)
            self._gradient.__class__ = torch.Tensor


def _is_equal(gradient: torch.Tensor, kept: torch.Tensor) -> bool:
    return gradient.shape == kept.shape and torch.equal(
        _bytes_of(gradient), _bytes_of(kept)
    )


def _bytes_of(gradient: torch.Tensor) -> torch.Tensor:
    value = gradient.detach()
    value = value.to_dense() if value.is_sparse else value
    return value.contiguous().view(-1).view(torch.uint8)
