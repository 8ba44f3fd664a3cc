# SPDX-License-Identifier: Apache-2.0
"""Learning-rate schedulers that follow the position of a job."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import torch

from tributary._errors import Error, Misuse


class Schedules:
    """The schedulers of a loop: one is stepped between two steps, the other between two
    epochs. Each may be None.

    They count the steps and epochs of the loops that have them, as in a program that
    steps them itself. Both change the same rates, so they are replayed together, from
    their start and in the order of an undisturbed run, where the scheduler of steps
    comes first.
    """

    def __init__(
        self, optimizer: torch.optim.Optimizer, by_step: Any, by_epoch: Any
    ) -> None:
        """Misuse: a scheduler cannot be replayed, or changes another optimizer."""
        self._optimizer = optimizer
        self._schedulers = {"step": by_step, "epoch": by_epoch}
        self._given = {k: s for k, s in self._schedulers.items() if s is not None}
        for scheduler in self._given.values():
            _check(scheduler, optimizer)
        self._states = {
            kind: copy.deepcopy(scheduler.state_dict())
            for kind, scheduler in self._given.items()
        }
        self._rates = self._present_rates()
        self._counts = {"step": 0, "epoch": 0}
        # The job's position where they begin to count, and where the last loop with
        # them has ended.
        self._base = {"step": 0, "epoch": 0}
        self._end = {"step": 0, "epoch": 0}
        self._left, self._left_rates = self._stands(), self._rates
        self._shared = False  # the program has changed a rate, too

    def are(self, by_step: Any, by_epoch: Any) -> bool:
        """Whether these are the same two."""
        return self._schedulers["step"] is by_step and (
            self._schedulers["epoch"] is by_epoch
        )

    def has_one_of(self, by_step: Any, by_epoch: Any) -> bool:
        return any(s is by_step or s is by_epoch for s in self._given.values())

    @property
    def has_any(self) -> bool:
        return bool(self._given)

    @property
    def is_shared(self) -> bool:
        """The program has changed a rate, too."""
        return self._shared or self._present_rates() != self._left_rates

    def begin(self, step: int, epoch: int) -> None:
        """A loop with them begins at this position of the job. Until then other loops
        and the program may change the rates."""
        if not self._given or not any(self._counts.values()):
            self._rates = self._left_rates = self._present_rates()
        at = {"step": step, "epoch": epoch}
        for kind in self._base:
            self._base[kind] += at[kind] - self._end[kind]

    def end(self, step: int, epoch: int) -> None:
        """The loop has ended there."""
        self._end = {"step": step, "epoch": epoch}

    def refuse_brought(self, step: int, epoch: int) -> None:
        """Misuse: the program has itself brought one of them to the position that a job
        goes on from; `go_to` would do it again."""
        at = {"step": step - self._base["step"], "epoch": epoch - self._base["epoch"]}
        for kind, scheduler in self._given.items():
            count = getattr(scheduler, "last_epoch", 0)
            if self._counts[kind] == 0 and count == at[kind] > 0:
                raise Misuse(
                    f"the {type(scheduler).__name__} has {count} steps already, as many "
                    "as the job; pass it as a new one: cluster.resume brings it to the "
                    "job's position"
                )

    def go_to(self, step: int, epoch: int, begin_of: Callable[[int], int]) -> None:
        """Sets the rates that an undisturbed run has after `step` steps, in this epoch.

        begin_of: the number of steps before an epoch.
        """
        if self._stands() != self._left:
            raise Misuse(
                "step() of a scheduler was called that was passed to cluster.resume, "
                "which calls it itself; take the call out"
            )
        self._shared |= self._present_rates() != self._left_rates
        step -= self._base["step"]
        epoch -= self._base["epoch"]
        if step < self._counts["step"] or epoch < self._counts["epoch"]:
            self._return()
        with warnings.catch_warnings():
            # torch wants optimizer.step() before the first scheduler.step(),
            # which came before a restart.
            warnings.filterwarnings("ignore", message=".*lr_scheduler.step")
            for past in range(self._counts["epoch"] + 1, epoch + 1):
                if len(self._given) == 2:
                    before = begin_of(past + self._base["epoch"]) - self._base["step"]
                    self._advance("step", min(before, step))
                self._advance("epoch", past)
            self._advance("step", step)
        self._left, self._left_rates = self._stands(), self._present_rates()

    def _advance(self, kind: str, count: int) -> None:
        if kind in self._given:
            for _ in range(self._counts[kind], count):
                self._given[kind].step()
        self._counts[kind] = max(count, self._counts[kind])

    def _return(self) -> None:
        """Error: the program has changed a rate itself, so the rates of an earlier
        step are unknown."""
        if self._given and self._shared:
            raise Error(
                "the job went back, and the program has changed a learning rate beside "
                "the scheduler that cluster.resume steps, for example with "
                "ReduceLROnPlateau; the rates of the steps before are unknown, so "
                "continue the run with tributary run --resume"
            )
        for kind, scheduler in self._given.items():
            scheduler.load_state_dict(copy.deepcopy(self._states[kind]))
            for group, rate in zip(
                self._optimizer.param_groups, self._rates, strict=True
            ):
                if isinstance(group["lr"], torch.Tensor):  # torch writes into it
                    group["lr"].fill_(rate)
                else:
                    group["lr"] = rate
        self._counts = {"step": 0, "epoch": 0}

    def _present_rates(self) -> list[float]:
        return [float(group["lr"]) for group in self._optimizer.param_groups]

    def _stands(self) -> list[Any]:
        return [_count_of(s) for s in self._given.values()]


def _count_of(scheduler: Any) -> Any:
    """How often it was stepped. A ChainedScheduler has no count of its own."""
    inner = [_count_of(s) for s in getattr(scheduler, "_schedulers", ())]
    return getattr(scheduler, "last_epoch", None), inner


def _check(scheduler: Any, optimizer: torch.optim.Optimizer) -> None:
    if isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau):
        raise Misuse(
            "ReduceLROnPlateau depends on measured values and cannot be "
            "replayed; call its step() yourself, equally on every rank"
        )
    if getattr(scheduler, "optimizer", None) is not optimizer:
        raise Misuse(
            f"wanted a scheduler of the optimizer that cluster.optimizer has "
            f"returned, got {type(scheduler).__name__}"
        )


def schedules_of(
    known: list[Schedules],
    optimizer: torch.optim.Optimizer,
    by_step: Any,
    by_epoch: Any,
) -> Schedules:
    """The entry of `known` with the same two schedulers, or else a new one, which is
    added. Misuse: an earlier loop had one of them alone or with another."""
    for schedules in known:
        if schedules.are(by_step, by_epoch):
            return schedules
        if schedules.has_one_of(by_step, by_epoch):
            raise Misuse(
                "an earlier loop had one of these two schedulers without the other; "
                "pass the same two to every loop, or new ones"
            )
    known.append(Schedules(optimizer, by_step, by_epoch))
    return known[-1]
