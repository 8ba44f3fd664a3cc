# SPDX-License-Identifier: Apache-2.0
"""The options of an optimizer's groups: torch's, and which of them may change."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from models import batch, loss_of, mlp, start
from torch.optim import lr_scheduler

import tributary.torch as tributary

OPTIONS: dict[str, Callable[[tributary.Optimizer], Any]] = {
    "weight_decay": lambda o: o.param_groups[0].update(weight_decay=5.0),
    "momentum": lambda o: o.param_groups[0].update(momentum=0.9),
    "nesterov": lambda o: o.param_groups[0].update(nesterov=True),
    "maximize": lambda o: o.param_groups[0].update(maximize=True),
    "a word of the program's": lambda o: o.param_groups[0].update(own=1),
    "removed": lambda o: o.param_groups[0].pop("momentum"),
    "further parameter": lambda o: o.param_groups[0]["params"].append(
        torch.nn.Parameter(torch.ones(1))
    ),
    "fewer parameters": lambda o: o.param_groups[0]["params"].pop(),
    "other order": lambda o: o.param_groups[0]["params"].reverse(),
    "further group": lambda o: o.param_groups.append({"params": [], "lr": 0.1}),
    "other groups": lambda o: setattr(o, "param_groups", []),
}


@pytest.mark.parametrize("kind", OPTIONS)
def test_an_option_that_was_set_later(kind: str) -> None:
    model = mlp()
    cluster, optimizer, session = start(model)
    OPTIONS[kind](optimizer)
    with pytest.raises(tributary.Misuse, match="only lr|pass all of them"), cluster:
        loss_of(model, batch()).backward()
    assert session.begun == []


def test_betas_that_were_set_later() -> None:
    model = mlp()
    cluster, optimizer, _ = start(model, "adamw")
    assert optimizer.param_groups[0]["betas"] == (0.9, 0.999)
    optimizer.param_groups[0]["betas"] = (0.5, 0.999)
    with pytest.raises(tributary.Misuse, match="betas of parameter group 0"), cluster:
        loss_of(model, batch()).backward()


def test_a_parameter_that_is_trained_later() -> None:
    for frozen in ("declare", "local"):
        model = mlp()
        model[0].requires_grad_(False)
        cluster, _, _ = start(model, frozen=frozen)
        model[0].requires_grad_(True)
        with pytest.raises(tributary.Misuse, match="requires_grad was set"), cluster:
            loss_of(model, batch()).backward()


@pytest.mark.parametrize("change", ["lr", "weight_decay"])
def test_a_rate_that_is_set_after_backward(change: str) -> None:
    model = mlp()
    cluster, optimizer, _ = start(model)
    loss_of(model, batch()).backward()
    optimizer.param_groups[0][change] = 0.01
    with pytest.raises(tributary.Misuse, match=f"{change} .*was changed"), cluster:
        optimizer.step()


TORCH = {
    "sgd": torch.optim.SGD,
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "adagrad": torch.optim.Adagrad,
    "rmsprop": torch.optim.RMSprop,
    "adafactor": torch.optim.Adafactor,
}


@pytest.mark.parametrize("kind", TORCH)
def test_groups_have_torchs_options_and_defaults(kind: str) -> None:
    model = mlp()
    cluster, optimizer, session = start(model, kind)
    theirs = TORCH[kind](mlp().parameters(), lr=0.1).param_groups[0]
    ours = optimizer.param_groups[0]
    assert {"lr", "weight_decay"} < ours.keys() <= theirs.keys()
    for key in ours.keys() - {"params"}:
        assert ours[key] == theirs[key] and optimizer.defaults[key] == theirs[key]
    # The job is told what the program has said.
    (setting,) = session.options["settings"]
    assert setting == f"training.optimizer={{{kind}: {{learning_rate: 0.1}}}}"
    cluster.finish()


def test_one_cycle_wants_the_momentum_to_stay() -> None:
    model = mlp()
    cluster, optimizer, session = start(model, "adamw")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=12)
    with pytest.raises(tributary.Misuse, match="cycle_momentum=False"), cluster:
        loss_of(model, batch()).backward()
    assert session.begun == []


@pytest.mark.parametrize(
    "make",
    [
        lambda o: lr_scheduler.OneCycleLR(o, 0.1, total_steps=12, cycle_momentum=False),
        lambda o: lr_scheduler.CyclicLR(
            o, 0.01, 0.1, step_size_up=3, cycle_momentum=False
        ),
        lambda o: torch.optim.swa_utils.SWALR(o, 0.05, 4),
        lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 3),
        lambda o: lr_scheduler.LinearLR(o),
    ],
)
def test_what_schedulers_note_in_a_group_is_no_option(make: Any) -> None:
    model = mlp()
    cluster, optimizer, session = start(model, momentum=0.9)
    scheduler = make(optimizer)
    for _ in range(3):
        loss_of(model, batch()).backward()
        optimizer.step()
        scheduler.step()
    assert len({rates[0] for _, rates in session.begun}) > 1
    cluster.finish()


def test_a_rate_of_zero_is_set_later() -> None:
    model = mlp()
    groups = [
        {"params": model[0].parameters()},
        {"params": model[2].parameters(), "lr": 0},
    ]
    cluster, optimizer, session = start(model, "adam", lr=0.0, groups=groups)
    assert [group["lr"] for group in optimizer.param_groups] == [0, 0]
    # The job file wants rates above 0.
    assert all("learning_rate: 1.1" in one for one in session.options["settings"])
    loss_of(model, batch()).backward()
    optimizer.step()
    for group in optimizer.param_groups:
        group["lr"] = 0.5
    loss_of(model, batch()).backward()
    optimizer.step()
    assert [rates for _, rates in session.begun] == [[0, 0], [0.5, 0.5]]
    cluster.finish()


def test_a_state_that_holds_more_than_rates() -> None:
    theirs = torch.optim.SGD(mlp().parameters(), lr=0.3, momentum=0.9)
    cluster, optimizer, _ = start(mlp(), momentum=0.9)
    optimizer.load_state_dict(theirs.state_dict())
    assert optimizer.param_groups[0]["lr"] == 0.3
    theirs.param_groups[0]["momentum"] = 0.5
    with pytest.raises(tributary.Misuse, match="momentum .* from 0.9 to 0.5"):
        optimizer.load_state_dict(theirs.state_dict())
    state = {**theirs.state_dict(), "state": {0: {"momentum_buffer": torch.ones(1)}}}
    with pytest.raises(tributary.Misuse, match="tensors of an optimizer of torch"):
        optimizer.load_state_dict(state)
    cluster.finish()
