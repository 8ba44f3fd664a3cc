# SPDX-License-Identifier: Apache-2.0
"""Values of a wrong type: one exception of the package, and none of Python's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from models import batch, loss_of, mlp, start

import tributary
import tributary.torch
from tributary import InvalidSetting, Misuse

Join = Callable[..., Any]


def optimizer_of(*arguments: Any, **keywords: Any) -> Any:
    keywords.setdefault("lr", 0.1)
    model = keywords.pop("model", None) or mlp()
    return tributary.torch.connect().optimizer(model, *arguments, **keywords)


def twice() -> Any:
    model = mlp()
    groups = [{"params": model.parameters()}, {"params": model[0].bias}]
    return optimizer_of(model=model, groups=groups)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: optimizer_of(torch.optim.SGD), InvalidSetting, 'as "adam", got'),
        (lambda: optimizer_of(groups={"params": []}), Misuse, "list of dicts"),
        (lambda: optimizer_of(groups=[{"lr": 1.0}]), Misuse, 'dicts with "params"'),
        (twice, Misuse, "0.bias is in the parameter groups twice"),
        (lambda: optimizer_of(model=5), Misuse, "torch.nn.Module, .* got int"),
        (lambda: optimizer_of(model=[{"lr": 1}]), Misuse, "torch.nn.Module"),
        (lambda: optimizer_of(buffers=1), Misuse, 'buffers cannot be "1"'),
        (lambda: optimizer_of(total_steps=1.5), Misuse, "total_steps must be a whole"),
        (lambda: optimizer_of(steps_per_epoch=0), Misuse, "must be at least 1, got 0"),
        (lambda: optimizer_of(data_checksum=-1), Misuse, "data_checksum must be at"),
        (lambda: optimizer_of(settings=5), InvalidSetting, "dict of fields"),
        (lambda: tributary.connect(5), InvalidSetting, "address wants host:port"),
    ],
)
def test_before_joining(call: Join, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


@pytest.mark.parametrize(
    ("misuse", "message"),
    [
        (lambda c, o: c.resume([1], "3"), "epochs must be a whole number, got '3'"),
        (lambda c, o: c.resume([1], accumulate=1.5), "accumulate must be a whole"),
        (lambda c, o: c.resume([1], step_scheduler=5), "scheduler of the .* got int"),
        (lambda c, o: c.sampler(iter([1])), "data set with a length"),
        (lambda c, o: c.log("low"), r"loss must be a number, got low \(str\)"),
        (lambda c, o: o.step(loss=torch.ones(2)), "loss must be a number"),
        (lambda c, o: o.load_state_dict({}), "0 parameter groups"),
        (lambda c, o: c.evaluated(loss_sum="1,5", samples=1), "loss_sum must be a nu"),
    ],
)
def test_of_a_cluster(misuse: Callable[[Any, Any], Any], message: str) -> None:
    model = mlp()
    cluster, optimizer, _ = start(model)
    loss_of(model, batch()).backward()
    with pytest.raises(Misuse, match=message):
        misuse(cluster, optimizer)
    cluster.fail("test")


def test_a_scheduler_of_another_optimizer() -> None:
    model = mlp()
    cluster, _, _ = start(model)
    other = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(other, 0.5)
    with pytest.raises(Misuse, match="optimizer that cluster.optimizer has returned"):
        cluster.resume([1], epoch_scheduler=scheduler)
    cluster.fail("test")


@pytest.mark.parametrize(
    ("misuse", "message"),
    [
        (lambda c: c.push([np.ones(2)]), "gradients wants a dict by name, got list"),
        (lambda c: c.push({}, lr="fast"), "lr must be a number, got fast"),
        (lambda c: c.push({"w": None}), "w wants numbers, got object"),
        (lambda c: (c.push({}), c.pull(loss="low")), "loss must be a number"),
    ],
)
def test_of_a_client(misuse: Callable[[Any], Any], message: str) -> None:
    client = tributary.connect()
    client.declare({"w": np.ones(2)}, lr=1.0)
    with pytest.raises(Misuse, match=message):
        misuse(client)
    client.fail("test")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ([np.ones(2)], "arrays wants a dict by name, got list"),
        ({1: np.ones(2)}, "name of an array must be a text, got 1"),
        ({"w": None}, "w wants numbers, got object"),
        ({"w": np.ones(2) * 1j}, "w wants numbers, got complex128"),
    ],
)
def test_of_a_declaration(arrays: Any, message: str) -> None:
    with pytest.raises(Misuse, match=message):
        tributary.connect().declare(arrays, lr=1.0)
