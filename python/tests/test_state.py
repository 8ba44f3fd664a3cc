# SPDX-License-Identifier: Apache-2.0
"""What is declared and returned: names, groups, buffers, state_dict."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from fake_native import Next, Session
from models import batch, loss_of, mlp, start
from torch.utils.data import DataLoader

import tributary.torch as tributary
from tributary.torch import Misuse


def test_state_dict_returns_copies() -> None:
    model = torch.nn.BatchNorm1d(2)
    cluster, _, _ = start(model, buffers="local")
    state = cluster.state_dict()
    for tensor in state.values():
        tensor.fill_(7)
    assert model.weight.tolist() == [1, 1] and model.running_mean.tolist() == [0, 0]
    assert set(state) == set(model.state_dict())
    cluster.finish()


def test_a_roll_back_at_the_end_changes_the_weights_and_goes_on() -> None:
    model = mlp().to(torch.bfloat16)
    cluster, optimizer, session = start(model)
    session.after = lambda fake: Next.END
    loss_of(model, batch().bfloat16()).backward()
    optimizer.step()

    def back(fake: Session) -> Next:
        fake.weights[0][:] = 4
        return Next.MOVED

    session.after = lambda fake: Next.STEP
    session.finishes = [back]
    assert not cluster.finish()
    assert (model[0].weight == 4).all()
    loss_of(model, batch().bfloat16()).backward()  # the job goes on
    optimizer.step()
    assert cluster.finish()


def test_names_that_cannot_be_declared() -> None:
    weight, other = (torch.nn.Parameter(torch.ones(2)) for _ in range(2))
    with pytest.raises(Misuse, match="cannot contain \\*"):
        start([{"params": [("a*", weight)]}])
    with pytest.raises(Misuse, match='two parameters have the name "a"'):
        start([{"params": [("a", weight), ("a", other)]}])


def test_groups_may_have_pairs_and_names() -> None:
    model = mlp()
    groups = [{"params": list(model.named_parameters()), "name": "all", "lr": 0.5}]
    cluster, optimizer, session = start(model, groups=groups)
    assert "name" not in session.options["settings"][-1]
    loss_of(model, batch()).backward()
    optimizer.step()
    assert session.begun == [(1, [0.5, 0.5])]
    cluster.finish()


def test_a_rate_may_be_a_tensor_or_the_default() -> None:
    cluster, _, session = start(mlp(), "adam", lr=torch.tensor(0.5))
    wanted = "training.optimizer={adam: {learning_rate: 0.5}}"
    assert session.options["settings"] == [wanted]
    cluster.finish()
    cluster = tributary.connect()
    optimizer = cluster.optimizer(mlp(), "adam")
    wanted = "training.optimizer={adam: {learning_rate: 0.001}}"
    assert Session.last is not None
    assert Session.last.options["settings"] == [wanted]
    assert optimizer.param_groups[0]["lr"] == 0.001
    cluster.finish()


def test_a_state_dict_keeps_the_first_rate_of_a_scheduler() -> None:
    cluster, optimizer, _ = start(mlp(), lr=0.5)
    torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    state = optimizer.state_dict()
    state["param_groups"][0]["initial_lr"] = 0.25
    optimizer.load_state_dict(state)
    assert optimizer.param_groups[0]["initial_lr"] == 0.25
    cluster.finish()


def test_deferred_gradients_leave_last_layer_first() -> None:
    model = mlp()
    scaler = torch.amp.GradScaler("cpu")
    cluster, optimizer, session = start(model, scaler=scaler)
    scaler.scale(loss_of(model, batch())).backward()
    scaler.step(optimizer)
    assert session.sent() == ["2.bias", "2.weight", "0.bias", "0.weight"]
    cluster.finish()
