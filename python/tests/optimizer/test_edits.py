# SPDX-License-Identifier: Apache-2.0
"""A change that a program makes between the calls has an effect, or is refused."""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from models import assert_equal_weights, batch, loss_of, mlp, start

import tributary.torch as tributary

Change = Callable[[torch.nn.Sequential], Any]


def replace(model: torch.nn.Module, make: Callable[[Any], Any]) -> None:
    for parameter in model.parameters():
        parameter.grad = make(parameter.grad)


def each_gradient(change: Callable[[Any], Any]) -> Change:
    return lambda model: [change(p.grad) for p in model.parameters()]


GRADIENTS: dict[str, Change] = {
    "replaced": lambda m: replace(m, lambda g: g * 0),
    "replaced by an equal one": lambda m: replace(m, torch.clone),
    "in place": each_gradient(lambda g: g.mul_(0)),
    "through data": each_gradient(lambda g: g.data.mul_(0)),
    "one element": lambda m: m[2].bias.grad.data.__setitem__(1, 9),
    "data exchanged": each_gradient(lambda g: setattr(g, "data", g * 0)),
    "detached": each_gradient(lambda g: g.detach().mul_(0)),
    "through numpy": each_gradient(lambda g: g.numpy().fill(0)),
    "through an array": each_gradient(lambda g: np.asarray(g).fill(0)),
    "through dlpack": each_gradient(lambda g: torch.from_dlpack(g).fill_(7)),
    "through storage": each_gradient(lambda g: g.untyped_storage().fill_(0)),
    "set": each_gradient(lambda g: g.set_(torch.zeros_like(g))),
    "foreach": lambda m: torch._foreach_mul_([p.grad for p in m.parameters()], 0.5),
    "removed": lambda m: replace(m, lambda g: None),
    "zero_grad of the model": lambda m: m.zero_grad(),
    "zeroed in place": lambda m: m.zero_grad(set_to_none=False),
    "clipped by value": lambda m: torch.nn.utils.clip_grad_value_(m.parameters(), 1e-3),
}


@pytest.mark.parametrize("kind", GRADIENTS)
def test_a_gradient_that_was_changed_after_backward(kind: str) -> None:
    model = mlp()
    cluster, optimizer, session = start(model)
    loss_of(model, batch()).backward()
    GRADIENTS[kind](model)
    with pytest.raises(tributary.Misuse, match="the gradient of .* after backward"):
        with cluster:
            optimizer.step()
    assert all(call[0] != "finish" for call in session.calls)
    assert all(type(p.grad) in (torch.Tensor, type(None)) for p in model.parameters())


def test_zero_grad_of_the_optimizer_before_step() -> None:
    model = mlp()
    cluster, optimizer, _ = start(model)
    with (
        pytest.raises(tributary.Misuse, match=r"zero_grad\(\) before backward"),
        cluster,
    ):
        loss_of(model, batch()).backward()
        optimizer.zero_grad()
        optimizer.step()


def test_a_sparse_gradient_that_was_changed() -> None:
    for change in (lambda g: g.mul_(0), lambda g: g._values().mul_(0)):
        model = torch.nn.Embedding(4, 2, sparse=True)
        cluster, optimizer, _ = start(model)
        model(torch.tensor([1, 1, 3])).sum().backward()
        change(model.weight.grad)
        with pytest.raises(tributary.Misuse, match="was changed"), cluster:
            optimizer.step()


def test_reading_gradients_changes_nothing() -> None:
    ours, theirs = mlp(), mlp()
    cluster, optimizer, _ = start(ours)
    loss_of(ours, batch()).backward()
    norms = [p.grad.data.norm().item() for p in ours.parameters()]
    total = torch.nn.utils.get_total_norm([p.grad for p in ours.parameters()])
    copies = [copy.deepcopy(p.grad) for p in ours.parameters()]
    saved = io.BytesIO()
    torch.save([p.grad for p in ours.parameters()], saved)
    saved.seek(0)
    optimizer.step()
    rival = torch.optim.SGD(theirs.parameters(), lr=0.1)
    loss_of(theirs, batch()).backward()
    rival.step()
    assert_equal_weights(ours, theirs)
    for parameter, kept, one, norm in zip(
        theirs.parameters(), copies, torch.load(saved), norms, strict=True
    ):
        assert type(kept) is type(one) is torch.Tensor
        assert torch.equal(kept, parameter.grad) and torch.equal(one, parameter.grad)
        assert norm == parameter.grad.norm().item()
    assert total.item() == pytest.approx(torch.tensor(norms).norm().item())
    assert type(ours[0].weight.grad) is torch.Tensor
    cluster.finish()


READS: dict[str, Change] = {
    "data": each_gradient(lambda g: g.data.norm()),
    "numpy": each_gradient(lambda g: g.numpy().sum()),
    "detached": each_gradient(lambda g: g.detach().numpy().sum()),
    "dlpack": each_gradient(lambda g: torch.from_dlpack(g).sum()),
}


@pytest.mark.parametrize("change", [False, True])
@pytest.mark.parametrize("kind", READS)
def test_gradients_whose_memory_holds_the_sum_may_be_read(
    kind: str, change: bool
) -> None:
    """As with all_reduce, where the ranks' sum takes the place of what was sent."""
    model = mlp()
    cluster, optimizer, session = start(model)
    send = session.gradient_ready

    def reduce(parameter: int) -> None:
        send(parameter)
        session.gradients[parameter] *= 2

    session.gradient_ready = reduce
    loss_of(model, batch()).backward()
    READS[kind](model)
    if not change:
        optimizer.step()
        cluster.finish()
        return
    model[0].weight.grad.data[1, 1] = 5
    with pytest.raises(tributary.Misuse, match="gradient of 0.weight was ch"), cluster:
        optimizer.step()


def test_a_gradient_that_is_not_a_number_may_be_read() -> None:
    model = mlp()
    cluster, optimizer, session = start(model)
    (loss_of(model, batch()) * float("nan")).backward()
    assert model[0].weight.grad.data.isnan().all()
    optimizer.step()
    assert np.isnan(session.gradients[0]).all()
    cluster.finish()


def test_gradients_that_the_program_gives_itself_count() -> None:
    """Beside those of backward: nothing has been sent for this parameter."""
    model = mlp()
    cluster, optimizer, session = start(model)
    model[2](batch(rows=2).repeat(1, 2)).sum().backward()
    model[0].weight.grad = torch.full((8, 4), 0.5)
    optimizer.step()
    assert session.gradient_of("0.weight").tolist() == [0.5] * 32
    cluster.finish()


WEIGHTS: dict[str, Change] = {
    "clamped": lambda m: m[0].weight.clamp_(-0.01, 0.01),
    "loaded": lambda m: m.load_state_dict(mlp(1).state_dict()),
    "initialized": lambda m: torch.nn.init.zeros_(m[2].bias),
    "one element": lambda m: m[0].weight.__setitem__((0, 0), 5.0),
    "detached": lambda m: m[0].weight.detach().mul_(0.5),
    "foreach": lambda m: torch._foreach_mul_(list(m.parameters()), 0.5),
}


@pytest.mark.parametrize("how", ["direct", "bfloat16"])
@pytest.mark.parametrize("kind", WEIGHTS)
def test_a_weight_that_the_program_has_written(kind: str, how: str) -> None:
    dtype = torch.bfloat16 if how == "bfloat16" else torch.float32
    model = mlp().to(dtype)
    cluster, optimizer, session = start(model)
    loss_of(model, batch().to(dtype)).backward()
    optimizer.step()
    with torch.no_grad():
        WEIGHTS[kind](model)
    with pytest.raises(tributary.Misuse, match="has written into .* since the last"):
        with cluster:
            loss_of(model, batch().to(dtype)).backward()
    assert len(session.begun) == 1


@pytest.mark.parametrize("how", ["bfloat16", "channels last"])
def test_a_weight_that_was_written_through_data(how: str) -> None:
    """Direct weights are compared by the session (worker/rank/session)."""
    model = torch.nn.Conv2d(2, 2, 3)
    x = torch.ones(1, 2, 3, 3)
    if how == "bfloat16":
        model, x = model.bfloat16(), x.bfloat16()
    if how == "channels last":
        model = model.to(memory_format=torch.channels_last)
    cluster, optimizer, _ = start(model)
    model(x).sum().backward()
    optimizer.step()
    model.weight.data[1, 1, 2, 2] = 3.0
    with pytest.raises(tributary.Misuse, match="has written into weight"), cluster:
        model(x).sum().backward()


def test_a_weight_that_is_written_within_the_step() -> None:
    model = mlp()
    cluster, optimizer, _ = start(model)
    loss_of(model, batch()).backward()
    with torch.no_grad():
        model[2].bias.add_(1)
    with pytest.raises(tributary.Misuse, match=r"written into 2\.bias"), cluster:
        optimizer.step()


@pytest.mark.parametrize("how", ["direct", "bfloat16", "channels last"])
@pytest.mark.parametrize("kind", ["all", "a number that is not one", "exchanged"])
def test_a_weight_that_is_written_through_data_within_the_step(
    kind: str, how: str
) -> None:
    model = torch.nn.Conv2d(2, 2, 3)
    x = torch.ones(1, 2, 3, 3)
    if how == "bfloat16":
        model, x = model.bfloat16(), x.bfloat16()
    if how == "channels last":
        model = model.to(memory_format=torch.channels_last)
    cluster, optimizer, session = start(model)
    model(x).sum().backward()
    if kind == "all":
        model.weight.data.mul_(0.5)
    elif kind == "exchanged":
        model.weight.data = model.weight.data * 0.5
    else:
        model.weight.data[1, 1, 2, 2] = float("nan")
    wanted = "has written into weight|memory of weight was exchanged"
    with pytest.raises(tributary.Misuse, match=wanted), cluster:
        optimizer.step()
    assert all(call[0] != "finish" for call in session.calls)


def test_a_part_of_a_large_weight_that_is_written_within_a_step() -> None:
    """Each step compares another sixteenth."""
    model = torch.nn.Linear(200, 200, bias=False)
    cluster, optimizer, _ = start(model)
    found = []
    for _ in range(16):
        model(torch.ones(1, 200)).sum().backward()
        kept = model.weight.data[100, 100].clone()
        model.weight.data[100, 100] = 7
        try:
            optimizer.sending._check_begun()
        except tributary.Misuse:
            found.append(True)
        model.weight.data[100, 100] = kept
        optimizer.step()
        optimizer.zero_grad()
    assert len(found) == 1
    cluster.finish()


def test_embeddings_that_renormalize_their_weights() -> None:
    model = torch.nn.Embedding(4, 2, max_norm=0.1)
    cluster, _, _ = start(model)
    with pytest.raises(tributary.Misuse, match="has written into weight"), cluster:
        model(torch.tensor([1, 2])).sum().backward()


def test_a_frozen_parameter_that_the_program_moves() -> None:
    """A teacher that follows its student."""
    student, teacher = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)
    model = torch.nn.ModuleList([student, teacher.requires_grad_(False)])

    def follow() -> None:
        with torch.no_grad():
            teacher.weight.lerp_(student.weight, 0.5)

    cluster, optimizer, _ = start(model)
    student(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    follow()
    with pytest.raises(tributary.Misuse, match='frozen="local"'), cluster:
        student(torch.ones(1, 2)).sum().backward()
    cluster, optimizer, _ = start(model, frozen="local")
    with cluster:
        for _ in range(2):
            follow()
            student(torch.ones(1, 2)).sum().backward()
            optimizer.step()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_weights_may_be_put_back(dtype: torch.dtype) -> None:
    """As an evaluation with averaged weights does."""
    model = mlp().to(dtype)
    cluster, optimizer, session = start(model)
    for _ in range(2):
        loss_of(model, batch().to(dtype)).backward()
        optimizer.step()
        own = copy.deepcopy(model.state_dict())
        model.load_state_dict(mlp(1).state_dict())
        model.load_state_dict(own)
    assert len(session.begun) == 2
    cluster.finish()


def test_memory_of_a_copied_weight_may_be_exchanged() -> None:
    model = mlp().bfloat16()
    cluster, optimizer, session = start(model)
    model[0].weight.data = model[0].weight.data.clone()
    loss_of(model, batch().bfloat16()).backward()
    optimizer.step()
    wanted = torch.from_numpy(session.weights[0]).bfloat16()
    assert torch.equal(model[0].weight.flatten(), wanted)
    model[0].weight.data = torch.zeros(8, 4).bfloat16()
    with pytest.raises(tributary.Misuse, match="has written into 0.weight"), cluster:
        loss_of(model, batch().bfloat16()).backward()


def test_running_averages_are_the_programs_to_move() -> None:
    model = torch.nn.BatchNorm1d(2, momentum=1.0)
    cluster, optimizer, session = start(model)
    model(torch.tensor([[0.0, 1.0], [2.0, 3.0]])).square().sum().backward()
    with torch.no_grad():
        model.running_mean.fill_(5)
    optimizer.step()
    assert session.gradient_of("running_mean").tolist() == [5, 5]
    cluster.finish()


def test_samples_that_are_set_after_backward() -> None:
    model = mlp()
    cluster, optimizer, _ = start(model)
    loss_of(model, batch()).backward()
    cluster.samples = 1  # as it is
    with (
        pytest.raises(tributary.Misuse, match="samples was set after backward"),
        cluster,
    ):
        cluster.samples = 6


def test_a_parameter_that_is_frozen_while_it_is_trained() -> None:
    """The program is warned once, and not if the rate of the group is 0."""
    model = mlp()
    cluster, optimizer, _ = start(
        model,
        momentum=0.9,
        groups=[
            {"params": list(model[0].parameters())},
            {"params": list(model[2].parameters())},
        ],
    )

    def step() -> None:
        loss_of(model, batch()).backward()
        optimizer.step()
        optimizer.zero_grad()

    step()
    model[0].requires_grad_(False)
    with pytest.warns(UserWarning, match="0.weight, 0.bias: no longer requires") as told:
        step()
        step()
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.param_groups[1]["lr"] = 0.0
        model[0].requires_grad_(True)
        model[2].requires_grad_(False)
        step()
    cluster.finish()


def test_a_parameter_that_is_frozen_after_its_own_backward_has_a_gradient() -> None:
    """As the losses of two networks may do in one step."""
    model = mlp()
    cluster, optimizer, _ = start(model)
    with cluster.no_sync():
        loss_of(model, batch()).backward()
    model[0].requires_grad_(False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loss_of(model, batch()).backward()
        optimizer.step()
    cluster.finish()
