# SPDX-License-Identifier: Apache-2.0
"""Learning-rate schedulers that follow the position of a job."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import torch

from tributary._errors import Misuse


class FollowedScheduler:
    """A scheduler of torch that stands after a number of calls of its step().

    It is replayed from its start when the position goes back, so its rates are
    those of an undisturbed run.
    """

    def __init__(
        self,
        scheduler: torch.optim.lr_scheduler.LRScheduler,
        optimizer: torch.optim.Optimizer,
    ) -> None:
        """Misuse: it cannot be replayed, or does not change this optimizer."""
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
        self._scheduler = scheduler
        self._state = copy.deepcopy(scheduler.state_dict())
        self._rates = [g["lr"] for g in self._groups()]
        self._count = 0

    def _groups(self) -> list[dict[str, Any]]:
        return self._scheduler.optimizer.param_groups

    def go_to(self, count: int) -> None:
        """As after `count` calls of step() since this object was made."""
        if count < self._count:
            self._scheduler.load_state_dict(copy.deepcopy(self._state))
            for group, rate in zip(self._groups(), self._rates, strict=True):
                group["lr"] = rate
            self._count = 0
        with warnings.catch_warnings():
            # torch wants optimizer.step() before the first scheduler.step(),
            # which came before a restart.
            warnings.filterwarnings("ignore", message=".*lr_scheduler.step")
            while self._count < count:
                self._scheduler.step()
                self._count += 1
