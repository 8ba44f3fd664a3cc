# SPDX-License-Identifier: Apache-2.0
"""The training loop's batches, from the position of the job on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tributary._checks import count
from tributary._errors import Misuse
from tributary.torch._schedules import FollowedScheduler
from tributary.torch._seeds import reseed
from tributary.torch.optimizer import Optimizer
from tributary.torch.sampler import sampler_of

if TYPE_CHECKING:
    from tributary.torch.cluster import Cluster

_EPOCH_START = -1  # the part of an epoch's seed


@dataclass
class LoopOptions:
    """As the keywords of Cluster.resume."""

    epochs: int
    accumulate: int
    reseed: bool
    step_scheduler: Any
    epoch_scheduler: Any
    on_epoch_end: Callable[[int], None] | None
    finish: bool


class Loop:
    """Yields (epoch, batch) and follows the job when its position changes."""

    def __init__(
        self,
        cluster: Cluster,
        optimizer: Optimizer,
        loader: Iterable[Any],
        options: LoopOptions,
    ) -> None:
        self._cluster = cluster
        self._optimizer = optimizer
        self._loader = loader
        self._options = options
        self._sampler = sampler_of(loader)
        self._batch_size: int = getattr(loader, "batch_size", None) or 1
        if self._sampler is not None:
            drop_last = bool(getattr(loader, "drop_last", False))
            self._sampler.attach(self._batch_size, drop_last)
        try:
            self._batches = len(loader)  # type: ignore[arg-type]
        except TypeError:
            raise Misuse(
                "cluster.resume wants a loader with a length; a stream has no "
                "position to return to"
            ) from None
        count("epochs", options.epochs)
        count("accumulate", options.accumulate)
        if options.epochs < 0 or options.accumulate < 1 or self._batches < 1:
            raise Misuse(
                f"wanted epochs >= 0, accumulate >= 1 and a batch, got "
                f"{options.epochs}, {options.accumulate} and {self._batches} batches"
            )
        self._steps_per_epoch = -(-self._batches // options.accumulate)
        if options.finish:
            cluster._check_rounds(options.epochs * self._steps_per_epoch)
        self._schedulers = [
            (FollowedScheduler(scheduler, optimizer), steps)
            for scheduler, steps in (
                (options.step_scheduler, 1),
                (options.epoch_scheduler, self._steps_per_epoch),
            )
            if scheduler is not None
        ]

    def run(self) -> Iterator[tuple[int, Any]]:
        total = self._options.epochs * self._steps_per_epoch
        optimizer = self._optimizer
        optimizer._in_loop = self._options.accumulate > 1
        self._cluster._joined().set_steps_per_epoch(self._steps_per_epoch)
        try:
            while True:
                while self._cluster.steps < total and not optimizer.sending.ended:
                    yield from self._epoch()
                if not self._options.finish or self._cluster.finish():
                    return
        finally:
            optimizer._in_loop = False
            optimizer._holding = False
            if optimizer._steps is not None:
                optimizer._steps.quiet = False

    def _epoch(self) -> Iterator[tuple[int, Any]]:
        """The rest of the epoch of the position, or up to a change of it."""
        epoch, first = divmod(self._cluster.steps, self._steps_per_epoch)
        batches = self._batches_of(epoch, first * self._options.accumulate)
        for in_epoch in range(first, self._steps_per_epoch):
            position = epoch * self._steps_per_epoch + in_epoch
            for scheduler, steps in self._schedulers:
                scheduler.go_to(position // steps)
            yield from self._step(epoch, position, in_epoch, batches)
            steps_now = self._optimizer.sending
            if steps_now.moved or steps_now.ended:
                return
            if self._cluster.steps != position + 1:
                taken = self._cluster.steps - position
                raise Misuse(
                    f"the loop's body took {taken} steps where one is due; call "
                    "optimizer.step() exactly once for every batch (with "
                    "accumulate too: it waits for the last batch by itself)"
                )
        if self._options.on_epoch_end is not None:
            self._options.on_epoch_end(epoch)

    def _step(
        self, epoch: int, position: int, in_epoch: int, batches: Iterator[Any]
    ) -> Iterator[tuple[int, Any]]:
        """The batches of one step."""
        first = in_epoch * self._options.accumulate
        last = min(first + self._options.accumulate, self._batches) - 1
        optimizer = self._optimizer
        steps = optimizer.sending
        steps.moved = False
        self._cluster._micro_batches = last - first + 1
        if self._sampler is not None:
            counts = [
                self._sampler.samples(batch, self._batch_size)
                for batch in range(first, last + 1)
            ]
            steps.batch.samples = sum(mine for mine, _ in counts)
            steps.batch.total = sum(total for _, total in counts)
        for number in range(first, last + 1):
            self._reseed(position, number - first)
            started = time.monotonic()
            batch = self._next(batches, number)
            steps.batch.data_seconds += time.monotonic() - started
            optimizer._holding = steps.quiet = number < last
            yield epoch, batch
            optimizer._holding = steps.quiet = False

    def _batches_of(self, epoch: int, first: int) -> Iterator[Any]:
        """The batches of an epoch from the first-th on."""
        self._reseed(epoch, _EPOCH_START)
        if self._sampler is not None:
            self._sampler.place(epoch, first * self._batch_size)
            return iter(self._loader)
        set_epoch = getattr(getattr(self._loader, "sampler", None), "set_epoch", None)
        if set_epoch is not None:
            set_epoch(epoch)
        batches = iter(self._loader)
        for number in range(first):
            self._reseed(
                epoch * self._steps_per_epoch + number // self._options.accumulate,
                number % self._options.accumulate,
            )
            self._next(batches, number)
        return batches

    def _next(self, batches: Iterator[Any], number: int) -> Any:
        try:
            return next(batches)
        except StopIteration:
            raise Misuse(
                f"the loader ended after {number} batches and has length "
                f"{self._batches}"
            ) from None

    def _reseed(self, position: int, part: int) -> None:
        if self._options.reseed:
            reseed(self._cluster.seed, self._cluster.rank, position, part)
