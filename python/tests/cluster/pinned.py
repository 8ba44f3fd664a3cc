# SPDX-License-Identifier: Apache-2.0
"""A test double of a device and of the driver that pins host memory for it.

As a device's, its copies go to the pages that were at the addresses when the memory
was pinned, even if other pages are mapped there now.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import torch

from tributary.torch import _memory, _step

_MAY_MOVE = 1
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mremap.restype = ctypes.c_void_p
_libc.mremap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


class Driver:
    def __init__(self) -> None:
        self._pinned: dict[int, tuple[int, int]] = {}  # bytes, second mapping

    def cudaHostRegister(self, begin: int, size: int, flags: int) -> int:
        assert flags == 0 and begin not in self._pinned
        # With an old size of 0, mremap maps the same pages once more (mremap(2)).
        second = _libc.mremap(begin, 0, size, _MAY_MOVE)
        assert second != ctypes.c_void_p(-1).value, ctypes.get_errno()
        self._pinned[begin] = (size, second)
        return 0

    def cudaHostUnregister(self, begin: int) -> int:
        size, second = self._pinned.pop(begin)
        return int(_libc.munmap(second, size))

    def copy(self, memory: torch.Tensor, value: torch.Tensor) -> None:
        size = memory.numel() * memory.element_size()
        for begin, (length, second) in self._pinned.items():
            offset = memory.data_ptr() - begin
            if 0 <= offset and offset + size <= length:
                ctypes.memmove(second + offset, value.contiguous().data_ptr(), size)
                return
        raise AssertionError("memory that is not pinned")


class PinnedSender(_memory.HostSender):
    def __init__(self, session: Any, memories: Sequence[torch.Tensor]) -> None:
        super().__init__(session)
        self._driver = Driver()
        self._pins = _memory.Pins(session, self._driver, memories)

    @torch.no_grad()
    def send(self, index: int, memory: torch.Tensor, value: torch.Tensor) -> None:
        self._pins.refresh()
        self._driver.copy(memory, value)
        self._session.gradient_ready(index)

    def close(self) -> None:
        self._pins.close()


def use() -> None:
    """From now on gradients go through the double."""
    _step.make_sender = lambda session, _, memories: PinnedSender(session, memories)
