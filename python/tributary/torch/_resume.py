# SPDX-License-Identifier: Apache-2.0
"""The training loop's batches, from the position of the job on."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tributary._checks import count
from tributary._errors import Error, Misuse
from tributary.torch._loaders import look_into
from tributary.torch._schedules import schedules_of
from tributary.torch._seeds import reseed, reseed_generator
from tributary.torch.optimizer import Optimizer

if TYPE_CHECKING:
    from tributary.torch.cluster import Cluster

_EPOCH_START = -1  # the part of an epoch's seed
_MOST_CALLS = 50  # that are compared


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
        try:
            len(loader)  # type: ignore[arg-type]
        except TypeError:
            raise Misuse(
                "cluster.resume wants a loader with a length; a stream has no "
                "position to return to"
            ) from None
        self._known = look_into(loader)
        if self._known.sampler is not None:
            self._known.sampler.attach(self._known.batch_size, self._known.drop_last)
        self._batches = len(loader)  # type: ignore[arg-type]
        count("epochs", options.epochs)
        count("accumulate", options.accumulate)
        if options.epochs < 0 or options.accumulate < 1 or self._batches < 1:
            raise Misuse(
                f"wanted epochs >= 0, accumulate >= 1 and a batch, got "
                f"{options.epochs}, {options.accumulate} and {self._batches} batches"
            )
        self._steps_per_epoch = -(-self._batches // options.accumulate)
        if options.finish and cluster._joined().position is None:
            cluster._check_rounds(options.epochs * self._steps_per_epoch)
        self._site = _site()
        self._open = False
        self._said = False  # told the job how it takes rows
        self._at = (0, 0)  # step and epoch that it has reached
        self._began: int | None = None  # the job's step then
        self._follows_another = False  # which has trained in another way
        self._schedules = schedules_of(
            optimizer._schedules,
            optimizer,
            options.step_scheduler,
            options.epoch_scheduler,
        )

    def run(self) -> Iterator[tuple[int, Any]]:
        self._begin()
        try:
            while True:
                while not self._optimizer.sending.ended and self._goes_on():
                    yield from self._epoch()
                if not self._options.finish or self._cluster.finish():
                    return
                self._said = False
        finally:
            self._leave()

    def _begin(self) -> None:
        optimizer = self._optimizer
        if optimizer._open_loop is not None:  # left unfinished, but still referenced
            optimizer._open_loop._leave()
        if optimizer._steps_outside:
            raise Misuse(
                f"the program has taken {optimizer._steps_outside} steps outside of a "
                "loop over cluster.resume, which would count as rows of this loop; take "
                "them in a loop over cluster.resume, too"
            )
        self._open, optimizer._open_loop = True, self
        self._samples = optimizer.sending.batch.samples  # of the program
        optimizer._in_loop = self._options.accumulate > 1
        if optimizer._in_loop:
            optimizer.sending.begin_weighing()
        self._at = optimizer._trained_to
        self._schedules.begin(*self._at)
        if self._cluster.steps > self._at[0] and not self._is_over():
            self._schedules.refuse_brought(*self._place())

    def _leave(self) -> None:
        """Called once, even if the program keeps a loop that it has left."""
        optimizer = self._optimizer
        if not self._open:
            return
        self._open, optimizer._open_loop = False, None
        optimizer._trained_to = self._at
        self._schedules.end(*self._at)
        optimizer._in_loop = optimizer._holding = False
        optimizer._batch_steps = None
        optimizer._losses = []
        steps = optimizer._steps
        if steps is None:
            return
        accumulated = steps.accumulated  # left within a step
        steps.end_loop()
        if accumulated:
            optimizer.zero_grad()
        if self._known.sampler is not None and not steps.has_begun:
            steps.batch.samples = self._samples

    def _is_over(self) -> bool:
        position = self._cluster._joined().position
        return position is not None and position[0] >= self._options.epochs

    def _place(self) -> tuple[int, int]:
        position = self._cluster._joined().position
        return self._cluster.steps, 0 if position is None else position[0]

    def _goes_on(self) -> bool:
        """Whether epochs are left. Before the first step, tells the job how this loop
        takes its rows. The job refuses if rows would be used twice or never."""
        session = self._cluster._joined()
        position = session.position
        if position is None:
            position = (0, 0)
        if position[0] >= self._options.epochs:
            self._follow_to_the_end()
            return False
        if not self._said:
            session.set_data(**self._data())
            if self._options.finish:
                self._cluster._check_rounds(session.steps_of(self._options.epochs))
            self._said = True
        return session.position[0] < self._options.epochs

    def _follow_to_the_end(self) -> None:
        """A later loop begins with the rates at the end of this one."""
        epochs = self._options.epochs
        if epochs > self._at[1]:
            self._at = self._cluster._joined().steps_of(epochs), epochs
            self._follow(*self._at)

    def _follow(self, step: int, epoch: int) -> None:
        self._schedules.go_to(step, epoch, self._cluster._joined().steps_of)

    def _data(self) -> dict[str, Any]:
        """How steps take rows. If it is unknown which rows a loader yields, each
        step counts as a row, and no other loader can continue within the epoch."""
        accumulate, world = self._options.accumulate, self._cluster.world_size
        sampler, batch_size = self._known.sampler, self._known.batch_size
        if sampler is None or not self._known.starts_anywhere:
            return {
                "rows": self._steps_per_epoch,
                "global_batch": 1,
                "accumulation": 1,
                "order": f"a loader of each of {world} ranks, "
                f"{accumulate} batches a step",
            }
        return {
            "rows": min(sampler.counted, self._batches * batch_size * world),
            "global_batch": batch_size * world,
            "accumulation": accumulate,
            "order": sampler.order,
        }

    def _first(self, row: int) -> int:
        """The batch that begins with this row of an epoch; rows count as in _data."""
        if not self._known.starts_anywhere:
            return row * self._options.accumulate
        return row // (self._known.batch_size * self._cluster.world_size)

    def _epoch(self) -> Iterator[tuple[int, Any]]:
        """The rest of the present epoch, up to a change of the job's position."""
        self._check_begin()
        epoch, row = self._cluster._joined().position
        first = self._first(row)
        batches = self._batches_of(epoch, first)
        while first < self._batches:
            position = self._cluster.steps
            self._follow(position, epoch)
            yield from self._step(epoch, position, first, batches)
            steps_now = self._optimizer.sending
            if steps_now.moved or steps_now.ended:
                self._said = False
                return
            if self._cluster.steps != position + 1:
                taken = self._cluster.steps - position
                raise Misuse(
                    f"the loop's body took {taken} steps where one is due; call "
                    "optimizer.step() exactly once for every batch (with "
                    "accumulate too: it waits for the last batch by itself)"
                )
            self._at = position + 1, epoch
            first += self._options.accumulate
        self._check_end(batches)
        if self._options.on_epoch_end is not None:
            self._options.on_epoch_end(epoch)

    def _check_end(self, batches: Iterator[Any]) -> None:
        """Misuse: the loader has more batches than its length says."""
        try:
            self._read(lambda: next(batches))
        except StopIteration:
            return
        raise Misuse(
            f"the loader has length {self._batches}, but more batches, which would "
            "never be used; give cluster.resume a loader with the same number of "
            "batches in every epoch"
        )

    def _check_begin(self) -> None:
        """Error: the job has gone back to steps of an earlier loop that has trained in
        another way. The program cannot return to it."""
        steps = self._cluster.steps
        if self._began is None:
            before = self._optimizer._loop
            self._began = steps
            self._follows_another = before is not None and not self._trains_as(before)
            self._optimizer._loop = self
        elif steps < self._began and self._follows_another:
            raise Error(
                f"the job went back to step {steps}, before this loop over "
                "cluster.resume, which another loop, or one with another loader, "
                "accumulate or scheduler, has trained; continue the run with "
                "tributary run --resume"
            )

    def _trains_as(self, other: Loop) -> bool:
        return (
            self._site == other._site
            and self._loader is other._loader
            and self._schedules is other._schedules
            and self._options.accumulate == other._options.accumulate
            and self._options.reseed == other._options.reseed
        )

    def _step(
        self, epoch: int, position: int, first: int, batches: Iterator[Any]
    ) -> Iterator[tuple[int, Any]]:
        """The batches of one step, from the first-th of the epoch on."""
        last = min(first + self._options.accumulate, self._batches) - 1
        optimizer = self._optimizer
        steps = optimizer.sending
        steps.moved = False
        self._cluster._micro_batches = last - first + 1
        rows = [self._known.rows_of(batch) for batch in range(first, last + 1)]
        if self._known.sampler is not None:
            steps.batch.samples = sum(rows)
            steps.batch.counted = True
            steps.batch.repeats = any(
                mine < self._known.sampler.given(batch, self._known.batch_size)
                for batch, mine in zip(range(first, last + 1), rows, strict=True)
            )
        for number in range(first, last + 1):
            self._reseed(position, number - first)
            started = time.monotonic()
            batch = self._next(batches, number)
            steps.batch.data_seconds += time.monotonic() - started
            if steps.weighing is not None:
                steps.weighing.share = _share(rows, number - first)
            if rows[number - first] == 0:
                steps.spare_buffers(self._modules())
            optimizer._holding = steps.quiet = number < last
            optimizer._batch_steps = 0
            yield epoch, batch
            if not self._open:
                raise Misuse(
                    "this loop over cluster.resume goes on after another one has begun; "
                    "a job has one loop at a time"
                )
            optimizer._batch_steps = None
            optimizer._holding = steps.quiet = False

    def _modules(self) -> Iterable[Any]:
        model = self._cluster._model
        return () if model is None else model.modules()

    def _batches_of(self, epoch: int, first: int) -> Iterator[Any]:
        """The batches of an epoch from the first-th on."""
        self._reseed(epoch, _EPOCH_START)
        known = self._known
        if self._options.reseed:
            for generator, its in known.generators:
                reseed_generator(generator, its, self._cluster.rank, epoch)
        for one in known.with_epochs:
            one.set_epoch(epoch)
        if known.sampler is not None and known.starts_anywhere:
            known.sampler.place(epoch, first * known.batch_size)
            return self._read(lambda: iter(self._loader))
        batches = self._read(lambda: iter(self._loader))
        accumulate = self._options.accumulate
        begin = self._cluster.steps - first // accumulate  # of the epoch
        for number in range(first):
            self._reseed(begin + number // accumulate, number % accumulate)
            self._next(batches, number)
        return batches

    def _read(self, read: Callable[[], Any]) -> Any:
        """Reads while only the known sampler of the cluster may be used."""
        self._cluster._reading = {id(self._known.sampler)}
        try:
            return read()
        finally:
            self._cluster._reading = None

    def _next(self, batches: Iterator[Any], number: int) -> Any:
        try:
            return self._read(lambda: next(batches))
        except StopIteration:
            raise Misuse(
                f"the loader ended after {number} batches and has length "
                f"{self._batches}"
            ) from None

    def _reseed(self, position: int, part: int) -> None:
        if self._options.reseed:
            reseed(self._cluster.seed, self._cluster.rank, position, part)


def _share(rows: list[int | None], batch: int) -> float:
    """The factor of a batch's gradient with which the sum over the batches, each
    divided by their number, is the mean over all rows of the step."""
    mine = [one or 0 for one in rows]
    if sum(mine) == 0:
        return 1.0  # unknown, or no row of the step counts
    return len(rows) * mine[batch] / sum(mine)


def _site() -> list[tuple[str, int]]:
    """Where the program calls cluster.resume: file and line of each call that led
    there, the innermost first."""
    frame, calls = sys._getframe(3), []
    while frame is not None and len(calls) < _MOST_CALLS:
        calls.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back  # type: ignore[assignment]
    return calls
