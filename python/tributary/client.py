# SPDX-License-Identifier: Apache-2.0
"""Training with numpy arrays, and with all arrays that support DLPack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tributary import _native
from tributary._arrays import float32_copy, host_view
from tributary._checks import count, number, rate
from tributary._errors import InvalidSetting, Misuse, Stopped
from tributary._member import Declared, Member
from tributary._names import hint, to_yaml
from tributary._optimizers import kind_of, spec_of

Arrays = dict[str, npt.NDArray[np.float32]]


def connect(
    address: str | None = None,
    rank: int | None = None,
    *,
    join_timeout: float = 60.0,
    **settings: Any,
) -> Client:
    """A rank of the job that the coordinator at `address` (host:port) runs.

    Without arguments, takes the address from the environment (`tributary run`,
    torchrun or Slurm). settings: as `Client`. Misuse: no coordinator is known.
    """
    return Client(address, rank, join_timeout=join_timeout, **settings)


class Client(Member):
    """A rank that trains arrays.

        with tributary.connect() as client:
            weights = client.declare({"w": w}, "sgd", lr=0.1)
            for batch in batches:
                weights = client.step({"w": gradient(weights["w"], batch)})

    settings: keywords of docs/pytorch.md ("sync", "checkpoint_every", ...),
    equal on every rank. For one thread.
    """

    def __init__(
        self,
        address: str | None = None,
        rank: int | None = None,
        *,
        join_timeout: float = 60.0,
        **settings: Any,
    ) -> None:
        super().__init__(address, rank, join_timeout, settings)
        self._index: dict[str, int] = {}
        self._shapes: list[tuple[int, ...]] = []
        self._weights: Arrays = {}
        self._gradients: list[npt.NDArray[np.float32]] = []
        self._sums: dict[str, int] = {}  # of the weights when a step began
        self._lr = 0.0
        self._pushed = False
        self._moved_now = False
        self._ended = False

    @property
    def moved(self) -> bool:
        """The last step ended elsewhere: the job went back to a checkpoint, or
        went on without this rank. `steps` and the weights have changed."""
        return self._moved_now

    def declare(
        self,
        arrays: Mapping[str, Any],
        optimizer: str = "sgd",
        *,
        total_steps: int | None = None,
        steps_per_epoch: int = 1,
        data_checksum: int = 0,
        **keywords: Any,
    ) -> Arrays:
        """Declares the parameters, joins the job and returns its weights.

        arrays: the initial weights by name, of any float type and on any
        device, in the order in which a forward pass uses them. Rank 0's are the
        job's, unless it continues from a checkpoint. optimizer, keywords:
        torch's names (lr, betas, ...). total_steps: of the whole job; None: the
        program ends it. The arrays that are returned are those of `pull`.

        ModelMismatch: another rank has declared other parameters.
        """
        if not isinstance(arrays, Mapping):
            raise Misuse(f"arrays wants a dict by name, got {type(arrays).__name__}")
        kind = kind_of(optimizer)
        keywords.setdefault("lr", kind.lr)
        if keywords["lr"] is None:
            raise InvalidSetting(f"{optimizer} wants a learning rate: lr=0.1")
        spec = spec_of(optimizer, keywords)
        for name in arrays:
            if not isinstance(name, str):
                raise Misuse(f"the name of an array must be a text, got {name!r}")
        weights = {name: float32_copy(name, array) for name, array in arrays.items()}
        if not weights:
            raise Misuse("there are no parameters to declare")
        for name, array in weights.items():
            if not np.isfinite(array).all():
                at = int(np.isfinite(array).reshape(-1).argmin())
                raise InvalidSetting(
                    f"{name} holds {array.reshape(-1)[at]} at element {at}; the "
                    "servers take finite weights"
                )
        declared: list[Declared] = [
            (name, list(array.shape), 0.0, array.reshape(-1))
            for name, array in weights.items()
        ]
        self._join(
            [f"training.optimizer={to_yaml(spec)}"],
            declared,
            device="cpu",
            arithmetic=f"numpy {np.__version__}",
            total_steps=total_steps,
            steps_per_epoch=steps_per_epoch,
            data_checksum=data_checksum,
        )
        self._lr = float(keywords["lr"])
        self._weights = weights
        self._index = {name: i for i, name in enumerate(weights)}
        self._gradients = [
            self._gradient(i).reshape(array.shape)
            for i, array in enumerate(weights.values())
        ]
        return self._weights

    def push(
        self,
        gradients: Mapping[str, Any],
        *,
        samples: int = 1,
        lr: float | None = None,
    ) -> None:
        """Sends the mean gradients of this rank's samples and does not wait for
        the weights, which `pull` writes into their arrays.

        gradients: by name, of the declared shapes; a missing gradient counts as
        zeros. samples: the weight of this rank's gradients. lr: this step's
        rate, equal on every rank; by default as declared. Stopped: the job has
        ended, and there is no further step.
        """
        session = self._joined()
        if self._pushed:
            raise Misuse("push was called twice; call pull after each push")
        if not isinstance(gradients, Mapping):
            raise Misuse(
                f"gradients wants a dict by name, got {type(gradients).__name__}"
            )
        for name in gradients:
            if name not in self._index:
                raise Misuse(f'"{name}" is not declared{hint(name, self._index)}')
        arrays = {name: host_view(name, array) for name, array in gradients.items()}
        for name, array in arrays.items():
            wanted = self._weights[name].shape
            if array.shape != wanted:
                raise Misuse(
                    f"the gradient of {name} has shape {list(array.shape)}, wanted "
                    f"{list(wanted)}"
                )
        now = self._lr if lr is None else rate(lr)
        counted = count("samples", samples)
        if self._ended:
            raise Stopped("the job has ended: there is no further step")
        begun = session.begin_step(counted, [now])
        self._pushed = begun is _native.Next.STEP
        self._moved_now = begun is _native.Next.MOVED
        if begun is _native.Next.END:
            self._ended = True
            raise Stopped("the job has ended: there is no further step")
        if not self._pushed:
            return
        # The last layers' gradients are sent first.
        for name, index in reversed(self._index.items()):
            np.copyto(self._gradients[index], arrays.get(name, 0.0), "unsafe")
            session.gradient_ready(index)
        self._sums = self._checksums()

    def _checksums(self) -> dict[str, int]:
        return {
            name: _native.crc32c(array.reshape(-1).view(np.uint8))
            for name, array in self._weights.items()
        }

    def _stopped(self) -> bool:
        return self._ended

    def pull(self, *, loss: float | None = None) -> Arrays:
        """Waits for the weights after the step that `push` has begun.

        loss: the mean over this rank's samples, for `tributary status`; None: it
        is not known. Returns the same float32 arrays each time, with new values.
        See `moved`.
        """
        session = self._joined()
        if not self._pushed:
            if self._moved_now:
                return self._weights
            raise Misuse("there is no step to wait for; call push first")
        mean = None if loss is None else number("loss", loss)
        for name, checksum in self._checksums().items():
            if checksum != self._sums[name]:
                raise Misuse(
                    f"the program has written into {name} since push, and pull would "
                    "overwrite it; declare other weights, or change a copy"
                )
        self._pushed = False
        after = session.finish_step(loss=mean, compute_seconds=0.0, data_seconds=0.0)
        self._moved_now = after is _native.Next.MOVED
        self._ended = after is _native.Next.END  # The next push raises.
        self._note_thread()
        return self._weights

    def step(
        self,
        gradients: Mapping[str, Any],
        *,
        samples: int = 1,
        lr: float | None = None,
        loss: float | None = None,
    ) -> Arrays:
        """`push`, then `pull`."""
        self.push(gradients, samples=samples, lr=lr)
        return self.pull(loss=loss)
