# SPDX-License-Identifier: Apache-2.0
"""The memory through which tensors travel: float32, on the host."""

from __future__ import annotations

from collections import deque
from typing import Any

import torch

from tributary._errors import Misuse
from tributary.torch._declare import Entry


class Weights:
    """Where a declared tensor's weights arrive.

    A contiguous float32 tensor on the CPU is that memory itself. Other tensors
    have float32 memory of their own, from which `write_back` copies: it holds
    the weights that a bfloat16 parameter only rounds. staged: always so.
    """

    def __init__(self, entry: Entry, staged: bool) -> None:
        tensor = entry.tensor
        self._entry = entry
        self._shape = tensor.shape
        self._pointer = tensor.data_ptr()
        self.direct = (
            not staged
            and tensor.device.type == "cpu"
            and tensor.dtype is torch.float32
            and tensor.is_contiguous()
        )
        if self.direct:
            self.memory = tensor.detach()
        else:
            pinned = tensor.is_cuda
            self.memory = torch.empty(self._shape, pin_memory=pinned)
            self.memory.copy_(tensor.detach())

    @property
    def tensor(self) -> torch.Tensor:
        """The declared tensor."""
        return self._entry.tensor

    @property
    def flat(self) -> torch.Tensor:
        """[number of elements], float32, contiguous."""
        return self.memory.reshape(-1)

    def check(self) -> None:
        """Misuse: the tensor's shape or memory is another one than declared."""
        tensor, name = self._entry.tensor, self._entry.name
        if not self._entry.is_in_place():
            raise Misuse(
                f"the model has another tensor as {name} than the one that was "
                "declared; change the model before cluster.optimizer, and write into "
                "its tensors with copy_"
            )
        if tensor.shape != self._shape:
            raise Misuse(
                f"{name} had shape {list(self._shape)} when it was declared and has "
                f"{list(tensor.shape)} now; change the model before cluster.optimizer"
            )
        if self.direct and tensor.data_ptr() != self._pointer:
            raise Misuse(
                f"the memory of {name} was exchanged, for example by model.to(...) or "
                "parameter.data = ...; do this before cluster.optimizer, or write "
                "into the parameter with copy_"
            )

    @torch.no_grad()
    def write_back(self) -> None:
        if self.direct:
            return
        tensor = self._entry.tensor
        if tensor.dtype.is_floating_point:
            tensor.copy_(self.memory, non_blocking=tensor.is_cuda)
        else:
            tensor.copy_(self.memory.round())


class HostSender:
    """Copies gradients of CPU tensors into the session's memory."""

    def __init__(self, session: Any) -> None:
        self._session = session

    @torch.no_grad()
    def send(self, index: int, memory: torch.Tensor, value: torch.Tensor) -> None:
        memory.copy_(value)
        self._session.gradient_ready(index)

    def flush(self) -> None:
        """Returns when everything is sent."""

    def write_back(self, weights: list[Weights]) -> None:
        for one in weights:
            one.write_back()

    def close(self) -> None:
        pass


class CudaSender(HostSender):
    """Copies gradients of CUDA tensors on a stream of its own, into pinned
    memory. Each is sent when its copy is done, which a later call finds out."""

    def __init__(self, session: Any, device: torch.device) -> None:
        super().__init__(session)
        self._stream = torch.cuda.Stream(device)
        self._device = device
        self._pending: deque[tuple[torch.cuda.Event, int]] = deque()
        self._pinned: dict[int, torch.Tensor] = {}

    @torch.no_grad()
    def send(self, index: int, memory: torch.Tensor, value: torch.Tensor) -> None:
        if not value.is_cuda:
            super().send(index, memory, value)
            return
        self._pin(memory)
        self._stream.wait_stream(torch.cuda.current_stream(value.device))
        with torch.cuda.stream(self._stream):
            memory.copy_(value, non_blocking=True)
            done = torch.cuda.Event()
            done.record(self._stream)
        value.record_stream(self._stream)
        self._pending.append((done, index))
        while self._pending and self._pending[0][0].query():
            self._session.gradient_ready(self._pending.popleft()[1])

    def flush(self) -> None:
        while self._pending:
            done, index = self._pending.popleft()
            done.synchronize()
            self._session.gradient_ready(index)

    def write_back(self, weights: list[Weights]) -> None:
        current = torch.cuda.current_stream(self._device)
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            super().write_back(weights)
        current.wait_stream(self._stream)

    def close(self) -> None:
        torch.cuda.synchronize(self._device)
        for pointer in self._pinned:
            torch.cuda.cudart().cudaHostUnregister(pointer)
        self._pinned.clear()

    def _pin(self, memory: torch.Tensor) -> None:
        """Without it a copy waits for all work before it, and is still right."""
        pointer = memory.data_ptr()
        if pointer in self._pinned or memory.numel() == 0:
            return
        size = memory.numel() * memory.element_size()
        torch.cuda.cudart().cudaHostRegister(pointer, size, 0)
        self._pinned[pointer] = memory


def make_sender(session: Any, entries: list[Entry]) -> HostSender:
    device = next((e.tensor.device for e in entries if e.tensor.is_cuda), None)
    return HostSender(session) if device is None else CudaSender(session, device)
