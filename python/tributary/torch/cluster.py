# SPDX-License-Identifier: Apache-2.0
"""A rank that trains a PyTorch model."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import AbstractContextManager
from typing import Any

import torch

from tributary._checks import count, number
from tributary._errors import InvalidSetting, Misuse
from tributary._member import Member
from tributary._settings import gathers_steps, settings_of, sync_of
from tributary.torch._compared import arithmetic_text, compared_settings
from tributary.torch._declare import (
    Declared,
    Entry,
    Model,
    Role,
    declare,
    load,
)
from tributary.torch._keywords import optimizer_settings, split_keywords
from tributary.torch._memory import Weights
from tributary.torch._near import stay_near
from tributary.torch._resume import Loop, LoopOptions
from tributary.torch.optimizer import Optimizer
from tributary.torch.sampler import Sampler

# By id of a trained tensor, which the optimizer keeps alive.
_owners: weakref.WeakValueDictionary[int, Optimizer] = weakref.WeakValueDictionary()


def connect(
    address: str | None = None,
    rank: int | None = None,
    *,
    join_timeout: float = 60.0,
    **settings: Any,
) -> Cluster:
    """A rank of the job that the coordinator at `address` (host:port) runs.

    Without arguments, takes the address from the environment (`tributary run`, torchrun
    or Slurm). The rank joins the job in `Cluster.optimizer`. join_timeout: seconds.
    settings: fields of the job by their keywords ("sync", "wire", "checkpoint_every",
    ...), equal on every rank (docs/pytorch.md). Misuse: no coordinator is known.
    InvalidSetting: an unknown keyword.
    """
    return Cluster(address, rank, join_timeout, settings)


class Cluster(Member):
    """The servers, and this process' place among the ranks that use them.

    For one thread. A `with` block ends the job well or fails it (`Member`);
    without one, `finish` does, which a loop over `resume` calls.
    """

    def __init__(
        self,
        address: str | None,
        rank: int | None,
        join_timeout: float,
        settings: dict[str, Any],
    ) -> None:
        super().__init__(address, rank, join_timeout, settings)
        self._optimizer: Optimizer | None = None
        self._weights: dict[int, Weights] = {}  # by id of the tensor
        self._model: torch.nn.Module | None = None
        self._micro_batches = 1
        # Ids of the samplers that `resume` may read; None: it does not read its loader.
        self._reading: set[int] | None = None
        self._initial: Mapping[str, torch.Tensor] = {}

    def optimizer(
        self,
        model: Model,
        kind: str = "sgd",
        *,
        groups: Iterable[Mapping[str, Any]] | None = None,
        buffers: str | None = None,
        frozen: str = "declare",
        scaler: torch.amp.GradScaler | None = None,
        total_steps: int | None = None,
        steps_per_epoch: int = 1,
        data_checksum: int = 0,
        **keywords: Any,
    ) -> Optimizer:
        """Declares the model, joins the job and returns the optimizer.

        On return the model has the weights of the job: rank 0's where training
        begins, else those after `steps` steps.

        model: a Module, or groups {"params": [(name, parameter), ...]}, which have
        no buffers: each rank keeps its own, and checkpoints lack them. kind:
        "sgd", "adam", "adamw", "adagrad", "rmsprop", "adafactor", "lamb",
        "lion" or "ftrl". keywords: torch's for this optimizer (lr,
        weight_decay, betas, ...), and those of `connect`. groups: parameter
        groups as torch's optimizers take them, with own lr, weight_decay, ...;
        parameters in no group are frozen. buffers: "average" (the mean of the
        ranks' values after each step, weighted by samples; the default with a
        Module), "rank0", or "local" (not sent). frozen: "declare" parameters
        without a gradient, so that checkpoints hold them, or leave them "local" to
        the program. scaler: of the training loop. total_steps: of the job; after
        them `finish` is not needed. steps_per_epoch: for `tributary status`.
        data_checksum: of the data (tributary._native.crc32c), equal on every rank.

        InvalidSetting: a keyword or its value. ModelMismatch: another rank
        declares another model. Misuse, Unavailable, PlaceTaken: the message
        says what to do.
        """
        if self._optimizer is not None:
            raise Misuse(
                "this connection has an optimizer already; give all parameters to "
                "one, in groups with settings of their own"
            )
        options, settings = split_keywords(kind, keywords)
        further = settings.get("settings")
        if isinstance(further, Mapping) and "program.buffers" in further:
            raise InvalidSetting('say buffers="average" or "rank0" by its own keyword')
        sync = sync_of(settings) or self._sync
        if buffers == "rank0" and not gathers_steps(sync):
            raise Misuse(
                f'buffers="rank0" needs sync="bsp" without backup workers, got '
                f'sync={sync}; use buffers="average" or "local"'
            )
        if self._initial:
            load(model, self._initial)
        declared = declare(model, groups, buffers=buffers, frozen=frozen)
        _refuse_owned(declared)
        stay_near(_device_of(declared))
        self._sync = sync
        if scaler is not None:
            settings.setdefault("nonfinite", "skip")
        fields, rates = optimizer_settings(kind, options, declared)
        self._enter(
            Optimizer(declared, kind, options, rates, scaler),
            [*settings_of(settings), *fields, *compared_settings(model, declared)],
            self._weights_of(declared.entries),
            total_steps=total_steps,
            steps_per_epoch=steps_per_epoch,
            data_checksum=data_checksum,
        )
        self._model = model if isinstance(model, torch.nn.Module) else None
        return self._trainer()

    def _weights_of(self, entries: Sequence[Entry]) -> list[Weights]:
        """Keeps values of load_state_dict, not rounded to the parameters' types."""
        weights = [Weights(entry) for entry in entries]
        for entry, its in zip(entries, weights, strict=True):
            if entry.name in self._initial and not entry.as_bits:
                its.sharpen(self._initial[entry.name])
        return weights

    def _enter(
        self,
        optimizer: Optimizer,
        settings: list[str],
        weights: list[Weights],
        **totals: Any,
    ) -> None:
        """Joins the job with this optimizer and these tensors."""
        declared = optimizer._declared
        self._join(
            settings,
            [
                (e.declared_name, list(w.memory.shape), _momentum(e), w.flat)
                for e, w in zip(declared.entries, weights, strict=True)
            ],
            device=_device_text(declared),
            arithmetic=arithmetic_text(),
            reserved=[i for i, w in enumerate(weights) if not w.direct],
            **totals,
        )
        optimizer._start(self._joined(), weights, self._note_thread)
        self._optimizer = optimizer
        self._weights = {id(w.tensor): w for w in weights}
        for tensor in optimizer._trained():
            _owners[id(tensor)] = optimizer

    def _trainer(self) -> Optimizer:
        self._joined()
        if self._optimizer is None:
            raise Misuse("call cluster.optimizer(model, ...) first")
        return self._optimizer

    @property
    def samples(self) -> int:
        """The weight of this rank's gradient in the next steps; 1 until it is
        set. 0: the gradient does not count. A loop over `resume` whose loader
        uses `sampler` sets it to the rows of each step."""
        return self._trainer().sending.batch.samples

    @samples.setter
    def samples(self, samples: int) -> None:
        trainer = self._trainer()
        trainer.sending.set_samples(count("samples", samples), trainer._in_loop)

    def no_sync(self) -> AbstractContextManager[None]:
        """In this block backward() only accumulates gradients, as with DDP. The
        next backward() outside of it sends the sums."""
        return self._trainer()._quiet()

    @property
    def accumulating(self) -> bool:
        """In a loop over `resume`: this batch is not the last of its step."""
        return self._trainer()._holding

    @property
    def micro_batches(self) -> int:
        """In a loop over `resume`: the number of batches of the present step."""
        return self._micro_batches

    def log(self, loss: torch.Tensor | float) -> None:
        """The loss of this rank's batch, which the next step reports. It is read
        in step(), when its value is known anyway."""
        if isinstance(loss, torch.Tensor):
            self._trainer()._loss = loss.detach()
        else:
            self._trainer()._loss = number("loss", loss)

    def sampler(
        self,
        dataset: Sized,
        *,
        shuffle: bool = True,
        seed: int | None = None,
        drop_last: bool = False,
    ) -> Sampler:
        """A sampler for a DataLoader, in place of DistributedSampler. seed: of the
        order; by default the job's."""
        return Sampler(self, dataset, shuffle, seed, drop_last)

    def resume(
        self,
        loader: Iterable[Any],
        epochs: int = 1,
        *,
        accumulate: int = 1,
        reseed: bool = True,
        step_scheduler: Any = None,
        epoch_scheduler: Any = None,
        on_epoch_end: Callable[[int], None] | None = None,
        finish: bool = True,
    ) -> Iterator[tuple[int, Any]]:
        """(epoch from 0, batch) from the job's position on, to its end.

        Follows the job when it goes back to a checkpoint. The body calls
        backward() and optimizer.step() once for every batch.

        loader: with a length. With `sampler` it starts at the position; else
        batches before it are read and dropped. accumulate: batches of a step.
        On all but the last one step() and zero_grad() do nothing and backward()
        accumulates; divide the mean loss by `micro_batches`. A short batch weighs
        by its rows, where the loader tells them. reseed: before each
        batch, torch, random and numpy are seeded with a function of (seed,
        rank, step). step_scheduler, epoch_scheduler: schedulers of torch that
        this loop steps after each step or epoch; do not call their step().
        on_epoch_end: called with the epoch after its last step, for example to
        evaluate. finish: at the end, say that this rank is done and wait for
        the others; without it, the program calls `finish`.
        """
        options = LoopOptions(
            epochs=epochs,
            accumulate=accumulate,
            reseed=reseed,
            step_scheduler=step_scheduler,
            epoch_scheduler=epoch_scheduler,
            on_epoch_end=on_epoch_end,
            finish=finish,
        )
        return Loop(self, self._trainer(), loader, options).run()

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Copies of the model's tensors on the CPU, by torch's names.

        Trained parameters are float32: the weights that the servers hold, also
        of a bfloat16 or float16 parameter. Load it with load_state_dict of the
        model, before `optimizer`.
        """
        optimizer = self._optimizer
        if optimizer is None:
            raise Misuse("call cluster.optimizer(model, ...) first")
        if self._model is not None:
            named = self._model.state_dict(keep_vars=True)
        else:
            entries = optimizer._declared.entries
            named = {entry.name: entry.tensor for entry in entries}
        copies = {}
        for name, tensor in named.items():
            weights = self._weights.get(id(tensor))
            if weights is not None and weights.holds_more:
                copies[name] = weights.memory.detach().clone()
            elif isinstance(tensor, torch.Tensor):
                copies[name] = tensor.detach().cpu().clone()
        return copies

    @contextlib.contextmanager
    def newest_weights(self) -> Iterator[None]:
        """Inside of the block the model has the weights after the last step.

        With sync={"bsp": {"delay": 1}} it otherwise has the weights of one step before.
        Evaluate in such a block, on every rank; take no step in it. Without a delay the
        block changes nothing.
        """
        session = self._joined()
        if not session.is_late or self._optimizer is None:
            yield
            return
        session.show_newest(True)
        self._optimizer.sending.write_back()
        try:
            yield
        finally:
            session.show_newest(False)
            self._optimizer.sending.write_back()

    def load_state_dict(self, state: Mapping[str, torch.Tensor]) -> None:
        """Gives these values to the model that `optimizer` takes next, like the model's
        load_state_dict, but keeps the precision of `state` for bfloat16 and float16.
        Where training begins, rank 0's values count; a job that goes on keeps its
        weights.

        state: of `state_dict`, `tributary.torch.load_checkpoint`, torch.load ...
        Misuse: the model is with the servers already.
        """
        if self._optimizer is not None:
            raise Misuse(
                "the servers hold the weights since cluster.optimizer(); call "
                "load_state_dict before it"
            )
        self._initial = state

    def _stopped(self) -> bool:
        return self._optimizer is not None and self._optimizer.sending.ended

    def _moved(self) -> None:
        if self._optimizer is not None:
            self._optimizer.sending.ended = False
            self._optimizer.sending.write_back()

    def _finished(self) -> None:
        if self._optimizer is not None and self._joined().is_late:
            self._optimizer.sending.write_back()

    def _close(self) -> None:
        if self._optimizer is not None:
            self._optimizer._close()
        super()._close()


def _momentum(entry: Entry) -> float:
    """Running averages move all the way to the mean of the ranks' values."""
    return 1.0 if entry.role is Role.BUFFER else 0.0


def _refuse_owned(declared: Declared) -> None:
    for entry in declared.entries:
        owner = _owners.get(id(entry.tensor))
        if owner is not None and owner._steps is not None:
            raise Misuse(
                f"{entry.name} is trained by another optimizer of this package "
                "already; close that connection first"
            )


def _device_of(declared: Declared) -> torch.device:
    return next(
        (e.tensor.device for e in declared.entries if e.tensor.is_cuda),
        torch.device("cpu"),
    )


def _device_text(declared: Declared) -> str:
    device = _device_of(declared)
    if device.type == "cuda":
        return f"{device} {torch.cuda.get_device_name(device)}"
    return str(device)
