# SPDX-License-Identifier: Apache-2.0
"""The loop over cluster.resume: positions, seeds, roll-backs, accumulation."""

from __future__ import annotations

import random
from typing import Any

import fake_native
import numpy as np
import pytest
import torch
from fake_native import Next, Session
from models import assert_equal_weights, batch, loss_of, mlp, one_weight, start, train
from torch.utils.data import DataLoader

import tributary.torch as tributary


class Rows(torch.utils.data.Dataset[int]):
    """Row i is i."""

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, i: int) -> int:
        return i


@pytest.mark.parametrize("position", [0, 3, 4, 7])
@pytest.mark.parametrize("own", [True, False])
def test_it_starts_at_the_position(monkeypatch: Any, position: int, own: bool) -> None:
    def run() -> list[tuple[int, list[int]]]:
        cluster, optimizer, _ = start(one_weight())
        data = Rows(15)
        if own:
            sampler = cluster.sampler(data)
            loader = DataLoader(data, batch_size=4, sampler=sampler)
        else:
            loader = DataLoader(data, batch_size=4, shuffle=True)
        return train(cluster, optimizer, loader, epochs=2)

    whole = run()
    assert [epoch for epoch, _ in whole] == [0] * 4 + [1] * 4
    for epoch in (0, 1):
        rows = sum((rows for e, rows in whole if e == epoch), [])
        assert sorted(rows) == list(range(15))
    assert whole[:4] != whole[4:]
    monkeypatch.setattr(Session, "first_steps", position)
    assert run() == whole[position:]


@pytest.mark.parametrize("world", [1, 2])
def test_it_goes_on_at_the_row_with_other_batches(monkeypatch: Any, world: int) -> None:
    """8 of 24 rows in batches of 4, then batches of 2 on each of some ranks."""
    before = {
        "step": 0, "at": (0, 0), "rows": 24, "global_batch": 4, "accumulation": 1,
        "order": "cluster.sampler with seed 7",
    }  # fmt: skip
    monkeypatch.setattr(Session, "first_steps", 2)
    monkeypatch.setattr(Session, "first_course", [before])
    monkeypatch.setattr(Session, "world", world)
    cluster, optimizer, session = start(one_weight())
    data = Rows(24)
    loader = DataLoader(data, batch_size=2, sampler=cluster.sampler(data))
    seen = train(cluster, optimizer, loader, epochs=2, accumulate=2)
    order = [fake_native.shuffled_order(24, 7, epoch).tolist() for epoch in (0, 1)]
    for epoch, begin in ((0, 8), (1, 0)):
        rows = sum((rows for e, rows in seen if e == epoch), [])
        assert rows == order[epoch][begin::world]
    assert cluster.steps == 2 + (16 + 24) // (4 * world)
    assert session.course[1]["at"] == (0, 8)


def test_a_loop_whose_epochs_are_over_takes_no_step(monkeypatch: Any) -> None:
    """The second of two loops goes on: the first one's epochs are done."""
    cluster, optimizer, _ = start(one_weight())
    train(cluster, optimizer, [torch.tensor([1])] * 3, epochs=1, finish=False)
    other = [torch.tensor([2])] * 2
    assert train(cluster, optimizer, other, epochs=1, finish=False) == []
    assert train(cluster, optimizer, other, epochs=2) == [(1, [2]), (1, [2])]


def test_another_loader_counts_its_steps() -> None:
    cluster, optimizer, session = start(one_weight())
    train(cluster, optimizer, [torch.tensor([1])] * 5, accumulate=2)
    assert session.course[0]["rows"] == 3
    assert session.course[0]["order"] == "a loader of each of 1 ranks, 2 batches a step"


def test_it_ends_the_job_and_an_early_break_does_not() -> None:
    cluster, optimizer, session = start(one_weight())
    loader = [torch.tensor([i]) for i in range(3)]
    train(cluster, optimizer, loader, stop=2, epochs=1)
    assert session.finished == 0 and cluster.steps == 2
    train(cluster, optimizer, loader, epochs=1)
    assert session.finished == 1 and cluster.steps == 3


def test_it_follows_a_roll_back_in_a_step_and_after_the_last() -> None:
    cluster, optimizer, session = start(one_weight())
    loader = [torch.tensor([i]) for i in range(3)]

    def back_once(fake: Session) -> Next:
        if fake.steps == 5 and fake.traffic == (0, 0):
            fake.traffic, fake.steps = (1, 1), 2
            return Next.MOVED
        return Next.STEP

    def back_to_5(fake: Session) -> Next:
        fake.steps = 5
        return Next.MOVED

    session.after = back_once
    session.finishes = [back_to_5]
    seen = train(cluster, optimizer, loader, epochs=2)
    assert [(epoch, rows[0]) for epoch, rows in seen] == [
        (0, 0), (0, 1), (0, 2), (1, 0), (1, 1),
        (0, 2), (1, 0), (1, 1), (1, 2),
        (1, 2),
    ]  # fmt: skip
    assert session.finished == 2


def test_it_ends_when_the_job_ends() -> None:
    cluster, optimizer, session = start(one_weight())
    session.after = lambda fake: Next.END if fake.steps == 2 else Next.STEP
    loader = [torch.tensor([i]) for i in range(3)]
    assert len(train(cluster, optimizer, loader, epochs=9)) == 2
    assert session.finished == 1


def test_each_step_has_its_own_seed(monkeypatch: Any) -> None:
    def draws(first: int) -> list[tuple[float, float, float]]:
        monkeypatch.setattr(Session, "first_steps", first)
        cluster, optimizer, _ = start(one_weight())
        seen = []
        for _ in cluster.resume([1, 2, 3], epochs=1):
            seen.append((torch.rand(()).item(), random.random(), np.random.rand()))
            optimizer.zero_grad()
            optimizer.param_groups[0]["params"][0].sum().backward()
            optimizer.step()
        return seen

    whole = draws(0)
    assert len(set(whole)) == 3
    assert draws(1) == whole[1:]
    monkeypatch.setenv("TRIBUTARY_RANK", "1")
    assert not set(draws(0)) & set(whole)


def test_accumulation_takes_several_batches_a_step(monkeypatch: Any) -> None:
    ours, theirs = mlp(), mlp()
    data = [batch(seed=i) for i in range(5)]
    cluster, optimizer, session = start(ours)
    sizes = []
    for _, x in cluster.resume(data, epochs=1, accumulate=2):
        optimizer.zero_grad()
        (loss_of(ours, x) / cluster.micro_batches).backward()
        sizes.append((cluster.micro_batches, cluster.accumulating))
        optimizer.step()
    assert sizes == [(2, True), (2, False), (2, True), (2, False), (1, False)]
    rival = torch.optim.SGD(theirs.parameters(), lr=0.1)
    for group in (data[:2], data[2:4], data[4:]):
        rival.zero_grad()
        for x in group:
            (loss_of(theirs, x) / len(group)).backward()
        rival.step()
    assert_equal_weights(ours, theirs)
    assert session.finished == 1
    # A position counts steps and not batches.
    monkeypatch.setattr(Session, "first_steps", 2)
    cluster, optimizer, _ = start(one_weight())
    loader = [torch.tensor([i]) for i in range(5)]
    seen = train(cluster, optimizer, loader, epochs=1, accumulate=2)
    assert seen == [(0, [4])]


def test_zero_grad_at_the_end_keeps_what_has_accumulated() -> None:
    ours = one_weight()
    cluster, optimizer, session = start(ours)
    for _, x in cluster.resume([1.0, 2.0], epochs=1, accumulate=2):
        (ours.weight * x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    assert session.gradients[0].tolist() == [3.0]
    assert ours.weight.grad is None


@pytest.mark.parametrize("another", ["", "loader", "line"])
def test_a_loop_does_not_train_the_steps_of_another_one(another: str) -> None:
    """A loop in another line of the program may have another body."""
    cluster, optimizer, session = start(one_weight())
    loader = [torch.tensor([i]) for i in range(3)]

    def back_once(fake: Session) -> Next:
        if fake.steps == 4 and fake.traffic == (0, 0):
            fake.traffic, fake.steps = (1, 1), 2
            return Next.MOVED
        return Next.STEP

    session.after = back_once
    other = [torch.tensor([-i]) for i in range(3)]
    loaders = [loader, other if another == "loader" else loader]
    seen = []

    def loops() -> None:
        for epochs, rows in enumerate(loaders, start=1):
            if another == "line" and epochs == 2:
                seen.extend(train(cluster, optimizer, rows, epochs=2))
                continue
            seen.extend(
                train(cluster, optimizer, rows, epochs=epochs, finish=epochs == 2)
            )

    if another:
        with pytest.raises(tributary.Error, match="back to step 2, before this loop"):
            loops()
        cluster.fail("test")
    else:
        loops()
        assert seen[3:] == [(1, [0]), (0, [2]), (1, [0]), (1, [1]), (1, [2])]


@pytest.mark.parametrize(
    ("loader", "options", "message"),
    [
        (iter([1]), {}, "loader with a length"),
        ([1], {"accumulate": 0}, "accumulate >= 1"),
        ([], {}, "and 0 batches"),
    ],
)
def test_wrong_loops(loader: Any, options: dict[str, Any], message: str) -> None:
    cluster, _, _ = start(one_weight())
    with pytest.raises(tributary.Misuse, match=message):
        cluster.resume(loader, **options)
    cluster.fail("test")


def test_a_body_without_a_step() -> None:
    cluster, _, _ = start(one_weight())
    with pytest.raises(tributary.Misuse, match="took 0 steps where one is due"):
        for _ in cluster.resume([1, 2]):
            pass
    cluster.fail("test")


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_closure_reads_the_batch_and_ends_the_loop(accumulate: int) -> None:
    """As Lightning's automatic optimization does with its dataloader_iter."""
    cluster, optimizer, session = start(one_weight())
    loader = DataLoader(Rows(8), batch_size=2, sampler=cluster.sampler(Rows(8)))
    batches = cluster.resume(loader, epochs=2, accumulate=accumulate)
    weight = optimizer.param_groups[0]["params"][0]
    sums = []

    def closure() -> torch.Tensor:
        next(batches)
        optimizer.zero_grad()
        weight.sum().backward()
        sums.append(weight.grad.item())
        return weight.sum()

    for _ in range(8):
        optimizer.step(closure)
    assert len(session.begun) == cluster.steps == 8 // accumulate
    assert sums == ([1.0] * 8 if accumulate == 1 else [1.0, 2.0] * 4)
    with pytest.raises(StopIteration):
        optimizer.step(closure)
    assert len(session.begun) == 8 // accumulate


def draws_of(cluster: tributary.Cluster, optimizer: Any, **options: Any) -> list[float]:
    """A random number of each batch."""
    draws = []
    for _ in cluster.resume([1, 2, 3, 4], **options):
        draws.append(torch.rand(()).item())
        optimizer.zero_grad()
        optimizer.param_groups[0]["params"][0].sum().backward()
        optimizer.step()
    return draws


def test_seeds_differ_between_the_batches_of_a_step_and_between_jobs(
    monkeypatch: Any,
) -> None:
    cluster, optimizer, _ = start(one_weight())
    first = draws_of(cluster, optimizer, accumulate=2)
    assert len(set(first)) == 4
    monkeypatch.setattr(Session, "seed", 8)
    cluster, optimizer, _ = start(one_weight())
    assert not set(first) & set(draws_of(cluster, optimizer, accumulate=2))


def test_without_reseed_the_programs_own_seed_counts() -> None:
    cluster, optimizer, _ = start(one_weight())
    torch.manual_seed(5)
    wanted = [torch.rand(()).item() for _ in range(4)]
    torch.manual_seed(5)
    assert draws_of(cluster, optimizer, reseed=False) == wanted


def test_it_sets_the_epoch_of_torchs_sampler() -> None:
    from torch.utils.data.distributed import DistributedSampler

    cluster, optimizer, _ = start(one_weight())
    data = Rows(12)
    sampler = DistributedSampler(data, num_replicas=1, rank=0)
    loader = DataLoader(data, batch_size=4, sampler=sampler)
    seen = train(cluster, optimizer, loader, epochs=3)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        rows = sum((rows for e, rows in seen if e == epoch), [])
        assert rows == list(sampler)


def test_without_finish_the_job_goes_on_after_the_loop() -> None:
    cluster, optimizer, session = start(one_weight())
    train(cluster, optimizer, [torch.tensor([1])], finish=False)
    assert session.finished == 0
    train(cluster, optimizer, [torch.tensor([1])], epochs=2)
    assert session.finished == 1 and cluster.steps == 2


def test_a_break_within_a_step_leaves_no_accumulation() -> None:
    model = one_weight()
    cluster, optimizer, session = start(model)
    for _ in cluster.resume([1, 2], accumulate=2):
        break
    model.weight.sum().backward()
    optimizer.step()
    assert len(session.begun) == 1 and cluster.steps == 1
    cluster.finish()


def test_waiting_for_batches_is_reported(monkeypatch: Any) -> None:
    now = [0.0]

    class Slow(Rows):
        def __getitem__(self, i: int) -> int:
            now[0] += 2.0
            return i

    class Clock:
        monotonic = staticmethod(lambda: now[0])

    monkeypatch.setattr("tributary.torch._resume.time", Clock)
    monkeypatch.setattr("tributary.torch._step.time", Clock)
    cluster, optimizer, session = start(one_weight())
    loader = DataLoader(Slow(4), batch_size=1)
    train(cluster, optimizer, loader, accumulate=2)
    results = [call[1] for call in session.calls if call[0] == "finish"]
    assert [result["data_seconds"] for result in results] == [4.0, 4.0]
    assert [result["compute_seconds"] for result in results] == [0.0, 0.0]


def test_a_scaler_steps_after_the_last_batch_of_a_step() -> None:
    model = one_weight()
    scaler = torch.amp.GradScaler("cpu")
    cluster, optimizer, _ = start(model, scaler=scaler)
    with pytest.raises(tributary.Misuse, match="if not cluster.accumulating"):
        for _ in cluster.resume([1, 2], accumulate=2):
            scaler.scale(model.weight.sum()).backward()
            scaler.step(optimizer)
    cluster.fail("test")
