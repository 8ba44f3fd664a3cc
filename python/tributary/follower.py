# SPDX-License-Identifier: Apache-2.0
"""Reading the weights of a running job."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from tributary import _native
from tributary._bits import decoded
from tributary._environment import Place, operator_folder
from tributary._errors import Stopped


@dataclass(frozen=True)
class Snapshot:
    """Weights of one moment."""

    # How often the servers have updated them: with bsp the number of steps, with
    # async and ssp the number of contributions.
    updates: int
    # Every weight has this number of updates. False: the job applies
    # contributions one by one, or its weights change faster than they can be
    # read; then `updates` is the smallest number of all.
    consistent: bool
    # By name, of the declared shapes: float32, except for buffers that float32 cannot
    # hold, which keep their types.
    weights: dict[str, npt.NDArray[Any]]


class Follower:
    """Reads a running job's weights from its servers, for example to evaluate
    them. It takes no place in the job, and the job does not wait for it.

        for snapshot in tributary.follow("host:port"):
            print(snapshot.updates, evaluate(snapshot.weights))
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        timeout: float = 60.0,
        tls: str | None = None,
    ) -> None:
        place = Place.find(address, None)
        self._native = _native.Follower.connect(
            coordinator=place.address,
            timeout=timeout,
            tls=(place.tls or operator_folder(place.address)) if tls is None else tls,
            token_file=place.token_file,
        )

    @property
    def shapes(self) -> dict[str, list[int]]:
        """The parameters' shapes by name, in the order of their declaration."""
        return {name: list(shape) for name, shape in self._native.parameters}

    def read(self, min_updates: int = 0) -> Snapshot:
        """The newest weights, once every weight has `min_updates` updates.

        Stopped: the job has ended. Timeout, Unavailable: no such weights came in
        time; the message says why.
        """
        oldest, newest, tensors = self._native.read(min_updates)
        weights = dict(
            decoded(name, tensor.reshape(shape))
            for (name, shape), tensor in zip(
                self._native.parameters, tensors, strict=True
            )
        )
        return Snapshot(oldest, oldest == newest, weights)

    def __iter__(self) -> Iterator[Snapshot]:
        """Weights that are newer than the last ones, until the job ends."""
        last = -1
        while True:
            try:
                snapshot = self.read(last + 1)
            except Stopped:
                return
            last = snapshot.updates
            yield snapshot


def follow(
    address: str | None = None, *, timeout: float = 60.0, tls: str | None = None
) -> Follower:
    """A `Follower` of the job that the coordinator at `address` (host:port) runs,
    by default the one that the environment names.

    timeout: seconds to wait for the job's beginning, and for each read.
    tls: the folder with an operator's or a worker's certificate, as RUN/tls/operator
    of a run that `tributary train` started; by default the folder in TRIBUTARY_TLS,
    or that of your own job at this address. Stopped: the job has ended. Misuse: no
    coordinator is known.
    """
    return Follower(address, timeout=timeout, tls=tls)
