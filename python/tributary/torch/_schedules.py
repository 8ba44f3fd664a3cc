# SPDX-License-Identifier: Apache-2.0
"""Learning-rate schedulers that follow the position of a job."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import torch

from tributary._errors import Misuse


class Schedules:
    """The schedulers of a loop: one that is stepped before each step but the first,
    and one that is stepped before each epoch but the first. Each may be None.

    Both change the same rates, so they are replayed together, from their start and in
    the order of an undisturbed run, where the scheduler of steps comes first.
    """

    def __init__(
        self, optimizer: torch.optim.Optimizer, by_step: Any, by_epoch: Any
    ) -> None:
        """Misuse: one cannot be replayed, or does not change this optimizer."""
        self._optimizer = optimizer
        self._schedulers = {"step": by_step, "epoch": by_epoch}
        self._given = {k: s for k, s in self._schedulers.items() if s is not None}
        for scheduler in self._given.values():
            _check(scheduler, optimizer)
        self._states = {
            kind: copy.deepcopy(scheduler.state_dict())
            for kind, scheduler in self._given.items()
        }
        self._rates = [g["lr"] for g in optimizer.param_groups]
        self._counts = {"step": 0, "epoch": 0}
        self._left = self._stands()

    def are(self, by_step: Any, by_epoch: Any) -> bool:
        """Whether these are the same two."""
        return self._schedulers["step"] is by_step and (
            self._schedulers["epoch"] is by_epoch
        )

    def has_one_of(self, by_step: Any, by_epoch: Any) -> bool:
        return any(s is by_step or s is by_epoch for s in self._given.values())

    def go_to(self, step: int, epoch: int, begin_of: Callable[[int], int]) -> None:
        """As in an undisturbed run before a step after `step` others, in an epoch.

        begin_of: the number of steps before an epoch.
        """
        if self._stands() != self._left:
            raise Misuse(
                "step() of a scheduler was called that was passed to cluster.resume, "
                "which calls it itself; take the call out"
            )
        if step < self._counts["step"] or epoch < self._counts["epoch"]:
            self._return()
        with warnings.catch_warnings():
            # torch wants optimizer.step() before the first scheduler.step(),
            # which came before a restart.
            warnings.filterwarnings("ignore", message=".*lr_scheduler.step")
            for past in range(self._counts["epoch"] + 1, epoch + 1):
                if len(self._given) == 2:
                    self._advance("step", min(begin_of(past), step))
                self._advance("epoch", past)
            self._advance("step", step)
        self._left = self._stands()

    def _advance(self, kind: str, count: int) -> None:
        if kind in self._given:
            for _ in range(self._counts[kind], count):
                self._given[kind].step()
        self._counts[kind] = max(count, self._counts[kind])

    def _return(self) -> None:
        for kind, scheduler in self._given.items():
            scheduler.load_state_dict(copy.deepcopy(self._states[kind]))
        for group, rate in zip(self._optimizer.param_groups, self._rates, strict=True):
            group["lr"] = rate
        self._counts = {"step": 0, "epoch": 0}

    def _stands(self) -> list[Any]:
        return [getattr(s, "last_epoch", None) for s in self._given.values()]


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
    """Those of `known` if an earlier loop had the same two, else new ones, which are
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
