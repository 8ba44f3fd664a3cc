# SPDX-License-Identifier: Apache-2.0
"""Which rows of a data set each rank computes on."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sized
from typing import TYPE_CHECKING

import torch

from tributary import _native
from tributary._errors import Misuse

if TYPE_CHECKING:
    from tributary.torch.cluster import Cluster


class Sampler(torch.utils.data.Sampler[int]):
    """The rows of one rank: every W-th of an epoch's order, from the rank-th on.

    A function of (rows, seed, epoch, rank, W), where W is the number of ranks.
    Used as DistributedSampler is: DataLoader(data, batch_size=B,
    sampler=cluster.sampler(data)). Batch t of all ranks together then holds the
    rows that batch t of one process with batch size W B would hold. It differs
    from DistributedSampler in three points:

    - The order is that of Tributary's own workers (docs/job-file.md) and not
      torch's.
    - Every row counts once an epoch. No row is repeated to fill the last batch;
      a rank without a row for it computes on rows that do not count.
    - `cluster.resume` sets the epoch and the position in it. Outside of it, call
      `set_epoch`.
    """

    def __init__(
        self,
        cluster: Cluster,
        dataset: Sized,
        shuffle: bool,
        seed: int | None,
        drop_last: bool,
    ) -> None:
        self._cluster = weakref.proxy(cluster)
        if not isinstance(dataset, Sized):
            raise Misuse(
                f"wanted a data set with a length, got {type(dataset).__name__}"
            )
        self._rows = len(dataset)
        self._shuffle = shuffle
        self._seed = seed
        self._drop_last = drop_last
        self._batch_size: int | None = None  # of the loader; None: unknown
        self._epoch = 0
        self._start = 0  # rows of this rank before it
        if self._rows < 1:
            raise Misuse("the data set has no rows")

    def __len__(self) -> int:
        """Rows an epoch, of every rank."""
        world = self._cluster.world_size
        if self._drop_last:
            return self._rows // world
        return -(-self._rows // world)

    def __iter__(self) -> Iterator[int]:
        reading = self._cluster._reading
        if reading is not None and id(self) not in reading:
            raise Misuse(
                "cluster.resume has not found this cluster.sampler(...) in its loader, "
                "so every epoch would have the same order; give it the DataLoader, or "
                "an object that has the DataLoader as an attribute"
            )
        rank, world = self._cluster.rank, self._cluster.world_size
        if self._shuffle:
            seed = self._cluster.seed if self._seed is None else self._seed
            order = _native.shuffled_order(self._rows, seed, self._epoch)
            mine = order[rank::world].tolist()
        else:
            mine = list(range(rank, self._rows, world))
        start, self._start = self._start, 0
        if self._drop_last:
            del mine[len(self) :]
        yield from mine[start:]
        if self._lacks_batch(len(mine)):
            # The first rows again, for a batch that counts nothing.
            yield from mine[: self._batch_size or 1] or [0]

    def set_epoch(self, epoch: int) -> None:
        """The epoch whose order the next iteration has, from 0."""
        self._epoch = epoch
        self._start = 0

    def _lacks_batch(self, mine: int) -> bool:
        """Whether ranks with one row more than this one have one batch more."""
        if mine == len(self):
            return False
        return self._batch_size is None or mine % self._batch_size == 0

    def attach(self, batch_size: int, drop_last: bool) -> None:
        """The loader's batch size, and whether it drops an epoch's last rows."""
        self._batch_size = batch_size
        self._drop_last = self._drop_last or drop_last

    def place(self, epoch: int, row: int) -> None:
        """The next iteration starts with this row of this rank and epoch."""
        self._epoch = epoch
        self._start = row

    @property
    def counted(self) -> int:
        """Rows that count in an epoch, of all ranks."""
        if self._drop_last:
            return len(self) * self._cluster.world_size
        return self._rows

    @property
    def order(self) -> str:
        """A name of the order of an epoch's rows, equal on all ranks."""
        if not self._shuffle:
            return "cluster.sampler without shuffle"
        seed = self._cluster.seed if self._seed is None else self._seed
        return f"cluster.sampler with seed {seed}"

    def samples(self, batch: int, batch_size: int) -> int:
        """This rank's rows that count in a batch."""
        world = self._cluster.world_size
        rows = -(-(self._rows - self._cluster.rank) // world)
        if self._drop_last:
            rows = min(rows, self._rows // world)
        return min(max(rows - batch * batch_size, 0), batch_size)

    def given(self, batch: int, batch_size: int) -> int:
        """Rows in a batch of this rank, with those that are repeated to fill it."""
        rows = -(-(self._rows - self._cluster.rank) // self._cluster.world_size)
        if self._drop_last:
            rows = len(self)
        elif self._lacks_batch(rows):
            rows += min(rows, self._batch_size or 1) or 1
        return min(max(rows - batch * batch_size, 0), batch_size)
