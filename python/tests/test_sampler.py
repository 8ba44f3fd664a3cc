# SPDX-License-Identifier: Apache-2.0
"""cluster.sampler against the definition in worker/train/data/batches/sampler.h."""

from __future__ import annotations

from typing import Any

import fake_native
import pytest
import torch
from models import start
from torch.utils.data import DataLoader

import tributary.torch as tributary


def join(monkeypatch: Any, rank: int, world: int) -> tuple[Any, Any, Any]:
    monkeypatch.setenv("TRIBUTARY_RANK", str(rank))
    monkeypatch.setenv("TRIBUTARY_WORLD_SIZE", str(world))
    monkeypatch.setattr(fake_native.Session, "world", world)
    return start(torch.nn.Linear(1, 1, bias=False))


def definition(
    rows: int, batch: int, rank: int, world: int, epoch: int, seed: int
) -> list[list[int]]:
    """The rows of a rank in each global batch: positions rank, rank + W, ..."""
    order = fake_native.shuffled_order(rows, seed, epoch).tolist()
    whole = world * batch
    return [order[t : t + whole][rank::world] for t in range(0, rows, whole)]


@pytest.mark.parametrize("world", [1, 2, 3, 4])
@pytest.mark.parametrize("rows", [1, 7, 9, 12, 13])
def test_batches_are_those_of_the_definition(
    monkeypatch: Any, rows: int, world: int
) -> None:
    batch, epochs = 2, 2
    for rank in range(world):
        cluster, optimizer, session = join(monkeypatch, rank, world)
        data = torch.arange(rows)
        loader = DataLoader(data, batch_size=batch, sampler=cluster.sampler(data))
        seen = []
        for _, taken in cluster.resume(loader, epochs):
            optimizer.zero_grad()
            optimizer.param_groups[0]["params"][0].sum().backward()
            optimizer.step()
            counted = session.begun[-1][0]
            assert counted in (0, len(taken))
            assert len(taken) > 0
            seen.append(taken.tolist() if counted else [])
        wanted = sum(
            (definition(rows, batch, rank, world, e, 7) for e in range(epochs)), []
        )
        assert seen == wanted


def test_every_rank_has_the_same_number_of_batches(monkeypatch: Any) -> None:
    for drop_last, wanted in ((False, 2), (True, 1)):
        for rank in range(4):
            cluster, _, _ = join(monkeypatch, rank, 4)
            data = torch.arange(9)
            sampler = cluster.sampler(data, drop_last=drop_last)
            loader = DataLoader(
                data, batch_size=2, sampler=sampler, drop_last=drop_last
            )
            assert len(loader) == wanted
            assert len(list(loader)) == wanted
            cluster.finish()


def test_the_loaders_drop_last_holds_for_every_rank(monkeypatch: Any) -> None:
    # 7 rows on 2 ranks: rank 0 has 4 of them and rank 1 only 3.
    for rank in range(2):
        cluster, optimizer, session = join(monkeypatch, rank, 2)
        data = torch.arange(7)
        loader = DataLoader(
            data, batch_size=3, sampler=cluster.sampler(data), drop_last=True
        )
        taken = 0
        for _ in cluster.resume(loader):
            optimizer.zero_grad()
            optimizer.param_groups[0]["params"][0].sum().backward()
            optimizer.step()
            taken += 1
        assert taken == 1 and session.begun[0][0] == 3


def test_without_shuffle_rows_keep_their_order(monkeypatch: Any) -> None:
    cluster, _, _ = join(monkeypatch, 1, 2)
    sampler = cluster.sampler(range(6), shuffle=False)
    assert list(sampler) == [1, 3, 5]
    cluster.finish()


def test_the_order_depends_on_the_epoch_and_the_seed(monkeypatch: Any) -> None:
    cluster, _, _ = join(monkeypatch, 0, 1)
    sampler = cluster.sampler(range(50), seed=3)
    first = list(sampler)
    assert first == fake_native.shuffled_order(50, 3, 0).tolist()
    assert list(sampler) == first
    sampler.set_epoch(1)
    assert list(sampler) == fake_native.shuffled_order(50, 3, 1).tolist()
    cluster.finish()


def test_batches_of_an_accumulated_step_count_their_rows(monkeypatch: Any) -> None:
    cluster, optimizer, session = join(monkeypatch, 0, 1)
    data = torch.arange(7)
    loader = DataLoader(data, batch_size=2, sampler=cluster.sampler(data))
    for _ in cluster.resume(loader, accumulate=3):
        optimizer.zero_grad()
        optimizer.param_groups[0]["params"][0].sum().backward()
        optimizer.step()
    assert [samples for samples, _ in session.begun] == [6, 1]


def test_before_joining_the_world_must_be_known(monkeypatch: Any) -> None:
    monkeypatch.delenv("TRIBUTARY_WORLD_SIZE")
    cluster = tributary.connect()
    sampler = cluster.sampler(range(3))
    with pytest.raises(tributary.Misuse, match="number of ranks is not known"):
        len(sampler)
    with pytest.raises(tributary.Misuse, match="no rows"):
        cluster.sampler([])


def test_the_position_holds_for_one_iteration(monkeypatch: Any) -> None:
    monkeypatch.setattr(fake_native.Session, "first_steps", 2)
    cluster, _, _ = join(monkeypatch, 0, 1)
    data = torch.arange(6)
    sampler = cluster.sampler(data, shuffle=False)
    loader = DataLoader(data, batch_size=2, sampler=sampler)
    for _, rows in cluster.resume(loader):
        assert rows.tolist() == [4, 5]
        break
    assert list(sampler) == list(range(6))
    sampler.place(0, 3)
    sampler.set_epoch(0)
    assert list(sampler) == list(range(6))
    cluster.finish()
