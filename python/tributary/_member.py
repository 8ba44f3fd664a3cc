# SPDX-License-Identifier: Apache-2.0
"""A rank of a job, from joining to its end: the base of Client and Cluster."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import weakref
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import numpy as np

from tributary import _native
from tributary._checks import count, number, seconds
from tributary._endings import Endings, is_normal_end, text_of
from tributary._environment import Place
from tributary._errors import Error, Misuse, Stopped, WrongState
from tributary._settings import round_of, settings_of, sync_of

# (name, shape, fraction by which a running average moves or 0, float32 memory)
Declared = tuple[str, Sequence[int], float, Any]

# The members of this process that have joined a job and have not closed.
_open: weakref.WeakSet[Member] = weakref.WeakSet()


class Member:
    """A rank of a job. Use it in a `with` block.

    The block's normal end, like `finish`, reports that this rank has no further
    step and waits for the other ranks. An exception fails the job with its text.
    Without a block or `finish`, the job fails when the program ends, unless it has
    taken all of `total_steps`. A process that is killed reports nothing: the job
    then waits for a new process with the same rank, which continues where this one
    was.
    """

    def __init__(
        self,
        address: str | None,
        rank: int | None,
        join_timeout: float,
        settings: dict[str, Any],
    ) -> None:
        self._place = Place.find(address, rank)
        self._join_timeout = seconds("join_timeout", join_timeout)
        self._settings = settings_of(settings)
        self._sync = sync_of(settings)  # None: the job's file says it, or bsp
        self._total_steps: int | None = None
        self._process = os.getpid()
        self._endings = Endings()
        self._session: _native.Session | None = None
        self._last_steps = 0
        self._over = False
        # The threads that have joined the job or ended a step.
        self._threads: weakref.WeakSet[threading.Thread] = weakref.WeakSet()

    # Properties of the job.

    @property
    def rank(self) -> int:
        """This process' number in the job, from 0."""
        if self._session is not None:
            return self._session.rank
        if self._place.rank is None:
            raise Misuse("the rank is not known before this process has joined the job")
        return self._place.rank

    @property
    def world_size(self) -> int:
        """The number of ranks."""
        if self._session is not None:
            return self._session.world
        if self._place.world_size is None:
            raise Misuse(
                "the number of ranks is not known before this process has joined "
                "the job"
            )
        return self._place.world_size

    @property
    def steps(self) -> int:
        """Steps that this rank has finished, also before a restart."""
        return self._last_steps if self._session is None else self._session.steps

    @property
    def seed(self) -> int:
        """The job's seed."""
        return self._joined().seed

    @property
    def traffic(self) -> tuple[int, int]:
        """Bytes that this rank has sent to servers or other ranks, and received."""
        return self._joined().traffic

    def evaluated(
        self,
        *,
        loss_sum: float,
        samples: int,
        correct: int = 0,
        values: int | None = None,
    ) -> None:
        """Reports this rank's part of an evaluation of the present weights. Every
        rank has to report a part after the same step.

        loss_sum: over the samples. correct: samples that were classified
        correctly. values: samples times outputs where a sample has several; by
        default `samples`. The coordinator adds the parts of all ranks.
        """
        self._joined().report_evaluation(
            loss_sum=number("loss_sum", loss_sum),
            samples=count("samples", samples),
            correct=count("correct", correct),
            values=count("values", samples if values is None else values),
        )

    # The session.

    def _joined(self) -> _native.Session:
        if self._over:
            raise WrongState("this connection to the job is closed")
        if self._session is None:
            raise Misuse("this process has not joined the job yet")
        return self._session

    def _join(
        self,
        settings: list[str],
        declared: list[Declared],
        *,
        device: str,
        arithmetic: str,
        total_steps: int | None,
        steps_per_epoch: int,
        data_checksum: int,
        reserved: Sequence[int] = (),
    ) -> None:
        """Takes a place and declares the parameters. reserved: indexes of parameters
        whose memory the program does not use itself."""
        if self._over:
            raise WrongState("this connection to the job is closed")
        if self._session is not None:
            raise Misuse("this process has already joined the job")
        totals = {
            "total_steps": _native.OPEN_END
            if total_steps is None
            else count("total_steps", total_steps, 1),
            "steps_per_epoch": count("steps_per_epoch", steps_per_epoch, 1),
            "data_checksum": count("data_checksum", data_checksum),
        }
        self._refuse_own_place()
        self._total_steps = total_steps
        self._session = _native.Session.join(
            coordinator=self._place.address,
            rank=self._place.rank,
            join_timeout=self._join_timeout,
            settings=[*self._settings, *settings],
            device=device,
            arithmetic=arithmetic,
            metrics_listen=self._place.metrics_listen,
            tls=self._place.tls,
            token_file=self._place.token_file,
            metrics_token_file=self._place.metrics_token_file,
            insecure=self._place.insecure,
            insecure_groups=self._place.insecure_groups,
        )
        _open.add(self)
        self._note_thread()
        # Keeps this object: a program may hold its optimizer alone.
        self._at_exit = lambda: _end_at_exit(self)
        atexit.register(self._at_exit)
        try:
            self._session.start(declared, **totals, reserved=reserved)
        except BaseException:
            self._close()  # The place is free for a process that declares right.
            raise

    def _refuse_own_place(self) -> None:
        """Misuse: another connection of this process has the same place."""
        for other in [*_open]:
            if (
                self._place.rank is not None
                and other.rank == self._place.rank
                and other._place.address == self._place.address
                and other._process == os.getpid()
            ):
                raise Misuse(
                    f"this process is rank {other.rank} of the job at "
                    f"{other._place.address} already; end that connection first (its "
                    "`with` block, finish or fail), which ends the job for this rank. "
                    "A job trains one model with one optimizer: a second one needs a "
                    "job with a coordinator of its own"
                )

    def _note_thread(self) -> None:
        """This thread trains, so exceptions of other threads no longer matter."""
        self._threads.add(threading.current_thread())
        self._endings.threads.clear()

    def _lost_thread(self) -> str:
        """The exception that has ended the training in a thread; empty: none has."""
        return self._endings.of_threads(self._threads)

    def _gradient(self, parameter: int) -> np.ndarray:
        return self._joined().gradient(parameter)

    # The end.

    def finish(self) -> bool:
        """Says that this rank takes no further step, and waits for the others.

        False: the job went back to a checkpoint meanwhile, so that the steps
        after `steps` must be taken again.
        """
        session = self._joined()
        if not self._stopped():
            try:
                self._check_rounds(session.steps)
            except Misuse as error:
                self.fail(str(error))
                raise
        if session.finish() is _native.Next.MOVED:
            self._moved()
            return False
        self._finished()
        self._close()
        return True

    def _check_rounds(self, steps: int) -> None:
        """Misuse: after so many steps local_sgd would lose the last ones."""
        period = round_of(self._sync)
        if steps % period != 0 and steps != self._total_steps:
            raise Misuse(
                f"the program takes {steps} steps, but local_sgd exchanges weights "
                f"after every {period} steps and would lose the last ones; take a "
                f"multiple of {period} steps, or declare total_steps={steps}"
            )

    def _stopped(self) -> bool:
        """The job has ended the training. For derived classes."""
        return False

    def fail(self, why: str) -> None:
        """Fails the job with this message. The connection is closed."""
        session = self._joined()
        try:
            session.fail(f"rank {session.rank}: {why}")
        finally:
            self._close()

    def _moved(self) -> None:
        """The position is another one. For derived classes."""

    def _finished(self) -> None:
        """The session has the final weights. For derived classes."""

    def _close(self) -> None:
        if self._session is not None:
            session = self._session
            self._last_steps = session.steps
            self._place = Place(self._place.address, session.rank, session.world)
            atexit.unregister(self._at_exit)
        _open.discard(self)
        self._session = None
        self._over = True

    def __enter__(self) -> Any:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if self._session is None:
            self._over = True
            return False
        if error is None or is_normal_end(error):
            if why := self._lost_thread():
                self.fail(why)
                raise Error(f"a thread that trained has failed: {why}")
            if not self.finish():
                raise Error(_went_back(self.steps))
            return isinstance(error, Stopped)
        try:
            self.fail(text_of(error))
        except Error:
            pass  # The block's own exception says more.
        return False


def _went_back(steps: int) -> str:
    return (
        f"the job went back to step {steps} after this rank's training loop had "
        "ended; run the program again, it continues there (a loop over "
        "cluster.resume continues by itself)"
    )


def _end_at_exit(member: Member) -> None:
    session = member._session
    if session is None:
        return
    if os.getpid() != member._process:
        return  # A fork: the job is the parent's.
    why = member._endings.exception() or member._lost_thread()
    if not why and not member._stopped() and session.steps != member._total_steps:
        why = member._endings.exit_text() or _ended_openly(session.steps)
    try:
        if why:
            member.fail(why)
        elif member.finish():
            return
        else:
            why = _went_back(member.steps)
    except Error as error:
        why = str(error)
    if member._endings.shows():
        return  # The interpreter prints why, and exits with a code that is not 0.
    print(f"tributary: {why}", file=sys.stderr, flush=True)
    sys.stdout.flush()
    os._exit(1)  # A launcher sees that the rank has not ended well.


def _ended_openly(steps: int) -> str:
    return (
        f"the program ended after step {steps} without saying that it has taken all "
        "its steps; train in `with tributary.connect() as ...:`, or call finish() at "
        "the end"
    )
