# SPDX-License-Identifier: Apache-2.0
"""Schedulers of the loop over cluster.resume: roll-backs, restarts, several loops."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from fake_native import Next, Session, back_to
from models import one_weight, start, train
from torch.optim import lr_scheduler

import tributary.torch as tributary


def test_schedulers_follow_the_position(monkeypatch: Any) -> None:
    def rates(first: int, roll_back: bool) -> list[float]:
        monkeypatch.setattr(Session, "first_steps", first)
        cluster, optimizer, session = start(one_weight(), lr=1.0)
        by_step = lr_scheduler.ExponentialLR(optimizer, 0.5)

        def back_once(fake: Session) -> Next:
            if roll_back and fake.steps == 4 and len(fake.begun) == 4:
                fake.steps = 1
                return Next.MOVED
            return Next.STEP

        session.after = back_once
        loader = [torch.tensor([i]) for i in range(3)]
        train(cluster, optimizer, loader, epochs=2, step_scheduler=by_step)
        return [rate for _, (rate,) in session.begun]

    whole = [1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125]
    assert rates(0, False) == whole
    assert rates(4, False) == whole[4:]
    assert rates(0, True) == whole[:4] + whole[1:]


def rates_of(
    monkeypatch: Any, first: int = 0, back: tuple[int, int] | None = None
) -> list[float]:
    """The rates of 4 epochs of 3 steps with two schedulers. first: the step that a new
    process begins with. back: after which step the job goes back, and to which."""
    monkeypatch.setattr(Session, "first_steps", first)
    cluster, optimizer, session = start(one_weight(), lr=1.0)

    def back_once(fake: Session) -> Next:
        if back is not None and fake.steps == back[0] and fake.traffic == (0, 0):
            fake.traffic, fake.steps = (1, 1), back[1]
            return Next.MOVED
        return Next.STEP

    session.after = back_once
    train(
        cluster,
        optimizer,
        [torch.tensor([i]) for i in range(3)],
        epochs=4,
        step_scheduler=lr_scheduler.CosineAnnealingLR(optimizer, 30, eta_min=0.1),
        epoch_scheduler=lr_scheduler.ExponentialLR(optimizer, 0.7),
    )
    return [rate for _, (rate,) in session.begun]


def test_two_schedulers_are_replayed_together(monkeypatch: Any) -> None:
    """Both change the same rates, and torch's cosine depends on the rate before."""
    whole = rates_of(monkeypatch)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    by_step = lr_scheduler.CosineAnnealingLR(optimizer, 30, eta_min=0.1)
    by_epoch = lr_scheduler.ExponentialLR(optimizer, 0.7)
    for step in range(12):
        if step > 0:
            optimizer.step()
            by_step.step()
        if step > 0 and step % 3 == 0:
            by_epoch.step()
        assert optimizer.param_groups[0]["lr"] == whole[step]
    for first in range(1, 12):
        assert rates_of(monkeypatch, first) == whole[first:]
    for here, there in ((5, 4), (7, 6), (8, 2), (10, 0), (11, 9)):
        wanted = whole[:here] + whole[there:]
        assert rates_of(monkeypatch, 0, (here, there)) == wanted


@pytest.mark.parametrize("first", range(6))
def test_several_loops_may_have_the_same_scheduler(
    monkeypatch: Any, first: int
) -> None:
    """Another one begins with the rate that the previous scheduler has left, as torch's
    would after its step for the last epoch."""
    course = {
        "step": 0, "at": (0, 0), "rows": 2, "global_batch": 1, "accumulation": 1,
        "order": "a loader of each of 1 ranks, 1 batches a step",
    }  # fmt: skip
    monkeypatch.setattr(Session, "first_steps", first)
    monkeypatch.setattr(Session, "first_course", [course] if first > 0 else [])
    cluster, optimizer, session = start(one_weight(), lr=1.0)
    loader = [torch.tensor([i]) for i in range(2)]
    halves = lr_scheduler.ExponentialLR(optimizer, 0.5)
    for epochs in (1, 2):
        train(
            cluster, optimizer, loader,
            epochs=epochs, epoch_scheduler=halves, finish=False,
        )  # fmt: skip
    tenths = lr_scheduler.ExponentialLR(optimizer, 0.1)
    train(cluster, optimizer, loader, epochs=3, epoch_scheduler=tenths)
    wanted = [1.0, 1.0, 0.5, 0.5, 0.25, 0.25]
    rates = [rate for _, (rate,) in session.begun]
    assert rates == pytest.approx(wanted[first:])


def test_schedulers_cannot_change_their_partners() -> None:
    cluster, optimizer, _ = start(one_weight(), lr=1.0)
    halves = lr_scheduler.ExponentialLR(optimizer, 0.5)
    other = lr_scheduler.ExponentialLR(optimizer, 0.1)
    train(cluster, optimizer, [torch.tensor([1])], epochs=1, epoch_scheduler=halves,
          finish=False)  # fmt: skip
    with pytest.raises(tributary.Misuse, match="one of these two schedulers"):
        cluster.resume([1], 2, epoch_scheduler=halves, step_scheduler=other)
    cluster.fail("test")


def test_the_program_must_not_call_the_schedulers_itself() -> None:
    cluster, optimizer, _ = start(one_weight(), lr=1.0)
    by_step = lr_scheduler.ExponentialLR(optimizer, 0.5)
    (weight,) = optimizer.param_groups[0]["params"]
    with pytest.raises(tributary.Misuse, match="which calls it itself"):
        for _ in cluster.resume([1, 2], step_scheduler=by_step):
            optimizer.zero_grad()
            weight.sum().backward()
            optimizer.step()
            by_step.step()
    cluster.fail("test")


def test_a_scheduler_of_epochs_and_the_end_of_each() -> None:
    cluster, optimizer, session = start(one_weight(), lr=1.0)
    by_epoch = lr_scheduler.ExponentialLR(optimizer, 0.5)
    ends = []
    train(
        cluster,
        optimizer,
        [torch.tensor([0]), torch.tensor([1])],
        epochs=2,
        epoch_scheduler=by_epoch,
        on_epoch_end=lambda epoch: ends.append((epoch, session.finished)),
    )
    assert [rate for _, (rate,) in session.begun] == [1.0, 1.0, 0.5, 0.5]
    assert ends == [(0, 0), (1, 0)]  # before the job ends


def test_a_scheduler_that_cannot_be_replayed() -> None:
    cluster, optimizer, _ = start(one_weight())
    plateau = lr_scheduler.ReduceLROnPlateau(optimizer)
    with pytest.raises(tributary.Misuse, match="measured values"):
        cluster.resume([1], step_scheduler=plateau)
    cluster.fail("test")


def test_rates_between_two_loops_are_those_of_torch() -> None:
    """A loop makes its scheduler's step for its last batch, too, and a scheduler counts
    the steps of the loops that have it."""
    loader = [torch.tensor([i]) for i in range(4)]
    cluster, optimizer, session = start(one_weight(), lr=1.0)
    warm_up = lr_scheduler.LinearLR(optimizer, 0.2, total_iters=4)
    train(cluster, optimizer, loader, epochs=1, step_scheduler=warm_up, finish=False)
    cosine = lr_scheduler.CosineAnnealingLR(optimizer, 4)
    train(cluster, optimizer, loader, epochs=2, step_scheduler=cosine)

    theirs = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    wanted = []
    for make in (
        lambda: lr_scheduler.LinearLR(theirs, 0.2, total_iters=4),
        lambda: lr_scheduler.CosineAnnealingLR(theirs, 4),
    ):
        scheduler = make()
        for _ in range(4):
            wanted.append(theirs.param_groups[0]["lr"])
            theirs.step()
            scheduler.step()
    assert [rate for _, (rate,) in session.begun] == pytest.approx(wanted)


def test_a_chained_scheduler_is_not_stepped_by_the_program() -> None:
    cluster, optimizer, _ = start(one_weight(), lr=1.0)
    chained = lr_scheduler.ChainedScheduler(
        [lr_scheduler.ExponentialLR(optimizer, 0.5)]
    )
    weight = optimizer.param_groups[0]["params"][0]
    with pytest.raises(tributary.Misuse, match="take the call out"):
        for _ in cluster.resume([1, 2], step_scheduler=chained):
            weight.sum().backward()
            optimizer.step()
            chained.step()
    cluster.fail("test")


def test_a_rate_that_is_a_tensor_goes_back() -> None:
    cluster, optimizer, session = start(one_weight(), lr=torch.tensor(1.0))
    session.after = back_to(1, after=4)
    loader = [torch.tensor([i]) for i in range(5)]
    halves = lr_scheduler.ExponentialLR(optimizer, 0.5)
    train(cluster, optimizer, loader, step_scheduler=halves)
    rates = [rate for _, (rate,) in session.begun]
    assert rates == [1.0, 0.5, 0.25, 0.125, 0.5, 0.25, 0.125, 0.0625]


def test_a_scheduler_is_not_brought_to_the_position_twice(monkeypatch: Any) -> None:
    monkeypatch.setattr(Session, "first_steps", 2)
    cluster, optimizer, _ = start(one_weight(), lr=1.0)
    optimizer.param_groups[0]["initial_lr"] = 1.0
    brought = lr_scheduler.ExponentialLR(optimizer, 0.5, last_epoch=1)
    with pytest.raises(tributary.Misuse, match="has 2 steps already"):
        next(iter(cluster.resume([1, 2, 3], step_scheduler=brought)))
    cluster.fail("test")


def test_a_loop_may_be_made_before_the_one_before_it_ends() -> None:
    """The loop's rates are those that are set when it begins."""
    loader = [torch.tensor([i]) for i in range(3)]
    cluster, optimizer, session = start(one_weight(), lr=1.0)
    weight = optimizer.param_groups[0]["params"][0]
    halves, tenths = (lr_scheduler.ExponentialLR(optimizer, f) for f in (0.5, 0.1))
    loops = [
        cluster.resume(loader, 1, step_scheduler=halves, finish=False),
        cluster.resume(loader, 2, step_scheduler=tenths),
    ]
    session.after = back_to(3, after=5)
    for loop in loops:
        for _ in loop:
            weight.sum().backward()
            optimizer.step()
    rates = [rate for _, (rate,) in session.begun]
    again = [0.125, 0.0125]
    assert rates == pytest.approx([1.0, 0.5, 0.25, *again, *again, 0.00125])


def test_rates_that_the_program_changes_too_do_not_go_back() -> None:
    cluster, optimizer, session = start(one_weight(), lr=1.0)
    session.after = back_to(2, after=4)
    warm_up = lr_scheduler.LinearLR(optimizer, 0.5, total_iters=2)

    def reduce(_: int) -> None:
        optimizer.param_groups[0]["lr"] *= 0.1

    with pytest.raises(tributary.Error, match="beside the scheduler"):
        train(cluster, optimizer, [torch.tensor([1])], epochs=6,
              step_scheduler=warm_up, on_epoch_end=reduce)  # fmt: skip
    cluster.fail("test")
