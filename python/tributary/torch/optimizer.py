# SPDX-License-Identifier: Apache-2.0
"""The optimizer that a training loop sees; it runs on the servers or, without
servers, in the session of each rank."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from tributary import _native
from tributary._checks import number, rate
from tributary._errors import Misuse
from tributary._optimizers import kind_of
from tributary.torch._declare import Declared, Role
from tributary.torch._memory import Weights
from tributary.torch._rates import Rates
from tributary.torch._schedules import Schedules
from tributary.torch._step import Steps

Loss = Callable[[], float]


class Optimizer(torch.optim.Optimizer):
    """A torch.optim.Optimizer whose state and update are the job's.

    Made by `Cluster.optimizer`. Schedulers of torch.optim.lr_scheduler change
    `param_groups[i]["lr"]`, which travels with each step and must be equal on
    every rank. Everything else in `param_groups` is fixed.
    """

    # GradScaler then calls step() also when a gradient is not finite.
    _step_supports_amp_scaling = True

    def __init__(
        self,
        declared: Declared,
        kind: str,
        keywords: dict[str, Any],
        rate_groups: Sequence[int],
        scaler: torch.amp.GradScaler | None,
    ) -> None:
        defaults = {"lr": kind_of(kind).lr, **kind_of(kind).options_of(), **keywords}
        self._fixed: list[dict[str, Any]] | None = None
        super().__init__(declared.groups, defaults)
        self._fixed = [_options(group) for group in self.param_groups]
        self._members = [list(group["params"]) for group in self.param_groups]
        self._untrained = [
            p for group in self._members for p in group if not p.requires_grad
        ]
        self._kind = kind
        self._rate_groups = list(rate_groups)
        self._scaler = scaler
        self._declared = declared
        self._steps: Steps | None = None
        self._loss: torch.Tensor | float | None = None
        # The losses of the step's earlier batches, with their weights.
        self._losses: list[tuple[float, torch.Tensor | float]] = []
        # Set by the loop over cluster.resume.
        self._holding = False  # this batch is not the last of its step
        self._in_loop = False  # the loop takes several batches a step
        self._schedules: list[Schedules] = []  # of the loops so far
        self._rates_of_steps = Rates()
        self._stopped: set[str] = set()  # parameters that the program has frozen since
        self._loop: Any = None  # the last one that has trained
        self._open_loop: Any = None
        self._trained_to = (0, 0)  # step and epoch where the last loop has ended
        self._batch_steps: int | None = None  # calls of step() for the loop's batch
        self._steps_outside = 0  # of a loop, by this process

    def _start(
        self,
        session: _native.Session,
        weights: Sequence[Weights],
        on_step: Callable[[], None],
    ) -> None:
        self._steps = Steps(
            session,
            self._declared.entries,
            weights,
            rates=self._rates,
            buffers=self._declared.buffers,
            deferred=self._scaler is not None,
            on_begin=lambda rates: self._begin_step(session.steps, rates),
            on_step=on_step,
        )

    def _begin_step(self, step: int, rates: list[float]) -> None:
        """Misuse: the rates are of other steps, in a loop over cluster.resume."""
        self._warn_of_stopped()
        if self._open_loop is None:
            return
        is_known = any(schedules.has_any for schedules in self._schedules)
        is_used = any("initial_lr" in group for group in self.param_groups)
        self._rates_of_steps.check(
            step,
            rates,
            by_hand=self._open_loop._schedules.is_shared,
            by_torch=is_used and not is_known,
        )

    def _warn_of_stopped(self) -> None:
        """Once for each parameter that no longer requires a gradient but moves."""
        names = [
            entry.name
            for entry in self._declared.entries
            if entry.role is Role.TRAINED
            and not entry.tensor.requires_grad
            and not _has_gradient(entry.tensor)
            and self._rate_of(entry.tensor) != 0
        ]
        new = [name for name in names if name not in self._stopped]
        self._stopped.update(new)
        if new:
            warnings.warn(
                f"{', '.join(new)}: no longer requires a gradient and counts as a "
                "parameter with a gradient of zeros, which momentum and weight decay "
                "still move; to stop it, pass it to cluster.optimizer in a group of "
                "its own, and set the lr of this group to 0.0",
                stacklevel=2,
            )

    def _rate_of(self, parameter: torch.Tensor) -> float:
        return next(
            float(group["lr"])
            for group in self.param_groups
            if any(parameter is one for one in group["params"])
        )

    @property
    def sending(self) -> Steps:
        """The part that exchanges with servers or other ranks."""
        if self._steps is None:
            raise Misuse("this optimizer is not connected to a job")
        return self._steps

    @property
    def moved(self) -> bool:
        """The last step ended elsewhere: the job went back to a checkpoint, or
        went on without this rank. `cluster.steps` and the weights have changed."""
        return self.sending.moved

    @property
    def skipped(self) -> bool:
        """The last step changed nothing, because a gradient was not finite."""
        return self.sending._session.skipped

    def _rates(self) -> list[float]:
        """The rates of the next step. Misuse: another option has changed, which would
        have no effect."""
        self._check_groups()
        for index, group in enumerate(self.param_groups):
            self._check_options(index, _options(group))
        return [rate(self.param_groups[i]["lr"]) for i in self._rate_groups]

    def _check_groups(self) -> None:
        groups = [group["params"] for group in self.param_groups]
        if len(groups) != len(self._members) or not all(
            len(now) == len(fixed) and all(map(operator.is_, now, fixed))
            for now, fixed in zip(groups, self._members, strict=True)
        ):
            raise Misuse(
                "param_groups does not have the parameters that were passed to "
                "cluster.optimizer; pass all of them to it, also those that are "
                "trained later, with requires_grad=True"
            )
        if any(parameter.requires_grad for parameter in self._untrained):
            raise Misuse(
                "requires_grad was set for a parameter that was frozen when "
                "cluster.optimizer was called, and is therefore not trained; call it "
                "with requires_grad=True for all parameters that are trained later"
            )

    def _check_options(self, index: int, now: dict[str, Any]) -> None:
        assert self._fixed is not None
        fixed = self._fixed[index]
        if now == fixed:
            return
        for key in {**fixed, **now}:
            if now.get(key) == fixed.get(key):
                continue
            cycled = key in ("momentum", "betas")
            before, after = fixed.get(key, "nothing"), now.get(key, "nothing")
            raise Misuse(
                f"{key} of parameter group {index} was changed from {before} to "
                f"{after}; only lr can change while the job runs"
                + (" (OneCycleLR: cycle_momentum=False)" if cycled else "")
            )

    @torch.no_grad()
    def step(  # type: ignore[override]
        self,
        closure: Callable[[], Any] | None = None,
        *,
        loss: torch.Tensor | float | None = None,
    ) -> Any:
        """Sends gradients that backward has not sent, and waits for new weights.

        A parameter without a gradient counts as one with a gradient of zeros.
        closure: computes the loss and calls backward; called once, and its
        result returned. loss: of this rank's samples, for `tributary status`;
        reading it from a GPU waits for the GPU.

        Between batches of one step (cluster.resume with accumulate) it does
        nothing. After a roll-back it returns as usual; see `moved`. Misuse:
        there is no gradient. Stopped: the job has ended. Other errors are those
        of the job and end it for this rank.
        """
        result = None
        if closure is not None:
            with torch.enable_grad():
                result = closure()
        scale = getattr(self, "grad_scale", None)
        if self._scaler is None and hasattr(self, "found_inf"):
            raise Misuse(
                "the gradients were sent before the GradScaler could unscale them; "
                "call cluster.optimizer(..., scaler=scaler)"
            )
        if self._batch_steps is not None:
            self._batch_steps += 1
            if self._batch_steps > 1:
                raise Misuse(
                    "the loop's body took 2 steps where one is due; call "
                    "optimizer.step() exactly once for every batch (with accumulate "
                    "too: it waits for the last batch by itself); a loop that was left "
                    "but is kept in a variable ends with its close()"
                )
        if self._loss is not None:  # of the batch, of cluster.log
            self._losses.append((self._share(), self._loss))
            self._loss = None
        if self._holding:
            if hasattr(self, "found_inf"):
                raise Misuse(
                    "scaler.step() was called between the batches of one step; "
                    "guard it with `if not cluster.accumulating:`"
                )
            return result
        steps = self.sending
        if steps.quiet:
            raise Misuse(
                "optimizer.step() was called in cluster.no_sync(); call it after "
                "a backward() outside of it"
            )
        losses = self._losses if loss is None else [(1.0, loss)]
        self._losses = []
        steps.finish(
            lambda: _mean_of(losses),
            scale,
            unscaled=scale is None and hasattr(self, "found_inf"),
        )
        self._loss = None
        if self._batch_steps is None:
            self._steps_outside += 1
        if self._scaler is not None and hasattr(self, "found_inf"):
            self._tell_scaler()
        return result

    def _share(self) -> float:
        weighing = self.sending.weighing
        return 1.0 if weighing is None else weighing.share

    def _tell_scaler(self) -> None:
        """All ranks' scalers take the same decision: the job's."""
        assert self._scaler is not None
        skipped = 1.0 if self.skipped else 0.0
        for found in self._scaler._found_inf_per_device(self).values():
            found.fill_(skipped)

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> Any:
        """As torch's; not called between the batches of one step."""
        return super().register_step_pre_hook(
            lambda *arguments: None if self._holding else hook(*arguments)
        )

    def register_step_post_hook(self, hook: Callable[..., Any]) -> Any:
        """As torch's; not called between the batches of one step."""
        return super().register_step_post_hook(
            lambda *arguments: None if self._holding else hook(*arguments)
        )

    def zero_grad(self, set_to_none: bool = True) -> None:
        """As torch's. Between the batches of one step (cluster.resume with
        accumulate) it does nothing."""
        steps = self._steps
        if steps is None or not (self._in_loop and steps.accumulated):
            super().zero_grad(set_to_none)
            if steps is not None:
                steps.forget()

    @contextmanager
    def _quiet(self) -> Iterator[None]:
        steps = self.sending
        before, steps.quiet = steps.quiet, True
        try:
            yield
        finally:
            steps.quiet = before

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        if self._fixed is not None:
            raise Misuse(
                "parameters cannot be added after cluster.optimizer; pass all groups "
                "to it, also those that are trained later, with requires_grad=True"
            )
        super().add_param_group(param_group)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes the learning rates of `state_dict`. The optimizer's state is on
        the servers and in checkpoints, and not in a state_dict. Misuse: the state
        holds more than rates."""
        if state_dict.get("state"):
            raise Misuse(
                "the state has tensors of an optimizer of torch, which only the "
                "servers could use; load the weights alone (cluster.load_state_dict), "
                "or continue a run of this program (tributary run --resume)"
            )
        groups = state_dict.get("param_groups", [])
        if len(groups) != len(self.param_groups):
            raise Misuse(
                f"the state has {len(groups)} parameter groups, this optimizer "
                f"{len(self.param_groups)}"
            )
        for index, saved in enumerate(groups):
            group = _options(self.param_groups[index])
            known = {key: saved[key] for key in group if key in saved}
            self._check_options(index, {**group, **known})
        for group, saved in zip(self.param_groups, groups, strict=True):
            for key in ("lr", "initial_lr"):
                if key in saved:
                    group[key] = saved[key]

    def state_dict(self) -> dict[str, Any]:
        """torch's format, with the options of the groups and without states."""
        return super().state_dict()

    def _trained(self) -> list[torch.Tensor]:
        return [e.tensor for e in self._declared.entries if e.role is Role.TRAINED]

    def _close(self) -> None:
        if self._steps is not None:
            self._steps.close()
            self._steps = None


def _has_gradient(parameter: torch.Tensor) -> bool:
    """Whether the gradient is not all zeros."""
    gradient = parameter.grad
    return gradient is not None and (gradient.is_sparse or bool(gradient.any()))


def _mean_of(losses: list[tuple[float, torch.Tensor | float]]) -> float | None:
    """Weighted by the rows of the batches; None without a loss."""
    total = sum(weight for weight, _ in losses)
    if total == 0:
        return None if not losses else number("loss", losses[-1][1])
    values = ((weight, number("loss", loss)) for weight, loss in losses if weight)
    return sum(weight * value for weight, value in values) / total


# Keys that torch's schedulers add to a group.
_ANNOTATIONS = {
    *("initial_lr", "max_lr", "min_lr", "base_lr", "swa_lr"),
    *("base_momentum", "max_momentum"),
}


def _options(group: dict[str, Any]) -> dict[str, Any]:
    """The options of a group that are fixed."""
    changing = ("params", "param_names", "lr")
    return {
        k: v for k, v in group.items() if k not in changing and k not in _ANNOTATIONS
    }
