# SPDX-License-Identifier: Apache-2.0
"""The learning rates of steps that a job takes again, or that a new process takes."""

from __future__ import annotations

import warnings
from collections import OrderedDict

from tributary._errors import Misuse

_MOST_STEPS = 1 << 16  # whose rates are remembered
_ADVICE = (
    "pass the scheduler to cluster.resume as step_scheduler or epoch_scheduler and "
    "take out the call of its step(), or set the rates from cluster.steps before each step"
)


class Rates:
    """Finds rates that do not follow the position of the job, in loops over
    cluster.resume.

    The position changes where the job goes back to a checkpoint, and where a new
    process goes on with a job. A scheduler that the program steps itself does not
    follow: it counts the calls of its step().
    """

    def __init__(self) -> None:
        self._of_steps: OrderedDict[int, list[float]] = OrderedDict()
        self._next = 0  # the step that is due in an undisturbed run
        self._moved_to: int | None = None  # where the position has changed last
        self._warned = False

    def check(
        self, step: int, rates: list[float], *, by_hand: bool, by_torch: bool
    ) -> None:
        """Call it before each step. step: the number of steps before it. by_hand: the
        program has changed a rate. by_torch: it has a scheduler of torch that no loop
        knows. Misuse: the rates are not those of the step."""
        if step != self._next:
            self._moved_to = step
            if by_torch:
                raise Misuse(
                    f"the job goes on after step {step}, and the program steps a "
                    "scheduler itself, which does not follow the position of the job; "
                    f"{_ADVICE}"
                )
        before = self._of_steps.get(step, rates)
        if before != rates:
            raise Misuse(
                f"the job went back and takes step {step + 1} again, now with the "
                f"learning rates {rates} instead of {before}; {_ADVICE}"
            )
        self._of_steps[step] = list(rates)
        if len(self._of_steps) > _MOST_STEPS:
            self._of_steps.popitem(last=False)
        self._next = step + 1
        if by_hand:
            self._warn()

    def _warn(self) -> None:
        """The rates are right only if the program computes them from the position."""
        if self._moved_to is None or self._warned:
            return
        self._warned = True
        warnings.warn(
            f"the job went on after step {self._moved_to}, and the program changes "
            "learning rates itself, which is right only if it computes them from "
            f"cluster.steps; otherwise {_ADVICE}",
            stacklevel=2,
        )
