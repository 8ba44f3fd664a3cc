# SPDX-License-Identifier: Apache-2.0
"""The sampler gets the epoch with every loader that cluster.resume reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from fake_native import Session
from models import one_weight, start, train
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Sampler,
)
from torch.utils.data.distributed import DistributedSampler

import tributary.torch as tributary


class Rows(Dataset[int]):
    """Row i is i; knows the epoch if it is asked to."""

    def __init__(self, rows: int = 12) -> None:
        self.rows = rows
        self.epochs: list[int] = []

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, i: Any) -> Any:
        return torch.as_tensor(i)

    def set_epoch(self, epoch: int) -> None:
        self.epochs.append(epoch)


class Around:
    """Reads another loader or sampler, which it holds in an attribute."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __len__(self) -> int:
        return len(self.inner)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.inner)


class Backwards(Around):
    """Reads the last batch first."""

    def __iter__(self) -> Iterator[Any]:
        return reversed(list(self.inner))


class Slotted(Around):
    __slots__ = ("hidden",)

    def __init__(self, inner: Any) -> None:
        self.hidden = [inner]

    def __len__(self) -> int:
        return len(self.hidden[0])

    def __iter__(self) -> Iterator[Any]:
        return iter(self.hidden[0])


class AroundSampler(Sampler[int]):
    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __len__(self) -> int:
        return len(self.inner)

    def __iter__(self) -> Iterator[int]:
        return iter(self.inner)


class Half(AroundSampler):
    """Half of the rows of another sampler."""

    def __len__(self) -> int:
        return len(self.inner) // 2

    def __iter__(self) -> Iterator[int]:
        return iter(list(self.inner)[: len(self)])


def opaque(loader: Any) -> Any:
    class Opaque:
        def __len__(self) -> int:
            return len(loader)

        def __iter__(self) -> Iterator[Any]:
            return iter(loader)

    return Opaque()


Make = Callable[[tributary.Cluster, Rows], Any]
LOADERS: dict[str, Make] = {
    "sampler": lambda c, d: DataLoader(d, batch_size=2, sampler=c.sampler(d)),
    "batch_sampler": lambda c, d: DataLoader(
        d, batch_sampler=BatchSampler(c.sampler(d), 2, False)
    ),
    "no automatic batches": lambda c, d: DataLoader(
        d, batch_size=None, sampler=BatchSampler(c.sampler(d), 2, False)
    ),
    "single rows": lambda c, d: DataLoader(d, batch_size=None, sampler=c.sampler(d)),
    "wrapped": lambda c, d: Around(LOADERS["sampler"](c, d)),
    "wrapped twice": lambda c, d: Slotted(Around(LOADERS["batch_sampler"](c, d))),
    "in another order": lambda c, d: Backwards(LOADERS["sampler"](c, d)),
    "nested sampler": lambda c, d: DataLoader(
        d, batch_size=2, sampler=AroundSampler(c.sampler(d))
    ),
    "nested in a batch sampler": lambda c, d: DataLoader(
        d, batch_sampler=BatchSampler(AroundSampler(c.sampler(d)), 2, False)
    ),
    "torch's": lambda c, d: DataLoader(
        d, batch_sampler=BatchSampler(DistributedSampler(d, 1, 0), 2, False)
    ),
    "torch's, wrapped": lambda c, d: Around(
        DataLoader(d, batch_size=2, sampler=DistributedSampler(d, 1, 0))
    ),
}


def orders_of(make: Make, data: Rows) -> list[list[int]]:
    """The rows of each of three epochs, from the job's position on."""
    cluster, optimizer, _ = start(torch.nn.Linear(1, 1, bias=False))
    orders: list[list[int]] = [[], [], []]
    with cluster:
        for epoch, rows in cluster.resume(make(cluster, data), epochs=3):
            orders[epoch] += rows.reshape(-1).tolist()
            optimizer.param_groups[0]["params"][0].sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    return orders


@pytest.mark.parametrize("kind", LOADERS)
def test_each_epoch_has_another_order(monkeypatch: Any, kind: str) -> None:
    orders = orders_of(LOADERS[kind], Rows())
    assert [sorted(order) for order in orders] == [list(range(12))] * 3
    assert len({tuple(order) for order in orders}) == 3
    # A process that takes the place of a lost one reads the same rows.
    rows_a_step = 1 if kind == "single rows" else 2
    monkeypatch.setattr(Session, "first_steps", 12 // rows_a_step + 2)
    rest = [[], orders[1][2 * rows_a_step :], orders[2]]
    assert orders_of(LOADERS[kind], Rows()) == rest


def test_a_data_set_that_asks_for_the_epoch_is_told() -> None:
    data = Rows(2)
    orders_of(lambda c, d: DataLoader(d, batch_size=1), data)
    assert data.epochs == [0, 1, 2]


class Stream(IterableDataset[int]):
    """A stream that has a length and asks for the epoch."""

    def __len__(self) -> int:
        return 2

    def __iter__(self) -> Iterator[int]:
        return iter(range(2))

    def set_epoch(self, epoch: int) -> None:
        pass


def persistent(data: Any, **options: Any) -> Any:
    return DataLoader(data, num_workers=1, persistent_workers=True, **options)


@pytest.mark.parametrize("around", [lambda loader: loader, Around])
@pytest.mark.parametrize("data", [Rows(2), Stream()])
def test_workers_that_keep_a_data_set_do_not_hear_of_the_epoch(
    data: Any, around: Callable[[Any], Any]
) -> None:
    with pytest.raises(tributary.Misuse, match="use persistent_workers=False"):
        orders_of(lambda c, d: around(persistent(data)), Rows())


def test_persistent_workers_may_read_other_data_sets() -> None:
    """The sampler, which stays in the program, has the epoch."""
    orders = orders_of(
        lambda c, d: persistent(list(range(4)), sampler=c.sampler(range(4))), Rows()
    )
    assert [sorted(order) for order in orders] == [list(range(4))] * 3


def test_a_sampler_that_is_not_found_is_refused() -> None:
    with pytest.raises(tributary.Misuse, match="has not found this cluster.sampler"):
        orders_of(lambda c, d: opaque(LOADERS["sampler"](c, d)), Rows())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda c, d: [
                DataLoader(d, batch_size=2, sampler=c.sampler(d)) for _ in range(2)
            ],
            "more than one",
        ),
        (
            lambda c, d: DataLoader(d, batch_size=2, sampler=Half(c.sampler(d))),
            "how many rows",
        ),
    ],
)
def test_rows_that_cannot_be_counted_are_refused(make: Make, message: str) -> None:
    with pytest.raises(tributary.Misuse, match=message):
        orders_of(make, Rows())


def test_an_evaluation_in_the_loop_may_use_a_sampler_of_its_own() -> None:
    cluster, optimizer, session = start(torch.nn.Linear(1, 1, bias=False))
    test = DataLoader(Rows(3), sampler=cluster.sampler(Rows(3)))
    seen = []
    for _ in cluster.resume(DataLoader(Rows(2)), epochs=1):
        seen.append(sorted(int(row) for row in test))
        optimizer.param_groups[0]["params"][0].sum().backward()
        optimizer.step()
    assert seen == [[0, 1, 2]] * 2 and session.finished == 1


def test_torchs_random_order_is_another_in_each_epoch() -> None:
    orders = orders_of(
        lambda c, d: DataLoader(d, batch_size=2, sampler=RandomSampler(d)), Rows()
    )
    assert len({tuple(order) for order in orders}) == 3


def test_steps_before_a_loop_would_be_rows_of_it() -> None:
    cluster, optimizer, _ = start(one_weight())
    weight = optimizer.param_groups[0]["params"][0]
    weight.sum().backward()
    optimizer.step()
    with pytest.raises(tributary.Misuse, match="taken 1 steps outside of a loop"):
        next(iter(cluster.resume([torch.tensor([1])])))
    cluster.fail("test")


def test_a_job_has_one_loop_at_a_time() -> None:
    cluster, optimizer, _ = start(one_weight())
    weight = optimizer.param_groups[0]["params"][0]
    first = cluster.resume([1, 2, 3], finish=False)
    with pytest.raises(tributary.Misuse, match="goes on after another one has begun"):
        for _ in zip(first, cluster.resume([1, 2, 3], finish=False), strict=True):
            weight.sum().backward()
            optimizer.step()
    cluster.fail("test")


def test_a_loop_that_is_left_but_kept_ends_with_the_next() -> None:
    """Its last batch was not stepped, so its gradient is gone."""
    cluster, optimizer, session = start(one_weight())
    weight = optimizer.param_groups[0]["params"][0]
    kept = cluster.resume([1, 2, 3, 4], accumulate=2, finish=False)
    for _, value in kept:
        (weight * value).sum().backward()
        break
    for _ in cluster.resume([10, 20], accumulate=2, epochs=1):
        (weight * 1).sum().backward()
        optimizer.step()
    assert session.gradients[0].tolist() == [2.0]


def test_a_second_step_for_a_batch() -> None:
    cluster, optimizer, _ = start(one_weight())
    weight = optimizer.param_groups[0]["params"][0]
    with pytest.raises(tributary.Misuse, match="took 2 steps where one is due"):
        for _ in cluster.resume([1, 2, 3, 4], accumulate=2):
            weight.sum().backward()
            optimizer.step()
            optimizer.step()
    cluster.fail("test")


def test_a_loader_with_more_batches_than_its_length() -> None:
    class Longer:
        def __len__(self) -> int:
            return 2

        def __iter__(self) -> Any:
            return iter([torch.tensor([i]) for i in range(3)])

    cluster, optimizer, _ = start(one_weight())
    with pytest.raises(tributary.Misuse, match="has length 2, but more batches"):
        train(cluster, optimizer, Longer())
    cluster.fail("test")


@pytest.mark.parametrize("first", range(1, 8))
def test_a_generator_of_the_program_follows_the_position(
    monkeypatch: Any, first: int
) -> None:
    def orders(begin: int, seed: int = 3) -> list[Any]:
        monkeypatch.setattr(Session, "first_steps", begin)
        cluster, optimizer, _ = start(one_weight())
        loader = DataLoader(
            list(range(4)), shuffle=True, generator=torch.Generator().manual_seed(seed)
        )
        return train(cluster, optimizer, loader, epochs=2)

    assert orders(first) == orders(0)[first:]
    assert orders(0) != orders(0, seed=4)
