# SPDX-License-Identifier: Apache-2.0
"""Looks into the loader that a training loop reads."""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset

from tributary._errors import Misuse
from tributary._member import Member
from tributary.torch.sampler import Sampler

# How deep the search for samplers goes, and how many objects it visits.
_DEPTH, _MOST = 6, 1000
_OPAQUE = (
    *(str, bytes, int, float, complex, type, types.ModuleType, types.FunctionType),
    *(torch.Tensor, torch.nn.Module, torch.optim.Optimizer, Dataset, Member),
)


@dataclass
class Loader:
    """A loader, and the samplers that it uses.

    sampler: the cluster's. starts_anywhere: reading begins at the row that
    `sampler` is placed at. rows: this rank's rows of each full batch and of an epoch,
    if no sampler of the cluster gives them; None: unknown.
    """

    sampler: Sampler | None = None
    starts_anywhere: bool = False
    batch_size: int = 1
    drop_last: bool = False
    rows: int | None = None
    with_epochs: list[Any] = field(default_factory=list)  # have set_epoch
    # The program's generators, and the seeds that it has given them.
    generators: list[tuple[torch.Generator, int]] = field(default_factory=list)

    def rows_of(self, batch: int) -> int | None:
        """This rank's rows that count in a batch; None: unknown."""
        if self.sampler is not None:
            return self.sampler.samples(batch, self.batch_size)
        if self.rows is None:
            return None
        left = self.rows - batch * self.batch_size
        return min(max(left, 0), self.batch_size)


def look_into(loader: Iterable[Any]) -> Loader:
    """Finds the samplers of a loader. Misuse: it is unknown which rows of the
    cluster's sampler are in which batch, or its data set cannot be told the epoch."""
    found = list(_objects_in(loader))
    for one in found:
        if (
            isinstance(one, DataLoader)
            and one.persistent_workers
            and callable(_set_epoch_of(one.dataset))
        ):
            raise Misuse(
                "the loader's data set has set_epoch, and its workers keep the copies "
                "of it that they made in their first epoch; use "
                "persistent_workers=False, or give a sampler the set_epoch"
            )
    samplers = [one for one in found if isinstance(one, Sampler)]
    known = Loader(
        with_epochs=[o for o in found if callable(_set_epoch_of(o))],
        generators=_generators_of(found),
    )
    if not samplers:
        if (batches := _batches_of(loader)) is not None and batches.rows is not None:
            known.batch_size, known.rows = batches.batch_size, batches.rows
        return known
    if len(samplers) > 1:
        raise Misuse(
            "the loader uses more than one cluster.sampler(...); cluster.resume wants "
            "one, which says how many rows each step has"
        )
    (known.sampler,) = samplers
    for candidate in found:
        batches = _batches_of(candidate)
        if (
            batches is None
            or len(candidate) != len(loader)  # type: ignore[arg-type]
            or all(one is not known.sampler for one in _objects_in(candidate))
        ):
            continue
        if batches.sampler is known.sampler:
            known.starts_anywhere = candidate is loader
        elif batches.rows != len(known.sampler):
            continue
        known.batch_size, known.drop_last = batches.batch_size, batches.drop_last
        return known
    raise Misuse(
        "the loader uses cluster.sampler(...) in a way that does not say how many rows "
        "each batch has; give cluster.resume DataLoader(data, batch_size=B, "
        "sampler=cluster.sampler(data)) or a loader with as many batches around it"
    )


@dataclass
class _Batches:
    sampler: Any
    batch_size: int
    drop_last: bool
    rows: int | None


def _batches_of(loader: object) -> _Batches | None:
    """How a DataLoader takes consecutive rows from its sampler; None: it takes them
    in another way, or is not a DataLoader."""
    if not isinstance(loader, DataLoader) or isinstance(
        loader.dataset, IterableDataset
    ):
        return None
    batches = loader.batch_sampler
    if batches is None:
        batches = loader.sampler  # every index is a batch
        if type(batches) is not BatchSampler:
            return _Batches(batches, 1, False, _length_of(batches))
    if type(batches) is not BatchSampler:
        return None
    return _Batches(
        batches.sampler,
        batches.batch_size,
        batches.drop_last,
        _length_of(batches.sampler),
    )


def _length_of(sampler: Any) -> int | None:
    try:
        return len(sampler)
    except TypeError:
        return None


def _generators_of(found: list[Any]) -> list[tuple[torch.Generator, int]]:
    generators = {
        id(one): (one, one.initial_seed())
        for one in (getattr(candidate, "generator", None) for candidate in found)
        if isinstance(one, torch.Generator)
    }
    return list(generators.values())


def _set_epoch_of(candidate: Any) -> Any:
    return getattr(candidate, "set_epoch", None)


def _objects_in(root: Any) -> Iterator[Any]:
    """A loader and the objects in its attributes, without data."""
    seen: set[int] = set()
    waiting = [(root, 0)]
    while waiting and len(seen) < _MOST:
        one, depth = waiting.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        if depth < _DEPTH and not isinstance(one, Sampler):
            data = one.dataset if isinstance(one, DataLoader) else None
            waiting += [
                (part, _DEPTH if part is data else depth + 1) for part in _parts_of(one)
            ]


def _parts_of(one: Any) -> list[Any]:
    if isinstance(one, Mapping):
        parts = list(one.values())[:_MOST]
    elif isinstance(one, (list, tuple)):
        parts = list(one[:_MOST])
    else:
        slots = [
            getattr(one, name, None)
            for kind in type(one).__mro__
            for name in _names(kind.__dict__.get("__slots__", ()))
        ]
        parts = [*getattr(one, "__dict__", {}).values(), *slots]
    # A data set is not searched, but may have set_epoch.
    return [
        part
        for part in parts
        if not isinstance(part, _OPAQUE)
        or (isinstance(one, DataLoader) and part is one.dataset)
    ]


def _names(slots: Any) -> list[str]:
    names = [slots] if isinstance(slots, str) else list(slots)
    return [name for name in names if name not in ("__dict__", "__weakref__")]
