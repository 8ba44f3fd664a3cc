# SPDX-License-Identifier: Apache-2.0
"""Memory that is pinned for a device."""

from __future__ import annotations

import mmap
from types import SimpleNamespace

import pytest
import torch

from tributary._errors import Error
from tributary.torch._memory import Pins

PAGE = mmap.PAGESIZE


class Runtime:
    def __init__(self, registered: int = 0, unregistered: int = 0) -> None:
        self.calls: list[tuple[int, ...]] = []
        self.results = registered, unregistered

    def cudaHostRegister(self, begin: int, size: int, flags: int) -> int:
        self.calls.append((begin, size))
        return self.results[0]

    def cudaHostUnregister(self, begin: int) -> int:
        self.calls.append((begin,))
        return self.results[1]


def memory() -> tuple[int, list[torch.Tensor]]:
    """Two tensors on neighbouring pages and one elsewhere, and where they begin."""
    floats = torch.empty(10 * PAGE // 4)
    first = -(-floats.data_ptr() // PAGE) * PAGE - floats.data_ptr()
    at = [first // 4, first // 4 + PAGE // 4 + 5, first // 4 + 6 * PAGE // 4]
    return floats.data_ptr() + first, [floats[a : a + 8] for a in reversed(at)]


def test_whole_pages_are_pinned_neighbours_together() -> None:
    begin, tensors = memory()
    runtime = Runtime()
    pins = Pins(SimpleNamespace(gradient_moves=0), runtime, tensors)
    wanted = [(begin, 2 * PAGE), (begin + 6 * PAGE, PAGE)]
    assert runtime.calls == wanted
    pins.refresh()
    assert runtime.calls == wanted
    pins.close()
    assert sorted(runtime.calls[2:]) == [(begin,), (begin + 6 * PAGE,)]


def test_moved_memory_is_pinned_anew_before_the_next_copy() -> None:
    begin, tensors = memory()
    session, runtime = SimpleNamespace(gradient_moves=3), Runtime()
    pins = Pins(session, runtime, tensors[1:])
    session.gradient_moves = 4
    pins.refresh()
    pins.refresh()
    assert runtime.calls == [(begin, 2 * PAGE), (begin,), (begin, 2 * PAGE)]


def test_memory_that_cannot_be_pinned_is_told_and_never_unpinned() -> None:
    _, tensors = memory()
    runtime = Runtime(registered=801)
    with pytest.warns(UserWarning, match="cannot be pinned .*801"):
        pins = Pins(SimpleNamespace(gradient_moves=0), runtime, tensors)
    pins.close()
    assert len(runtime.calls) == 2


def test_pages_that_stay_pinned_are_an_error() -> None:
    _, tensors = memory()
    pins = Pins(SimpleNamespace(gradient_moves=0), Runtime(unregistered=1), tensors)
    with pytest.raises(Error, match="memory that nobody reads"):
        pins.close()
