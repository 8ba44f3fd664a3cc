# SPDX-License-Identifier: Apache-2.0
"""Each misuse raises one exception that says what to do."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from fake_native import Next, Session
from models import batch, loss_of, mlp, start

import tributary.torch as tributary
from tributary.torch import InvalidSetting, Misuse, ModelMismatch


def test_step_without_backward() -> None:
    cluster, optimizer, _ = start(mlp())
    with pytest.raises(Misuse, match=r"call loss.backward\(\) before it"):
        optimizer.step()
    cluster.fail("test")


def test_step_inside_no_sync() -> None:
    model = mlp()
    cluster, optimizer, _ = start(model)
    with cluster.no_sync(), pytest.raises(Misuse, match="outside of it"):
        loss_of(model, batch()).backward()
        optimizer.step()
    cluster.fail("test")


def test_a_second_backward_before_step() -> None:
    model = mlp()
    cluster, _, _ = start(model)
    loss_of(model, batch()).backward()
    with pytest.raises(Misuse, match="cluster.no_sync"):
        loss_of(model, batch()).backward()
    cluster.fail("test")


def test_clipping_after_backward() -> None:
    model = mlp()
    cluster, optimizer, _ = start(model)
    loss_of(model, batch()).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
    with pytest.raises(Misuse, match="clip_norm="):
        optimizer.step()
    cluster.fail("test")


def test_memory_that_was_exchanged() -> None:
    model = mlp()
    cluster, _, _ = start(model)
    model[0].weight.data = model[0].weight.data.clone()
    with pytest.raises(Misuse, match="memory of 0.weight was exchanged"):
        loss_of(model, batch()).backward()
    cluster.fail("test")


def test_a_shape_that_changed() -> None:
    model = mlp()
    cluster, optimizer, _ = start(model)
    model[2].bias.data = torch.zeros(3)
    cluster.samples = 0
    with pytest.raises(Misuse, match=r"\[2\] when it was declared and has \[3\]"):
        optimizer.step()
    cluster.fail("test")


def test_a_parameter_that_was_replaced() -> None:
    model = mlp()
    cluster, _, _ = start(model)
    model[0].weight = torch.nn.Parameter(torch.zeros(8, 4))
    with pytest.raises(Misuse, match="another tensor as 0.weight"):
        loss_of(model, batch()).backward()
    cluster.fail("test")


def test_a_module_that_was_replaced() -> None:
    model = mlp()
    cluster, _, _ = start(model)
    model[2] = torch.nn.Linear(8, 2)
    with pytest.raises(Misuse, match="another tensor as 2.weight"):
        loss_of(model, batch()).backward()
    cluster.fail("test")


def test_a_module_that_was_removed() -> None:
    model = torch.nn.Sequential(*mlp(), torch.nn.Linear(2, 2))
    cluster, _, _ = start(model)
    del model[3]
    with pytest.raises(Misuse, match="another tensor as 3.weight"):
        loss_of(model, batch()).backward()
    cluster.fail("test")


def test_a_module_may_be_wrapped() -> None:
    model = mlp()
    cluster, optimizer, _ = start(model)
    model[0] = torch.nn.Sequential(model[0])  # as torch.compile wraps one
    loss_of(model, batch()).backward()
    optimizer.step()
    cluster.finish()


def test_two_optimizers() -> None:
    model = mlp()
    cluster, _, _ = start(model)
    with pytest.raises(Misuse, match="has an optimizer already"):
        cluster.optimizer(model, lr=0.1)
    with pytest.raises(Misuse, match="0.weight is trained by another"):
        start(model)
    cluster.fail("test")


def test_two_connections_with_the_same_place() -> None:
    """As of a program that trains two models in turn."""
    first, _, session = start(mlp())
    with pytest.raises(Misuse, match="this process is rank 0 of .*coordinator of its"):
        start(mlp())
    assert Session.last is session  # the second has not waited for the place
    other = tributary.connect("localhost:2", rank=0)
    other.optimizer(mlp(), lr=0.1)
    other.finish()
    first.finish()
    start(mlp())[0].finish()


def test_an_option_that_only_the_servers_could_change() -> None:
    model = mlp()
    cluster, optimizer, _ = start(model, momentum=0.9)
    optimizer.param_groups[0]["momentum"] = 0.5
    with pytest.raises(Misuse, match="only lr can change"):
        loss_of(model, batch()).backward()
    cluster.fail("test")


@pytest.mark.parametrize("rate", [-0.1, float("nan")])
def test_a_rate_that_is_no_rate(rate: float) -> None:
    model = mlp()
    cluster, optimizer, _ = start(model)
    optimizer.param_groups[0]["lr"] = rate
    with pytest.raises(Misuse, match="lr must be finite"):
        loss_of(model, batch()).backward()
    cluster.fail("test")


def test_adding_parameters_later() -> None:
    cluster, optimizer, _ = start(mlp())
    with pytest.raises(Misuse, match="pass all groups to it"):
        optimizer.add_param_group({"params": [torch.nn.Parameter(torch.ones(1))]})
    cluster.fail("test")


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"weight_decy": 0.1}, 'did you mean "weight_decay"'),
        ({"checkpoint_evry": 10}, 'did you mean "checkpoint_every"'),
        ({"momentum": float("inf")}, "must be finite"),
        ({"lr": None}, "wants a learning rate"),
        ({"fused": True}, "has no meaning"),
    ],
)
def test_wrong_keywords(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSetting, match=message):
        start(mlp(), **keywords)


def test_wrong_choices() -> None:
    with pytest.raises(Misuse, match='did you mean "average"'):
        start(mlp(), buffers="averge")
    with pytest.raises(InvalidSetting, match='did you mean "adamw"'):
        start(mlp(), "adamww")


def test_parameters_without_names() -> None:
    model = mlp()
    with pytest.raises(Misuse, match="groups="):
        start([{"params": list(model.parameters())}])
    with pytest.raises(Misuse, match="wanted a torch.nn.Module"):
        start(model.parameters())


def test_a_group_with_a_strange_parameter() -> None:
    stranger = torch.nn.Parameter(torch.ones(5))
    with pytest.raises(Misuse, match=r"shape \[5\] that is no parameter"):
        start(mlp(), groups=[{"params": [stranger]}])


@pytest.mark.parametrize(
    "sync",
    ["async", {"ssp": {"staleness": 1}}, {"bsp": {"backup_workers": 1}}],
)
def test_rank_0s_buffers_without_common_steps(sync: Any) -> None:
    with pytest.raises(Misuse, match='use buffers="average"'):
        start(mlp(), sync=sync, buffers="rank0")
    for common in (None, "bsp", {"bsp": {"backup_workers": 0}}):
        start(mlp(), sync=common, buffers="rank0")[0].finish()


def test_a_round_of_local_sgd_that_is_not_whole() -> None:
    model = mlp()
    sync = {"local_sgd": {"period": 4}}
    cluster, optimizer, session = start(model, sync=sync)
    with pytest.raises(Misuse, match="takes 6 steps, .* total_steps=6"):
        cluster.resume([1, 2], epochs=3)
    loss_of(model, batch()).backward()
    optimizer.step()
    with pytest.raises(Misuse, match="takes 1 steps, .* multiple of 4 steps"):
        cluster.finish()
    assert session.failed is not None and session.finished == 0
    # The last round may be shorter where its end is known, or the job has ended.
    for total, after in ((1, Next.STEP), (None, Next.END)):
        settings = {"strategy.parameter_server.sync": sync}
        cluster = tributary.connect(settings=settings)
        optimizer = cluster.optimizer(model, lr=0.1, total_steps=total)
        Session.last.after = lambda fake, after=after: after
        loss_of(model, batch()).backward()
        optimizer.step()
        cluster.finish()


def test_nothing_to_train() -> None:
    with pytest.raises(Misuse, match="no parameter .* requires a gradient"):
        start(mlp().requires_grad_(False))


def test_a_type_that_the_servers_cannot_hold() -> None:
    with pytest.raises(Misuse, match=r"model.float\(\)"):
        start(mlp().double())


def test_types_that_have_no_float32_parameter() -> None:
    model = mlp()
    model.phase = torch.nn.Parameter(torch.ones(2, dtype=torch.complex64))
    with pytest.raises(Misuse, match=r"phase is .*complex64.*view_as_complex"):
        start(model)
    model.phase.requires_grad_(False)
    codes = torch.nn.Parameter(torch.ones(2, dtype=torch.int8), requires_grad=False)
    for name in ("phase", "codes"):
        model.register_parameter("codes", codes if name == "codes" else None)
        with pytest.raises(Misuse, match=f'{name} is .* with frozen="local"'):
            start(model)
        start(model, frozen="local")[0].finish()
        model.phase = None


def test_an_expanded_tensor() -> None:
    remedy = r"is expanded: .*with \.contiguous\(\)"
    model = mlp()
    model.register_buffer("b", torch.zeros(1).expand(4))
    with pytest.raises(Misuse, match=f"b {remedy}; register the buffer with"):
        start(model)
    model.b = model.b.contiguous()
    start(model)[0].finish()
    model.w = torch.nn.Parameter(torch.zeros(2, 1).expand(2, 4))
    with pytest.raises(Misuse, match=f"w {remedy}$"):
        start(model)


def test_another_model_than_the_other_ranks(monkeypatch: Any) -> None:
    error = ModelMismatch("rank 1 declares 0.weight as [8, 4], rank 0 as [4, 4]")
    monkeypatch.setattr(Session, "start_error", error)
    model = mlp()
    with pytest.raises(ModelMismatch, match="rank 1 declares"):
        start(model)
    monkeypatch.setattr(Session, "start_error", None)
    start(model)[0].finish()  # the model is free again


def test_calls_before_the_optimizer() -> None:
    cluster = tributary.connect()
    with pytest.raises(Misuse, match="not joined"):
        cluster.resume([1], epochs=1)
    with pytest.raises(Misuse, match="cluster.optimizer"):
        cluster.state_dict()


@pytest.mark.parametrize(
    ("samples", "message"), [(-1, "at least 0, got -1"), (0.5, r"got 0.5 \(float\)")]
)
def test_samples_that_are_no_number_of_samples(samples: Any, message: str) -> None:
    cluster, _, _ = start(mlp())
    with pytest.raises(Misuse, match=f"samples must be .*{message}"):
        cluster.samples = samples
    cluster.samples = torch.tensor(3)
    assert cluster.samples == 3
    with pytest.raises(Misuse, match="correct must be a whole number"):
        cluster.evaluated(loss_sum=1.0, samples=1, correct="all")
    cluster.fail("test")


@pytest.mark.parametrize("rank", [-1, 1.5, "0", True])
def test_a_rank_that_is_no_rank(rank: Any) -> None:
    with pytest.raises(InvalidSetting, match="rank wants a whole number from 0"):
        tributary.connect("a:1", rank)


@pytest.mark.parametrize("timeout", [0, -1.0, float("nan"), float("inf"), "1"])
def test_a_join_timeout_that_is_no_time(timeout: Any) -> None:
    with pytest.raises(InvalidSetting, match="join_timeout wants seconds above 0"):
        tributary.connect(join_timeout=timeout)


def test_a_scaler_that_the_optimizer_does_not_know() -> None:
    model = mlp()
    cluster, optimizer, _ = start(model)
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(loss_of(model, batch())).backward()
    with pytest.raises(Misuse, match="scaler=scaler"):
        scaler.step(optimizer)
    cluster.fail("test")


def test_a_state_of_another_optimizer() -> None:
    cluster, optimizer, _ = start(mlp())
    with pytest.raises(Misuse, match="0 parameter groups, this optimizer 1"):
        optimizer.load_state_dict({"param_groups": []})
    cluster.fail("test")


def test_a_model_on_a_device_that_is_none() -> None:
    with pytest.raises(Misuse, match="the model is on meta"):
        start(mlp().to("meta"))


def test_two_tensors_in_the_same_memory() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    model[1].weight.data = model[0].weight.data
    with pytest.raises(tributary.Misuse, match="0.weight and 1.weight are two tensors"):
        start(model)


def test_tensors_with_strides_in_the_same_memory() -> None:
    same = "(0.weight and 1|1.weight and 0).weight are two tensors"
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 2))
    model[1].weight.data = model[0].weight.data.t()
    with pytest.raises(tributary.Misuse, match=same):
        start(model)
    layers = [torch.nn.Conv2d(4, 4, 3) for _ in range(2)]
    model = torch.nn.Sequential(*layers).to(memory_format=torch.channels_last)
    model[1].weight.data = model[0].weight.data
    with pytest.raises(tributary.Misuse, match=same):
        start(model)
    # A view of a part, of another type: bfloat16 in the upper half of a float32.
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    halves = model[0].weight.data.view(torch.bfloat16)
    model[1].weight.data = halves[:, 1::2]
    with pytest.raises(tributary.Misuse, match=same):
        start(model)


def test_other_columns_of_the_same_matrix() -> None:
    whole = torch.zeros(2, 5)
    model = torch.nn.Module()
    for name, columns in (("a", whole[:, :2]), ("b", whole[:, 2:4]), ("c", whole[1:])):
        model.register_parameter(name, torch.nn.Parameter(columns))
    with pytest.raises(tributary.Misuse, match="(a|b) and c are two tensors"):
        start(model)
    model.c = torch.nn.Parameter(torch.zeros(1))
    start(model)[0].finish()


def test_a_second_backward_over_the_same_graph() -> None:
    """Its parameters still have the weights of the first."""
    first = torch.nn.Linear(1, 1, bias=False)
    second = torch.nn.Linear(1, 1, bias=False)
    model = torch.nn.Sequential(first, second)
    cluster, optimizer, _ = start(model)
    score = model(torch.ones(1, 1)).sum()
    score.backward(inputs=[second.weight], retain_graph=True)
    score.backward(inputs=[first.weight])
    optimizer.step()
    assert cluster.steps == 1
    cluster.finish()


def test_a_graph_from_before_the_step() -> None:
    """Its weights are no longer those of its activations, as with torch's."""
    model = mlp()
    cluster, optimizer, _ = start(model)
    loss = loss_of(model, batch())
    loss.backward(retain_graph=True)
    optimizer.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    cluster.fail("test")


def test_the_keyword_staged_has_no_effect() -> None:
    with pytest.warns(UserWarning, match="always change in step"):
        start(mlp(), staged=True)[0].finish()
