# SPDX-License-Identifier: Apache-2.0
"""Rates that the program changes itself, in a job that goes back or goes on."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
from fake_native import Session, back_to
from models import one_weight, start
from torch.optim import lr_scheduler

import tributary.torch as tributary

Change = Callable[[], Any]


def rates_of(
    cluster: tributary.Cluster, optimizer: Any, before: Change, after: Change
) -> list[float]:
    """Trains two epochs of 4 steps. before, after: are called beside each step."""
    weight = optimizer.param_groups[0]["params"][0]
    for _ in cluster.resume([1, 2, 3, 4], epochs=2):
        before()
        optimizer.zero_grad()
        weight.sum().backward()
        optimizer.step()
        after()
    return [rate for _, (rate,) in Session.last.begun]


def nothing() -> None:
    pass


@pytest.mark.parametrize("there", [2, 3])
def test_a_scheduler_that_the_loop_does_not_know_does_not_go_back(there: int) -> None:
    """Even if its rates of the repeated steps are still equal."""
    cluster, optimizer, session = start(one_weight(), lr=1.0)
    halves = lr_scheduler.StepLR(optimizer, 6, 0.5)
    session.after = back_to(there, after=4)
    message = f"after step {there}, .*step_scheduler"
    with pytest.raises(tributary.Misuse, match=message):
        rates_of(cluster, optimizer, nothing, halves.step)
    assert len(session.begun) == 4
    cluster.fail("test")


def test_a_new_process_has_a_scheduler_that_the_loop_does_not_know(
    monkeypatch: Any,
) -> None:
    monkeypatch.setattr(Session, "first_steps", 4)
    cluster, optimizer, session = start(one_weight(), lr=1.0)
    halves = lr_scheduler.StepLR(optimizer, 2, 0.5)
    with pytest.raises(tributary.Misuse, match="after step 4, .*step_scheduler"):
        rates_of(cluster, optimizer, nothing, halves.step)
    assert session.begun == []
    cluster.fail("test")


def test_a_rate_that_is_multiplied_does_not_go_back() -> None:
    cluster, optimizer, session = start(one_weight(), lr=1.0)
    session.after = back_to(2, after=4)

    def halve() -> None:
        optimizer.param_groups[0]["lr"] *= 0.5

    with pytest.raises(tributary.Misuse, match=r"step 3 again, .*\[0.25\]"):
        rates_of(cluster, optimizer, nothing, halve)
    cluster.fail("test")


@pytest.mark.parametrize("first", [0, 3])
def test_rates_from_the_position_go_back_and_on(monkeypatch: Any, first: int) -> None:
    monkeypatch.setattr(Session, "first_steps", first)
    cluster, optimizer, session = start(one_weight(), lr=1.0)
    session.after = back_to(4, after=6)

    def set_rate() -> None:
        optimizer.param_groups[0]["lr"] = 0.5**cluster.steps

    with pytest.warns(UserWarning, match="only if it computes them from") as warned:
        rates = rates_of(cluster, optimizer, set_rate, nothing)
    whole = [0.5**step for step in range(8)]
    assert rates == whole[first:6] + whole[4:]
    assert len(warned) == 1


def test_a_new_process_says_that_it_does_not_know_the_rates(monkeypatch: Any) -> None:
    monkeypatch.setattr(Session, "first_steps", 4)
    cluster, optimizer, session = start(one_weight(), lr=1.0)

    def halve() -> None:
        optimizer.param_groups[0]["lr"] *= 0.5

    with pytest.warns(UserWarning, match="after step 4, and the program changes"):
        rates_of(cluster, optimizer, nothing, halve)


def test_rates_that_stay_are_no_matter(monkeypatch: Any) -> None:
    monkeypatch.setattr(Session, "first_steps", 2)
    cluster, optimizer, session = start(one_weight(), lr=1.0)
    session.after = back_to(2, after=4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rates_of(cluster, optimizer, nothing, nothing) == [1.0] * 8


def test_an_undisturbed_run_may_step_its_scheduler() -> None:
    cluster, optimizer, _ = start(one_weight(), lr=1.0)
    halves = lr_scheduler.StepLR(optimizer, 4, 0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rates = rates_of(cluster, optimizer, nothing, halves.step)
    assert rates == [1.0] * 4 + [0.5] * 4
