# SPDX-License-Identifier: Apache-2.0
"""Parameter groups, schedulers and GradScaler."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from models import assert_equal_weights, batch, loss_of, mlp, start
from torch.optim import lr_scheduler

import tributary.torch as tributary


def groups_of(model: torch.nn.Module) -> list[dict[str, Any]]:
    weights = [p for p in model.parameters() if p.dim() > 1]
    biases = [p for p in model.parameters() if p.dim() == 1]
    return [{"params": weights}, {"params": biases, "lr": 0.01, "weight_decay": 0.0}]


def test_groups_become_fields_of_the_job_and_rates_of_a_step() -> None:
    model = mlp()
    cluster, optimizer, session = start(
        model, "adamw", lr=0.1, weight_decay=0.5, groups=groups_of(model)
    )
    assert session.options["settings"] == [
        "training.optimizer={adamw: {learning_rate: 0.1, weight_decay: 0.5}}",
        'training.parameter_groups=[{parameters: ["0.bias", "2.bias"], optimizer: '
        "{adamw: {learning_rate: 0.01, weight_decay: 0.0}}}]",
    ]
    optimizer.param_groups[1]["lr"] = 0.02
    loss_of(model, batch()).backward()
    assert session.begun == [(1, [0.1, 0.02])]
    optimizer.step()
    cluster.finish()


def test_groups_of_named_parameters_need_no_module() -> None:
    model = mlp()
    named = list(model.named_parameters())
    groups = [{"params": named[:2], "lr": 0.5}, {"params": named[2:]}]
    cluster, optimizer, session = start(groups, lr=0.1)
    assert session.names == [name for name, _ in named]
    # The first group's options do not apply to the second.
    assert session.options["settings"] == [
        "training.optimizer={sgd: {learning_rate: 0.1}}",
        'training.parameter_groups=[{parameters: ["0.weight", "0.bias"], optimizer: '
        '{sgd: {learning_rate: 0.5}}}, {parameters: ["2.weight", "2.bias"], '
        "optimizer: {sgd: {}}}]",
    ]
    loss_of(model, batch()).backward()
    optimizer.step()
    assert session.begun == [(1, [0.5, 0.5, 0.1])]
    cluster.finish()


def test_parameters_in_no_group_are_frozen() -> None:
    model = mlp()
    cluster, optimizer, session = start(
        model, groups=[{"params": model[2].parameters()}]
    )
    before = model[0].weight.clone()
    loss_of(model, batch()).backward()
    optimizer.step()
    assert torch.equal(model[0].weight, before)
    assert (
        'parameters: ["0.weight", "0.bias"], frozen: true'
        in (session.options["settings"][-1])
    )
    cluster.finish()


@pytest.mark.parametrize(
    "make",
    [
        lambda o: lr_scheduler.StepLR(o, 2, 0.1),
        lambda o: lr_scheduler.CosineAnnealingLR(o, 5),
        lambda o: lr_scheduler.LambdaLR(o, lambda step: 1 / (step + 1)),
        lambda o: lr_scheduler.OneCycleLR(
            o, max_lr=0.5, total_steps=6, cycle_momentum=False
        ),
    ],
)
def test_schedulers_of_torch_change_the_rates_that_travel(make: Any) -> None:
    ours, theirs = mlp(), mlp()
    cluster, optimizer, session = start(ours, lr=0.3)
    rival = torch.optim.SGD(theirs.parameters(), lr=0.3)
    one, other = make(optimizer), make(rival)
    for step in range(5):
        for model, opt, scheduler in (
            (ours, optimizer, one),
            (theirs, rival, other),
        ):
            opt.zero_grad()
            loss_of(model, batch(seed=step)).backward()
            opt.step()
            scheduler.step()
    assert_equal_weights(ours, theirs)
    assert len({rates[0] for _, rates in session.begun}) > 1
    cluster.finish()


def test_the_state_dict_keeps_the_rates() -> None:
    cluster, optimizer, _ = start(mlp(), lr=0.3)
    optimizer.param_groups[0]["lr"] = 0.125
    state = optimizer.state_dict()
    assert state["state"] == {}
    optimizer.param_groups[0]["lr"] = 0.3
    optimizer.load_state_dict(state)
    assert optimizer.param_groups[0]["lr"] == 0.125
    cluster.finish()


def test_a_closure_is_called_once() -> None:
    model = mlp()
    cluster, optimizer, session = start(model)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = loss_of(model, batch())
        loss.backward()
        return loss

    assert optimizer.step(closure).item() > 0
    assert len(session.begun) == 1
    cluster.finish()


def test_with_a_scaler_gradients_are_sent_unscaled_in_step() -> None:
    ours, theirs = mlp(), mlp()
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    cluster, optimizer, session = start(ours, scaler=scaler)
    assert "training.nonfinite=skip" in session.options["settings"]
    scaler.scale(loss_of(ours, batch())).backward()
    assert session.calls == []
    scaler.step(optimizer)
    scaler.update()
    rival = torch.optim.SGD(theirs.parameters(), lr=0.1)
    loss_of(theirs, batch()).backward()
    rival.step()
    assert_equal_weights(ours, theirs)
    assert scaler.get_scale() == 1024.0
    cluster.finish()


def test_unscaling_before_step_is_not_done_twice() -> None:
    ours, theirs = mlp(), mlp()
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    cluster, optimizer, _ = start(ours, scaler=scaler)
    scaler.scale(loss_of(ours, batch())).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    rival = torch.optim.SGD(theirs.parameters(), lr=0.1)
    loss_of(theirs, batch()).backward()
    rival.step()
    assert_equal_weights(ours, theirs)
    cluster.finish()


@pytest.mark.parametrize("unscale", [True, False])
def test_a_rank_cannot_clip_its_own_gradient_before_the_mean(unscale: bool) -> None:
    model = mlp()
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    cluster, optimizer, session = start(model, scaler=scaler)
    scaler.scale(loss_of(model, batch())).backward()
    if unscale:
        scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    with pytest.raises(tributary.Misuse, match="of this rank alone; clip with clus"):
        scaler.step(optimizer)
    assert session.calls == []
    cluster.fail("test")


@pytest.mark.parametrize("mine_is_finite", [True, False])
def test_the_servers_decide_whether_a_scale_is_too_large(
    mine_is_finite: bool,
) -> None:
    model = mlp()
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    cluster, optimizer, session = start(model, scaler=scaler)
    session.skipped = True  # some rank's gradient was infinite
    before = model[0].weight.clone()
    factor = 1.0 if mine_is_finite else float("inf")
    scaler.scale(loss_of(model, batch()) * factor).backward()
    scaler.step(optimizer)
    scaler.update()
    assert optimizer.skipped and cluster.steps == 1
    assert torch.equal(model[0].weight, before)
    assert scaler.get_scale() == 512.0
    cluster.finish()
