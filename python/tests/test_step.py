# SPDX-License-Identifier: Apache-2.0
"""A step: gradients leave in hooks, weights arrive in the parameters."""

from __future__ import annotations

import copy
import gc
import weakref
from typing import Any

import numpy as np
import pytest
import torch
from fake_native import Next
from models import assert_equal_weights, batch, loss_of, mlp, start

import tributary.torch as tributary


def test_training_equals_torchs_sgd() -> None:
    ours, theirs = mlp(), mlp()
    cluster, optimizer, session = start(ours, lr=0.3)
    rival = torch.optim.SGD(theirs.parameters(), lr=0.3)
    for step in range(5):
        for model, one in ((ours, optimizer), (theirs, rival)):
            one.zero_grad()
            loss_of(model, batch(seed=step)).backward()
            one.step()
    assert_equal_weights(ours, theirs)
    assert cluster.steps == 5
    assert session.begun == [(1, [0.3])] * 5
    cluster.finish()


def test_a_job_lives_until_the_programs_end_without_its_cluster() -> None:
    cluster, optimizer, session = start(mlp())
    kept = weakref.ref(cluster)
    del cluster
    gc.collect()
    cluster = kept()
    assert cluster is not None
    cluster.finish()
    del cluster, optimizer
    gc.collect()
    assert kept() is None
    assert session.finished == 1


def test_gradients_leave_during_backward_last_layer_first() -> None:
    model = mlp()
    cluster, optimizer, session = start(model)
    loss_of(model, batch()).backward()
    sent = session.sent()
    assert set(sent[:2]) == {"2.weight", "2.bias"}
    assert set(sent[2:]) == {"0.weight", "0.bias"}
    optimizer.step()
    cluster.finish()


def test_weights_are_written_in_place_and_declared_with_torchs_names() -> None:
    model = mlp()
    pointers = [p.data_ptr() for p in model.parameters()]
    cluster, _, session = start(model)
    names = [name for name, *_ in session.parameters]
    assert names == [name for name, _ in model.named_parameters()]
    assert [w.ctypes.data for w in session.weights] == pointers
    cluster.finish()


def test_a_job_that_goes_on_gives_its_weights(monkeypatch: Any) -> None:
    monkeypatch.setattr("fake_native.Session.job_weights", {"2.bias": np.array([5, 6])})
    model = mlp().to(torch.bfloat16)
    cluster, _, _ = start(model)
    assert model[2].bias.tolist() == [5, 6]
    cluster.finish()


def test_unused_parameters_count_as_zeros() -> None:
    model = mlp()
    model.register_parameter("unused", torch.nn.Parameter(torch.ones(3)))
    cluster, optimizer, session = start(model)
    loss_of(model, batch()).backward()
    optimizer.step()
    assert session.gradient_of("unused").tolist() == [0, 0, 0]
    cluster.finish()


def test_tied_parameters_are_declared_and_sent_once() -> None:
    model = torch.nn.ModuleDict(
        {"a": torch.nn.Linear(3, 3, bias=False), "b": torch.nn.Linear(3, 3, bias=False)}
    )
    model["b"].weight = model["a"].weight
    cluster, optimizer, session = start(model)
    x = torch.ones(2, 3)
    model["b"](model["a"](x)).sum().backward()
    assert session.sent() == ["a.weight"]
    wanted = model["a"].weight.grad.clone()
    optimizer.step()
    np.testing.assert_array_equal(session.gradients[0], wanted.flatten())
    assert set(cluster.state_dict()) == {"a.weight", "b.weight"}
    cluster.finish()


def test_frozen_parameters_are_declared_and_do_not_move() -> None:
    model = mlp()
    model[0].requires_grad_(False)
    before = model[0].weight.clone()
    cluster, optimizer, session = start(model)
    loss_of(model, batch()).backward()
    optimizer.step()
    assert torch.equal(model[0].weight, before)
    assert not session.gradient_of("0.weight").any()
    frozen = session.options["settings"][-1]
    assert frozen == (
        'training.parameter_groups=[{parameters: ["0.weight", "0.bias"], frozen: true}]'
    )
    assert session.begun == [(1, [0.1, 0.1])]  # a rate for the frozen group too
    cluster.finish()


def test_frozen_parameters_can_stay_local() -> None:
    model = mlp()
    model[0].requires_grad_(False)
    cluster, _, session = start(model, frozen="local")
    assert session.names == ["2.weight", "2.bias"]
    cluster.finish()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_parameters_have_float32_weights_on_the_servers(
    dtype: torch.dtype,
) -> None:
    model = mlp().to(dtype)
    cluster, optimizer, session = start(model, lr=1e-4)
    # Steps too small for 8 bits of mantissa add up in float32.
    first = session.weights[0].copy()
    for _ in range(3):
        loss_of(model, batch().to(dtype)).backward()
        optimizer.step()
    assert np.abs(session.weights[0] - first).max() > 0
    master = cluster.state_dict()["0.weight"]
    assert master.dtype is torch.float32
    assert torch.equal(model[0].weight, master.to(dtype))
    np.testing.assert_array_equal(master.flatten(), session.weights[0])
    cluster.finish()


def test_a_transposed_parameter_has_memory_beside_it() -> None:
    model = torch.nn.Linear(2, 3, bias=False)
    model.weight.data = torch.arange(6.0).reshape(2, 3).t()
    cluster, optimizer, session = start(model, lr=1.0)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()  # every gradient is 1
    wanted = torch.arange(6.0).reshape(2, 3).t() - 1
    assert torch.equal(model.weight, wanted)
    assert session.weights[0].tolist() == wanted.flatten().tolist()
    cluster.finish()


def test_bfloat16_weights_change_in_step_only() -> None:
    model = mlp().bfloat16()
    cluster, optimizer, session = start(model)
    pointers = {p.data_ptr() for p in model.parameters()}
    assert not pointers & {w.ctypes.data for w in session.weights}
    loss_of(model, batch().bfloat16()).backward()
    session.weights[0][:] = 3  # as soon as the gradient has left
    assert not (model[0].weight == 3).any()
    optimizer.step()
    wanted = torch.from_numpy(session.weights[0]).bfloat16()
    assert torch.equal(model[0].weight.flatten(), wanted)
    cluster.finish()


def test_sparse_gradients_are_sent_dense() -> None:
    model = torch.nn.Embedding(4, 2, sparse=True)
    cluster, optimizer, session = start(model)
    model(torch.tensor([1, 1, 3])).sum().backward()
    optimizer.step()
    assert session.gradients[0].tolist() == [0, 0, 2, 2, 0, 0, 1, 1]
    cluster.finish()


def test_accumulation_sends_the_sum_of_the_gradients() -> None:
    ours, theirs = mlp(), mlp()
    cluster, optimizer, session = start(ours)
    with cluster.no_sync():
        loss_of(ours, batch(seed=1)).backward()
    assert session.calls == []
    loss_of(ours, batch(seed=2)).backward()
    optimizer.step()
    for seed in (1, 2):
        loss_of(theirs, batch(seed=seed)).backward()
    np.testing.assert_allclose(
        session.gradient_of("0.weight"), theirs[0].weight.grad.flatten(), rtol=1e-6
    )
    cluster.finish()


def test_samples_weigh_the_rank_and_zero_needs_no_backward() -> None:
    model = mlp()
    cluster, optimizer, session = start(model)
    cluster.samples = 5
    loss_of(model, batch()).backward()
    optimizer.step()
    optimizer.zero_grad()
    cluster.samples = 0
    optimizer.step()
    assert [samples for samples, _ in session.begun] == [5, 0]
    assert not session.gradient_of("0.weight").any()
    cluster.finish()


def test_the_loss_is_reported() -> None:
    model = mlp()
    cluster, optimizer, session = start(model)
    for use_log in (True, False):
        loss = loss_of(model, batch())
        loss.backward()
        if use_log:
            cluster.log(loss)
            optimizer.step()
        else:
            optimizer.step(loss=loss)
        assert session.calls[-1][1]["loss"] == loss.item()
    cluster.evaluated(loss_sum=3.0, correct=4, samples=5)
    wanted = {"samples": 5, "loss_sum": 3.0, "correct": 4, "values": 5}
    assert session.calls[-1] == ("evaluation", wanted)
    cluster.finish()


@pytest.mark.parametrize("how", ["average", "rank0"])
def test_buffers_are_sent_after_the_gradients(how: str) -> None:
    model = torch.nn.BatchNorm1d(2, momentum=1.0)
    import fake_native

    fake_native.Session.world = 4
    cluster, optimizer, session = start(model, buffers=how)
    model(torch.tensor([[0.0, 1.0], [2.0, 3.0]])).square().sum().backward()
    optimizer.step()
    assert session.gradient_of("running_mean").tolist() == [1.0, 2.0]
    assert session.names[:3] == ["running_mean", "running_var", "num_batches_tracked"]
    assert session.parameters[0][2] == 1.0 and session.parameters[3][2] == 0.0
    assert model.num_batches_tracked.dtype is torch.int64
    assert model.num_batches_tracked.item() == 1
    assert f"program.buffers={how}" in session.options["settings"]
    fake_native.Session.world = 1
    cluster.finish()


def test_other_ranks_add_nothing_to_the_buffers_of_rank_0(monkeypatch: Any) -> None:
    monkeypatch.setenv("TRIBUTARY_RANK", "1")
    model = torch.nn.BatchNorm1d(2)
    cluster, optimizer, session = start(model, buffers="rank0")
    model(torch.randn(4, 2)).square().sum().backward()
    optimizer.step()
    assert not session.gradient_of("running_mean").any()
    cluster.finish()


def test_local_and_unsaved_buffers_stay_local() -> None:
    model = torch.nn.BatchNorm1d(2)
    model.register_buffer("table", torch.ones(2), persistent=False)
    cluster, _, session = start(model)
    assert "table" not in session.names
    cluster.finish()
    cluster, _, session = start(torch.nn.BatchNorm1d(2), buffers="local")
    assert session.names == ["weight", "bias"]
    cluster.finish()


def test_a_roll_back_returns_normally_and_moves_the_position() -> None:
    model = mlp().to(torch.bfloat16)
    cluster, optimizer, session = start(model)

    def back(fake: Any) -> Next:
        fake.steps = 0
        fake.weights[0][:] = 2
        return Next.MOVED

    session.after = back
    loss_of(model, batch().bfloat16()).backward()
    optimizer.step()
    assert optimizer.moved and cluster.steps == 0
    assert (model[0].weight == 2).all()
    session.after = lambda fake: Next.STEP
    # At the beginning of a step, too: nothing is sent, and the rest is ignored.
    session.begins = {0: Next.MOVED}
    loss_of(model, batch().bfloat16()).backward()
    assert session.sent() == []
    optimizer.step()
    assert optimizer.moved
    cluster.finish()


def test_after_the_last_step_backward_raises_stopped() -> None:
    model = mlp()
    cluster, optimizer, session = start(model)
    session.after = lambda fake: Next.END
    loss_of(model, batch()).backward()
    optimizer.step()
    with pytest.raises(tributary.Stopped):
        loss_of(model, batch()).backward()
    cluster.finish()


def test_closing_removes_the_hooks() -> None:
    model = mlp()
    cluster, _, _ = start(model)
    cluster.finish()
    for parameter in model.parameters():
        assert not parameter._post_accumulate_grad_hooks
    loss_of(model, batch()).backward()  # nothing raises
    again, _, _ = start(model)
    again.finish()


def test_a_model_can_be_copied_while_it_is_trained() -> None:
    model = mlp()
    cluster, _, _ = start(model)
    twin = copy.deepcopy(model)
    loss_of(twin, batch()).backward()
    cluster.finish()


def test_integer_buffers_are_rounded() -> None:
    model = torch.nn.BatchNorm1d(2)
    cluster, optimizer, session = start(model)

    def averaged(fake: Any) -> Next:
        fake.weights[fake.names.index("num_batches_tracked")][:] = 2.6
        return Next.STEP

    session.after = averaged
    model(torch.randn(3, 2)).sum().backward()
    optimizer.step()
    assert model.num_batches_tracked.item() == 3
    cluster.finish()


def test_a_loss_is_reported_once_and_keeps_no_graph() -> None:
    model = mlp()
    cluster, optimizer, session = start(model)
    loss = loss_of(model, batch())
    loss.backward()
    cluster.log(loss)
    assert optimizer._loss.grad_fn is None
    optimizer.step()
    loss_of(model, batch()).backward()
    optimizer.step()
    assert [c[1]["loss"] for c in session.calls if c[0] == "finish"][1] is None
    cluster.finish()


def test_seconds_of_a_step_are_those_of_its_own_batches() -> None:
    model = mlp()
    cluster, optimizer, session = start(model)
    optimizer.sending.batch.data_seconds = 5.0
    for wanted in (5.0, 0.0):
        loss_of(model, batch()).backward()
        optimizer.step()
        assert session.calls[-1][1]["data_seconds"] == wanted
    cluster.finish()


def test_gradients_kept_in_place_are_new_in_the_next_step() -> None:
    model = mlp()
    cluster, optimizer, session = start(model)
    loss_of(model, batch()).backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
    cluster.samples = 0
    optimizer.step()  # no sent gradient could have changed
    assert len(session.begun) == 2
    cluster.finish()


def test_a_job_that_ends_before_a_step_is_not_asked_again() -> None:
    model = mlp()
    cluster, optimizer, session = start(model)
    session.begins = {0: Next.END}
    loss_of(model, batch()).backward()
    assert session.sent() == []
    optimizer.step()
    with pytest.raises(tributary.Stopped):
        loss_of(model, batch()).backward()
    assert len(session.begun) == 1 and not optimizer.moved
    cluster.finish()


def test_no_sync_can_be_nested() -> None:
    model = mlp()
    cluster, _, session = start(model)
    with cluster.no_sync():
        with cluster.no_sync():
            pass
        loss_of(model, batch()).backward()
    assert session.calls == []
    cluster.finish()
