# SPDX-License-Identifier: Apache-2.0
"""The memory through which tensors travel: float32, on the host."""

from __future__ import annotations

import contextlib
import mmap
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import torch

from tributary._errors import Error, Misuse
from tributary.torch._bits import bytes_of, put_bytes
from tributary.torch._declare import Entry, Role

_SMALL = 1 << 14  # elements that are compared in each step
_PARTS = 16  # of a larger tensor, one of which is compared in each step


class Weights:
    """Where a declared tensor's weights arrive.

    A contiguous float32 tensor on the CPU is that memory itself. Other tensors
    have float32 memory of their own, from which `write_back` copies: it holds
    the float32 weights that a bfloat16 parameter rounds. The session writes there
    when a step ends. The program must not change the weights: `check` and
    `check_within` find what it writes.
    """

    # Whether the memory of a direct tensor has every bit of the session's weights.
    is_unchanged: Callable[[], bool]

    def __init__(self, entry: Entry) -> None:
        tensor = entry.tensor
        self._entry = entry
        self._shape = tensor.shape
        self._pointer = tensor.data_ptr()
        self._version = 0
        self._part = 0  # of the tensor, which the present step compares
        self._value: torch.Tensor | None = None  # of this part, when the step began
        self.direct = (
            not entry.as_bits
            and tensor.device.type == "cpu"
            and tensor.dtype is torch.float32
            and tensor.is_contiguous()
        )
        if self.direct:
            self.memory = tensor.detach()
            return
        value = bytes_of(tensor) if entry.as_bits else tensor.detach()
        self.memory = torch.empty(value.shape, pin_memory=tensor.is_cuda)
        self.memory.copy_(value)

    @property
    def tensor(self) -> torch.Tensor:
        """The declared tensor."""
        return self._entry.tensor

    @property
    def flat(self) -> torch.Tensor:
        """[number of elements], float32, contiguous."""
        return self.memory.reshape(-1)

    @property
    def holds_more(self) -> bool:
        """The memory holds the exact weight; the tensor may hold it rounded."""
        return self.tensor.dtype.is_floating_point and not self._entry.as_bits

    def sharpen(self, exact: torch.Tensor) -> None:
        """Takes a value in its own precision, if the tensor holds it rounded."""
        rounded = exact.to(self.tensor.device, self.tensor.dtype)
        if torch.equal(rounded, self.tensor.detach()):
            self.memory.copy_(exact)

    def check(self) -> None:
        """Misuse: the tensor's shape, memory or value has changed."""
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
            raise Misuse(self._exchanged())
        if self._entry.role is not Role.BUFFER and self._is_written():
            raise Misuse(self._written())

    def begin(self) -> None:
        """A step begins: keeps a part of the tensor's value for `check_within`."""
        tensor = self.tensor
        is_compared = tensor.dtype.is_floating_point and not tensor.is_cuda
        if is_compared and self._entry.role is not Role.BUFFER:
            self._part = (self._part + 1) % _PARTS
            self._value = self._part_of(tensor).clone()

    def check_within(self) -> None:
        """Misuse: the program has written into the weight since `begin`."""
        if self._entry.role is Role.BUFFER:
            return
        if _version_of(self.tensor) != self._version:
            raise Misuse(self._written())
        if self.direct and self.tensor.data_ptr() != self._pointer:
            raise Misuse(self._exchanged())
        if self._value is not None and not torch.equal(
            _bits_of(self._part_of(self.tensor)), _bits_of(self._value)
        ):
            raise Misuse(self._written())

    def _part_of(self, tensor: torch.Tensor) -> torch.Tensor:
        flat = tensor.detach().reshape(-1)
        if flat.numel() <= _SMALL:
            return flat
        size = -(-flat.numel() // _PARTS)
        return flat[self._part * size : (self._part + 1) * size]

    def _is_written(self) -> bool:
        tensor = self.tensor
        is_same = (
            _version_of(tensor) == self._version and tensor.data_ptr() == self._pointer
        )
        # Tensors are compared when their version counter has changed, and always on
        # the CPU, direct ones by the session: a write through `.data` does not change
        # the counter.
        if is_same and (self.direct or tensor.is_cuda):
            return False
        if self.direct:
            unchanged = self.is_unchanged()
        else:
            unchanged = _has_value(tensor, self.memory)
        if not unchanged:
            return True
        self.seal()
        return False

    def _exchanged(self) -> str:
        return (
            f"the memory of {self._entry.name} was exchanged, for example by "
            "model.to(...) or parameter.data = ...; do this before "
            "cluster.optimizer, or write into the parameter with copy_"
        )

    def _written(self) -> str:
        name = self._entry.name
        if self._entry.role is Role.FROZEN:
            return (
                f"the program has written into {name}, which is frozen, so the next "
                "step would overwrite it with its first value; leave frozen parameters "
                'to the program with cluster.optimizer(..., frozen="local")'
            )
        return (
            f"the program has written into {name} since the last step, and the next "
            "step would overwrite it; load weights before cluster.optimizer "
            "(cluster.load_state_dict), or change a copy of the model"
        )

    def seal(self) -> None:
        """Accepts the tensor's present value as the job's."""
        self._pointer = self.tensor.data_ptr()
        self._version = _version_of(self.tensor)

    @torch.no_grad()
    def write_back(self) -> None:
        tensor = self._entry.tensor
        if self.direct:
            # The session has written there. A graph from before the step must not
            # be used any more: torch finds it by the counter.
            if not tensor.is_inference():
                torch.autograd.graph.increment_version(tensor)
            self.seal()
            return
        if self._entry.as_bits:
            put_bytes(self.memory.round().to(torch.uint8), tensor)
        elif tensor.dtype.is_floating_point:
            memory = self.memory
            if tensor.is_cuda and tensor.dtype is not memory.dtype:
                # A copy to another device and type would convert on the host.
                memory = memory.to(tensor.device, non_blocking=True)
            tensor.copy_(memory, non_blocking=tensor.is_cuda)
        else:
            tensor.copy_(self.memory.round())
        self.seal()


def _version_of(tensor: torch.Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version


def _has_value(tensor: torch.Tensor, memory: torch.Tensor) -> bool:
    """Whether write_back would change no bit of the tensor."""
    wanted = memory.to(tensor.device, tensor.dtype)
    return torch.equal(_bits_of(tensor.detach()), _bits_of(wanted))


def _bits_of(value: torch.Tensor) -> torch.Tensor:
    bits = torch.int32 if value.element_size() == 4 else torch.int16
    return value.contiguous().view(-1).view(bits)


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


class Pins:
    """Pins the memory of gradients, so that a device can write into it.

    When the job goes back to a checkpoint, other pages replace the memory at the same
    addresses. The driver writes to the pages that it has pinned, so the new ones are
    pinned. runtime: has CUDA's cudaHostRegister and cudaHostUnregister.
    """

    def __init__(
        self, session: Any, runtime: Any, memories: Sequence[torch.Tensor]
    ) -> None:
        self._session = session
        self._runtime = runtime
        self._runs = _page_runs(memories)
        self._pinned: list[int] = []
        self._moves = session.gradient_moves
        self._pin()

    def refresh(self) -> None:
        """Call it before a device writes."""
        moves = self._session.gradient_moves
        if moves != self._moves:
            self.close()
            self._moves = moves
            self._pin()

    def close(self) -> None:
        while self._pinned:
            status = self._runtime.cudaHostUnregister(self._pinned.pop())
            if int(status) != 0:
                raise Error(
                    f"cudaHostUnregister failed with {int(status)}, so gradients "
                    "could go to memory that nobody reads"
                )

    def _pin(self) -> None:
        for begin, end in self._runs:
            status = self._runtime.cudaHostRegister(begin, end - begin, 0)
            if int(status) == 0:
                self._pinned.append(begin)
                continue
            warnings.warn(
                f"gradients cannot be pinned (cudaHostRegister: {int(status)}); "
                "copies from the device are slower",
                stacklevel=2,
            )
            _forget_error()


def _page_runs(memories: Sequence[torch.Tensor]) -> list[tuple[int, int]]:
    """[begin, end) of the pages of these tensors, neighbours joined."""
    page = mmap.PAGESIZE
    runs: list[tuple[int, int]] = []
    for memory in sorted(memories, key=torch.Tensor.data_ptr):
        begin = memory.data_ptr() // page * page
        end = memory.data_ptr() + memory.numel() * memory.element_size()
        end = -(-end // page) * page
        if runs and begin <= runs[-1][1]:
            runs[-1] = (runs[-1][0], max(end, runs[-1][1]))
        elif end > begin:
            runs.append((begin, end))
    return runs


def _forget_error() -> None:
    """The runtime keeps an error for the next kernel, which then reports it."""
    if torch.cuda.is_available():
        with contextlib.suppress(RuntimeError):
            torch.zeros(1, device="cuda")


class CudaSender(HostSender):
    """Copies gradients of CUDA tensors on a stream of its own, into pinned
    memory. Sends each gradient in the first call after its copy is done."""

    def __init__(
        self, session: Any, device: torch.device, memories: Sequence[torch.Tensor]
    ) -> None:
        super().__init__(session)
        self._stream = torch.cuda.Stream(device)
        self._device = device
        self._pending: deque[tuple[torch.cuda.Event, int]] = deque()
        self._pins = Pins(session, torch.cuda.cudart(), memories)

    @torch.no_grad()
    def send(self, index: int, memory: torch.Tensor, value: torch.Tensor) -> None:
        if not value.is_cuda:
            super().send(index, memory, value)
            return
        self._pins.refresh()
        self._stream.wait_stream(torch.cuda.current_stream(value.device))
        with torch.cuda.stream(self._stream):
            # Converted on the device: a copy to another device and type would
            # convert on the host and wait.
            memory.copy_(value.to(memory.dtype), non_blocking=True)
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
        self._pins.close()


def make_sender(
    session: Any, entries: list[Entry], memories: Sequence[torch.Tensor]
) -> HostSender:
    device = next((e.tensor.device for e in entries if e.tensor.is_cuda), None)
    if device is None:
        return HostSender(session)
    return CudaSender(session, device, memories)
