# SPDX-License-Identifier: Apache-2.0
"""One optimizer step after another: from the first gradient to the weights."""

from __future__ import annotations

import functools
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch

from tributary import _native
from tributary._errors import Misuse, Stopped
from tributary.torch._bits import EXACT_INTEGERS, bytes_of
from tributary.torch._declare import Entry, Role
from tributary.torch._kept import Kept
from tributary.torch._memory import Weights, make_sender
from tributary.torch._sent import Sent
from tributary.torch._spared import Spared
from tributary.torch._weighing import Weighing


@dataclass
class Batch:
    """The samples that a step counts for, and the time to load them."""

    samples: int = 1  # the weight of this rank's gradient
    counted: bool = False  # the loop has set `samples` to the rows of the step
    repeats: bool = False  # some rows of this rank do not count
    data_seconds: float = 0.0  # spent waiting for batches


class Steps:
    """Sends gradients as autograd finishes them, and takes the weights.

    A step begins with the first gradient outside of `quiet` and ends with
    `finish`. rates: the learning rates of this step, in the order of the job's
    groups. deferred: gradients are sent by `finish` only, divided by its scale.
    on_begin: is called with the rates before a step begins. on_step: is called by
    the thread that ends a step.
    """

    def __init__(
        self,
        session: _native.Session,
        entries: Sequence[Entry],
        weights: Sequence[Weights],
        *,
        rates: Callable[[], list[float]],
        buffers: str,
        deferred: bool,
        on_begin: Callable[[list[float]], None] = lambda rates: None,
        on_step: Callable[[], None] = lambda: None,
    ) -> None:
        self._session = session
        self._entries = list(entries)
        self._weights = list(weights)
        self._rates = rates
        self._buffers = buffers
        self._deferred = deferred
        self._on_begin = on_begin
        self._on_step = on_step
        self._lock = threading.Lock()  # several devices run hooks in threads
        self._memory = [
            torch.from_numpy(session.gradient(i)).view(weights[i].memory.shape)
            for i in range(len(self._entries))
        ]
        self._integers = [
            (entry.name, its.memory)
            for entry, its in zip(self._entries, weights, strict=True)
            if entry.tensor.dtype in (torch.int32, torch.int64) and not entry.as_bits
        ]
        self._sender = make_sender(session, self._entries, self._memory)
        for index, entry in enumerate(self._entries):
            weights[index].is_unchanged = functools.partial(session.is_unchanged, index)
            if entry.role is Role.FROZEN:
                self._memory[index].zero_()
        self.batch = Batch()
        self.quiet = False  # backward only accumulates
        self.accumulated = False  # gradients have accumulated since the last step
        self.weighing: Weighing | None = None  # in a loop with several batches a step
        self._spared: Spared | None = None
        self.moved = False  # the last step ended at another position
        self.ended = False  # the job has no further step
        self._begun: _native.Next | None = None
        self._step_rates: list[float] = []
        self._final: set[int] = set()  # gradients that are final; sent, unless deferred
        self._sent: dict[int, Sent] = {}
        self._kept: dict[int, Kept] = {}  # gradients that have not been sent yet
        self._last_end = time.monotonic()
        self._hooks = self._add_hooks()
        self.write_back()
        for one in self._weights:
            one.seal()

    # Gradients.

    def _add_hooks(self) -> list[torch.utils.hooks.RemovableHandle]:
        this = weakref.ref(self)
        return [
            entry.tensor.register_post_accumulate_grad_hook(
                functools.partial(_gradient_is_final, this, index)
            )
            for index, entry in enumerate(self._entries)
            if entry.role is Role.TRAINED
        ]

    def begin_weighing(self) -> None:
        """From now on gradients are multiplied by `weighing.share`."""
        self.weighing = Weighing(self.check_kept)
        for index, entry in enumerate(self._entries):
            if entry.role is Role.TRAINED and entry.tensor.requires_grad:
                self.weighing.add(index, entry.tensor)

    def end_loop(self) -> None:
        """Ends the weighing, and cleans up after a step that the loop has left."""
        self.quiet = False
        self.batch.counted = self.batch.repeats = False
        if self.weighing is not None:
            self.weighing.end()
            self.weighing = None
        self._end_sparing()

    @property
    def has_gradients(self) -> bool:
        return self._begun is not None or bool(self._final)

    @property
    def has_begun(self) -> bool:
        """Gradients of the present step have been sent."""
        return self._begun is not None

    def set_samples(self, samples: int, in_loop: bool) -> None:
        """The program's count for the step or, in a loop that takes several
        batches a step, for a batch."""
        batch = self.batch
        if samples == batch.samples:
            return
        if self.has_begun:
            raise Misuse(
                "cluster.samples was set after backward() had begun the step with "
                f"{batch.samples}; set it before backward() or after step()"
            )
        if batch.repeats or (in_loop and batch.counted):
            raise Misuse(
                "the loop over cluster.resume knows the rows of each step and sets "
                "cluster.samples; do not set it with accumulate, and not where rows are "
                "repeated to fill a batch (samples 0, or less than the batch has)"
            )
        if in_loop and self.accumulated:
            raise Misuse(
                f"cluster.samples was set to {batch.samples} and then to {samples} for "
                "the batches of one step; give cluster.resume a DataLoader, which says "
                "how many rows each batch has"
            )
        batch.samples, batch.counted = samples, False

    def gradient_is_final(self, index: int) -> None:
        """A hook of autograd: the gradient of the step, or of a part of it."""
        if self.weighing is not None:
            self.weighing.add_late(index, self._entries[index].tensor)
        if self.quiet:
            self.accumulated = True
            if self.weighing is not None:
                self._keep(index)
            return
        with self._lock:
            name = self._entries[index].name
            if index in self._final:
                raise Misuse(
                    f"the gradient of {name} was computed twice in one step; call "
                    "optimizer.step() after each backward(), or put all but the "
                    "last backward() of a step into `with cluster.no_sync():` (a "
                    "checkpointed function needs use_reentrant=False)"
                )
            if not self._deferred:
                self._begin()
                if self._begun is _native.Next.STEP:
                    self._send(index)
                self._kept.pop(index, None)
            else:
                self._keep(index)
            self._final.add(index)

    def _keep(self, index: int) -> None:
        gradient = self._entries[index].tensor.grad
        if gradient is not None:
            self._kept[index] = Kept(self._entries[index].name, gradient)

    def check_kept(self, index: int, unscaled: bool = False) -> None:
        """Misuse: something but autograd has changed a gradient since backward."""
        if index in self._kept:
            self._kept[index].check(self._entries[index].tensor.grad, unscaled)

    def spare_buffers(self, modules: Iterable[torch.nn.Module]) -> None:
        """The rest of the step's batches have no row that counts."""
        if self._spared is None:
            self._spared = Spared(modules)

    def _end_sparing(self) -> None:
        if self._spared is not None:
            self._spared.end()
            self._spared = None

    def forget(self) -> None:
        """The program has dropped the gradients, which are to be computed anew."""
        self.accumulated = False
        self._kept.clear()

    def _begin(self) -> None:
        if self._begun is not None:
            return
        if self.ended:
            raise Stopped("the job has ended: there is no further step")
        for weights in self._weights:
            weights.check()
        self._step_rates = self._rates()
        self._on_begin(self._step_rates)
        self._begun = self._session.begin_step(self.batch.samples, self._step_rates)
        if self._begun is _native.Next.END:
            self.ended = True
        for weights in self._weights:
            weights.begin()

    def _send(self, index: int, scale: torch.Tensor | None = None) -> None:
        gradient = self._entries[index].tensor.grad
        memory = self._memory[index]
        if gradient is None:
            memory.zero_()
            self._session.gradient_ready(index)
            return
        if not self._deferred:
            self._sent[index] = Sent(self._entries[index].name, gradient)
        if gradient.is_sparse:
            gradient = gradient.to_dense()
        if scale is not None:
            gradient = gradient.detach().float() / scale.to(gradient.device)
        self._sender.send(index, memory, gradient.detach())

    # The end of a step.

    def finish(
        self,
        loss: Callable[[], float | None],
        scale: torch.Tensor | None = None,
        *,
        unscaled: bool = False,
    ) -> None:
        """Sends the remaining gradients and waits for the weights.

        Parameters without a gradient count as zeros. loss: the rank's mean; None:
        it is not known. unscaled: a GradScaler has unscaled the gradients, which
        are deferred.
        Sets `moved` or `ended` when the job goes on elsewhere or not at all.
        """
        started = time.monotonic()
        compute = max(0.0, started - self._last_end - self.batch.data_seconds)
        if not self.has_gradients and self.batch.samples > 0:
            raise Misuse(
                "optimizer.step() was called without a gradient; call "
                "loss.backward() before it, outside of cluster.no_sync()"
            )
        self.moved = False
        try:
            for index in self._kept:
                self.check_kept(index, unscaled)
            if self._spared is not None:
                self._spared.settle()
            if self._begun is not None:
                self._check_begun()
            self._begin()
            if self._begun is _native.Next.STEP:
                self._send_rest(scale)
                after = self._session.finish_step(
                    loss=loss(),
                    compute_seconds=compute,
                    data_seconds=self.batch.data_seconds,
                )
                self.moved = after is _native.Next.MOVED
                self.ended = after is _native.Next.END
                self._check_buffers()
            else:
                self.moved = self._begun is _native.Next.MOVED
            self.write_back()
            self._on_step()
        finally:
            self._begun = None
            self._final.clear()
            for sent in self._sent.values():
                sent.release()
            self._sent.clear()
            self.forget()
            self._end_sparing()
            self.batch.data_seconds = 0.0
            self._last_end = time.monotonic()

    def _check_begun(self) -> None:
        """Misuse: the gradients that were sent, or the weights, have changed."""
        if self._rates() != self._step_rates:
            raise Misuse(
                "lr was changed after backward() had begun the step with "
                f"{self._step_rates}; change it before backward() or after step()"
            )
        for weights in self._weights:
            weights.check_within()
        for index, sent in self._sent.items():
            sent.check(self._entries[index].tensor.grad)

    def _check_buffers(self) -> None:
        """Misuse: the ranks have no common value of a buffer."""
        for name, memory in self._integers:
            if float(memory.abs().max()) >= EXACT_INTEGERS:
                raise Misuse(
                    f"the buffer {name} has reached {EXACT_INTEGERS}; it is sent as "
                    "float32, which rounds larger integers; begin with a smaller "
                    'value, register it with persistent=False, or pass buffers="local"'
                )
        if self._buffers != "average" or self.moved or self._session.skipped:
            return
        if self._session.is_late:  # the memory has values of an earlier step
            return
        for entry, its in zip(self._entries, self._weights, strict=True):
            if not entry.as_bits or self.batch.samples == 0:
                continue
            if not torch.equal(bytes_of(entry.tensor), its.memory.round()):
                raise Misuse(
                    f"the ranks have different values in the buffer {entry.name}, and "
                    f"values of type {entry.tensor.dtype} have no mean; pass "
                    'buffers="rank0" or "local", or make it float32'
                )

    def _send_rest(self, scale: torch.Tensor | None) -> None:
        """Sends the last layers first, as backward does."""
        for index in reversed(range(len(self._entries))):
            entry = self._entries[index]
            if entry.role is Role.TRAINED:
                if self._deferred or index not in self._final:
                    self._send(index, scale)
            elif entry.role is Role.FROZEN:
                self._session.gradient_ready(index)
            else:
                self._send_buffer(index)
        self._sender.flush()

    def _send_buffer(self, index: int) -> None:
        entry = self._entries[index]
        if self._buffers == "rank0" and self._session.rank != 0:
            self._memory[index].zero_()  # not looked at
            self._session.gradient_ready(index)
            return
        value = bytes_of(entry.tensor) if entry.as_bits else entry.tensor.detach()
        self._sender.send(index, self._memory[index], value)

    def write_back(self) -> None:
        """Copies the weights into tensors that are not their memory."""
        self._sender.write_back(self._weights)

    def close(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        self.end_loop()
        self._sender.close()


def _gradient_is_final(
    this: weakref.ref[Steps], index: int, parameter: torch.Tensor
) -> None:
    steps = this()
    if steps is not None:
        steps.gradient_is_final(index)
