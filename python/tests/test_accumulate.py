# SPDX-License-Identifier: Apache-2.0
"""The gradient of a step of several batches is the mean over its rows."""

from __future__ import annotations

from typing import Any

import fake_native
import pytest
import torch
from models import start
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler

import tributary.torch as tributary


def rows_of(count: int) -> torch.utils.data.TensorDataset:
    """The gradient of the mean of w x over rows is the mean of their numbers."""
    return torch.utils.data.TensorDataset(torch.arange(1.0, count + 1).unsqueeze(1))


def join(
    monkeypatch: Any, rank: int = 0, world: int = 1, **keywords: Any
) -> tuple[tributary.Cluster, Any, Any]:
    monkeypatch.setenv("TRIBUTARY_RANK", str(rank))
    monkeypatch.setenv("TRIBUTARY_WORLD_SIZE", str(world))
    monkeypatch.setattr(fake_native.Session, "world", world)
    return start(torch.nn.Linear(1, 1, bias=False), **keywords)


def gradients(
    cluster: tributary.Cluster,
    optimizer: Any,
    session: Any,
    loader: Any,
    accumulate: int,
) -> list[tuple[int, float]]:
    """(samples, gradient) of each step."""
    (weight,) = optimizer.param_groups[0]["params"]
    steps = []
    with cluster:
        for _, (x,) in cluster.resume(loader, accumulate=accumulate):
            optimizer.zero_grad()
            ((weight * x).mean() / cluster.micro_batches).backward()
            optimizer.step()
            if not cluster.accumulating:
                gradient = round(float(session.gradients[0][0]), 5)
                steps.append((session.begun[-1][0], gradient))
    return steps


def own(cluster: tributary.Cluster, data: Any, batch: int) -> DataLoader[Any]:
    sampler = cluster.sampler(data, shuffle=False)
    return DataLoader(data, batch_size=batch, sampler=sampler)


@pytest.mark.parametrize(
    ("rows", "batch", "accumulate", "wanted"),
    [
        (8, 2, 4, [(8, 4.5)]),
        (7, 2, 4, [(7, 4.0)]),
        (7, 2, 3, [(6, 3.5), (1, 7.0)]),
        (5, 4, 9, [(5, 3.0)]),
        (3, 2, 1, [(2, 1.5), (1, 3.0)]),
    ],
)
def test_a_short_batch_weighs_by_its_rows(
    monkeypatch: Any, rows: int, batch: int, accumulate: int, wanted: Any
) -> None:
    joined = join(monkeypatch)
    loader = own(joined[0], rows_of(rows), batch)
    assert gradients(*joined, loader, accumulate) == wanted


# Rank 0 has rows 1, 3, 5, rank 1 has rows 2 and 4 and computes on 2 once more.
@pytest.mark.parametrize(("rank", "wanted"), [(0, [(3, 3.0)]), (1, [(2, 3.0)])])
@pytest.mark.parametrize("padding", [1.0, float("nan")])
def test_a_row_that_fills_a_batch_counts_nothing(
    monkeypatch: Any, rank: int, wanted: Any, padding: float
) -> None:
    joined = join(monkeypatch, rank, 2)
    loader = own(joined[0], rows_of(5), 1)
    if rank == 1:
        # The third batch's gradient, whatever it is.
        (weight,) = joined[1].param_groups[0]["params"]
        parts: list[int] = []

        def spoil(gradient: torch.Tensor) -> torch.Tensor:
            parts.append(1)
            return gradient * padding if len(parts) == 3 else gradient

        weight.register_hook(spoil)
    assert gradients(*joined, loader, 3) == wanted


@pytest.mark.parametrize(
    "make",
    [
        lambda data: DataLoader(data, batch_size=2),
        lambda data: DataLoader(
            data, batch_sampler=BatchSampler(SequentialSampler(data), 2, False)
        ),
    ],
)
def test_rows_are_known_of_other_loaders_too(monkeypatch: Any, make: Any) -> None:
    joined = join(monkeypatch)
    # Ranks weigh equally without our sampler, as with DDP.
    assert gradients(*joined, make(rows_of(7)), 4) == [(1, 4.0)]


def test_batches_of_unknown_rows_weigh_equally(monkeypatch: Any) -> None:
    joined = join(monkeypatch)
    batches = [(torch.tensor([1.0, 2.0]),), (torch.tensor([6.0]),)]
    assert gradients(*joined, batches, 2) == [(1, 3.75)]


def test_with_a_scaler_rows_weigh_as_well(monkeypatch: Any) -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    cluster, optimizer, session = join(monkeypatch, scaler=scaler)
    (weight,) = optimizer.param_groups[0]["params"]
    with cluster:
        loader = own(cluster, rows_of(7), 2)
        for _, (x,) in cluster.resume(loader, accumulate=4):
            loss = (weight * x).mean() / cluster.micro_batches
            scaler.scale(loss).backward()
            if not cluster.accumulating:
                scaler.step(optimizer)
                scaler.update()
    assert session.gradients[0].tolist() == [4.0]


def test_after_the_loop_gradients_are_not_weighed(monkeypatch: Any) -> None:
    cluster, optimizer, session = join(monkeypatch)
    (weight,) = optimizer.param_groups[0]["params"]
    with cluster:
        for _ in cluster.resume(own(cluster, rows_of(3), 2), accumulate=2):
            break
        optimizer.zero_grad()
        weight.sum().backward()
        optimizer.step()
    assert session.gradients[0].tolist() == [1.0]


def test_samples_in_the_batches_of_a_step(monkeypatch: Any) -> None:
    cluster, optimizer, session = join(monkeypatch)
    (weight,) = optimizer.param_groups[0]["params"]
    with cluster:
        for _ in cluster.resume([1, 2], accumulate=2):
            cluster.samples = 3
            weight.sum().backward()
            optimizer.step()
    assert session.begun == [(3, [0.1])]
    cluster, optimizer, _ = join(monkeypatch)
    (weight,) = optimizer.param_groups[0]["params"]
    with pytest.raises(tributary.Misuse, match="the batches of one step"), cluster:
        for batch in cluster.resume([1, 2], accumulate=2):
            cluster.samples = batch[1]
            weight.sum().backward()
            optimizer.step()
    cluster, optimizer, _ = join(monkeypatch)
    with pytest.raises(tributary.Misuse, match="knows the rows"), cluster:
        for _ in cluster.resume(own(cluster, rows_of(4), 2), accumulate=2):
            cluster.samples = 2


@pytest.mark.parametrize("left", [False, True])
def test_a_loop_that_is_left_within_a_step_begins_it_anew(
    monkeypatch: Any, left: bool
) -> None:
    cluster, optimizer, session = join(monkeypatch)
    loader = own(cluster, rows_of(4), 2)
    (weight,) = optimizer.param_groups[0]["params"]
    with cluster:
        for stop in (True, False) if left else (False,):
            for _, (x,) in cluster.resume(loader, accumulate=2, finish=not stop):
                ((weight * x).mean() / cluster.micro_batches).backward()
                optimizer.step()
                optimizer.zero_grad()
                if stop:
                    break
    assert [float(g[0]) for g in session.gradients] == [2.5]


@pytest.mark.parametrize("how", ["none", "zeros", "clip", "rest"])
@pytest.mark.parametrize("last", [False, True])
def test_the_gradients_of_earlier_batches_cannot_be_lost(
    monkeypatch: Any, how: str, last: bool
) -> None:
    """Also where the next batch has no gradient for the parameter."""
    monkeypatch.setattr(fake_native.Session, "world", 1)
    model = torch.nn.ModuleList([torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)])
    cluster, optimizer, _ = start(model)
    loader = own(cluster, rows_of(6), 2)

    def spoil() -> None:
        if how == "clip":
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        elif how == "rest":
            model[0].weight.grad = None
        else:
            model.zero_grad(set_to_none=how == "none")

    with pytest.raises(tributary.Misuse, match="gradient of .* was (remo|chan)"):
        for number, (_, (x,)) in enumerate(cluster.resume(loader, accumulate=3)):
            if number == (2 if last else 1):
                spoil()
            model[0 if number == 0 else 1](x).sum().backward()
            optimizer.step()
    cluster.fail("test")


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("create_graph", [False, True])
def test_autograd_may_add_up_gradients_in_its_own_way(
    sparse: bool, create_graph: bool
) -> None:
    model = torch.nn.Embedding(8, 1, sparse=sparse)
    cluster, optimizer, session = start(model)
    loader = own(cluster, torch.utils.data.TensorDataset(torch.arange(6)), 2)
    with cluster:
        for _, (x,) in cluster.resume(loader, accumulate=3):
            optimizer.zero_grad()
            (model(x).sum()).backward(create_graph=create_graph)
            optimizer.step()
    assert session.gradients[0].tolist() == [1.0] * 6 + [0.0] * 2


@pytest.mark.parametrize(("accumulate", "left"), [(1, 0), (3, 0), (3, 2)])
def test_buffers_do_not_see_rows_that_count_nothing(
    monkeypatch: Any, accumulate: int, left: int
) -> None:
    """5 rows in batches of 2 on each of 2 ranks: rank 1 has rows 2, 4 and then row 2
    once more, of weight 0. left: a loop before is left after so many batches."""

    class Counts(torch.nn.Linear):
        def __init__(self) -> None:
            super().__init__(1, 1)
            self.register_buffer("rows", torch.zeros(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.rows += len(x)
            return super().forward(x)

    monkeypatch.setenv("TRIBUTARY_RANK", "1")
    monkeypatch.setenv("TRIBUTARY_WORLD_SIZE", "2")
    monkeypatch.setattr(fake_native.Session, "world", 2)
    model = Counts()
    cluster, optimizer, session = start(model)
    loader = own(cluster, rows_of(5), 2)
    sent = session.names.index("rows") if session.names else 0
    counts = []
    with cluster:
        for number, (_, (x,)) in enumerate(
            cluster.resume(loader, accumulate=accumulate, finish=False)
            if left
            else ()
        ):
            loss = model(x).sum()
            if number + 1 == left:
                break
            loss.backward()
            optimizer.step()
        for _, (x,) in cluster.resume(loader, accumulate=accumulate):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
            if not cluster.accumulating:
                counts.append(float(session.gradients[sent][0]))
    assert counts == ([2.0, 2.0] if accumulate == 1 else [4.0] if left else [2.0])


def test_a_parameter_that_is_trained_later_weighs_as_well(monkeypatch: Any) -> None:
    """One without a hook when the loop began: rows 1, 2 and 3 in batches of two."""
    monkeypatch.setattr(fake_native.Session, "world", 1)
    layers = [torch.nn.Linear(1, 1, bias=False) for _ in range(2)]
    model = torch.nn.Sequential(*layers)
    torch.nn.init.ones_(layers[0].weight), torch.nn.init.ones_(layers[1].weight)
    cluster, optimizer, session = start(model, lr=0.0)
    layers[0].weight.requires_grad_(False)
    loader = own(cluster, rows_of(3), 2)
    for epoch, (x,) in cluster.resume(loader, epochs=2, accumulate=2):
        layers[0].weight.requires_grad_(epoch == 1)
        optimizer.zero_grad()
        (model(x[:, None]).mean() / cluster.micro_batches).backward()
        optimizer.step()
    assert [g.tolist() for g in session.gradients] == [[2.0], [2.0]]


def test_gradients_that_a_program_asks_for_are_not_weighed(monkeypatch: Any) -> None:
    cluster, optimizer, _ = join(monkeypatch)
    (weight,) = optimizer.param_groups[0]["params"]
    asked = []
    for _, (x,) in cluster.resume(own(cluster, rows_of(3), 2), accumulate=2):
        loss = (weight * x).mean()
        (gradient,) = torch.autograd.grad(loss, weight, retain_graph=True)
        asked.append(float(gradient))
        (loss / cluster.micro_batches).backward()
        optimizer.step()
    assert asked == [1.5, 3.0]


def test_hooks_and_the_loss_are_those_of_the_step(monkeypatch: Any) -> None:
    """Rows 1, 2 and 3 in batches of two; the loss is the mean over the rows."""
    cluster, optimizer, session = join(monkeypatch)
    (weight,) = optimizer.param_groups[0]["params"]
    hooks: list[str] = []
    optimizer.register_step_pre_hook(lambda *_: hooks.append("before"))
    optimizer.register_step_post_hook(lambda *_: hooks.append("after"))
    for _, (x,) in cluster.resume(
        own(cluster, rows_of(3), 2), epochs=2, accumulate=2
    ):
        cluster.log(x.mean())
        ((weight * x).mean() / cluster.micro_batches).backward()
        optimizer.step()
    assert hooks == ["before", "after"] * 2
    losses = [call[1]["loss"] for call in session.calls if call[0] == "finish"]
    assert losses == [2.0, 2.0]


def test_rows_that_fill_a_batch_stay_uncounted(monkeypatch: Any) -> None:
    cluster, optimizer, _ = join(monkeypatch, 1, 2)
    (weight,) = optimizer.param_groups[0]["params"]
    loader = own(cluster, rows_of(3), 1)
    with pytest.raises(tributary.Misuse, match="knows the rows of each step"):
        for _, (x,) in cluster.resume(loader):
            cluster.samples = len(x)
            (weight * x).mean().backward()
            optimizer.step()
    cluster.fail("test")


def test_the_rows_of_a_loop_do_not_outlive_it(monkeypatch: Any) -> None:
    cluster, optimizer, _ = join(monkeypatch, 1, 2)
    (weight,) = optimizer.param_groups[0]["params"]
    cluster.samples = 7
    for _, (x,) in cluster.resume(own(cluster, rows_of(3), 1), finish=False):
        optimizer.zero_grad()
        (weight * x).mean().backward()
        optimizer.step()
    assert cluster.samples == 7
    cluster.fail("test")


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
def test_only_forward_passes_of_rows_that_count_nothing_are_undone(
    monkeypatch: Any, persistent: bool, compiled: bool
) -> None:
    """Rank 1 has row 2 and then fills up a batch. The program writes a buffer, too.
    compiled: hooks are not called."""

    class Counts(torch.nn.Linear):
        def __init__(self) -> None:
            super().__init__(1, 1, bias=False)
            self.register_buffer("rows", torch.zeros(1), persistent=persistent)
            self.register_buffer("heat", torch.ones(1))

    def forward(model: Counts, x: torch.Tensor) -> torch.Tensor:
        model.rows += len(x)
        return x @ model.weight

    Counts.forward = forward  # type: ignore[method-assign, assignment]
    monkeypatch.setenv("TRIBUTARY_RANK", "1")
    monkeypatch.setenv("TRIBUTARY_WORLD_SIZE", "2")
    monkeypatch.setattr(fake_native.Session, "world", 2)
    model = Counts()
    call = (lambda x: forward(model, x)) if compiled else model
    cluster, optimizer, session = start(model)
    for _, (x,) in cluster.resume(
        own(cluster, rows_of(3), 1), accumulate=2, finish=False
    ):
        optimizer.zero_grad()
        call(x).sum().backward()
        model.heat *= 0.5
        optimizer.step()
    assert model.rows.tolist() == [1.0]
    if not compiled:
        assert model.heat.tolist() == [0.25]
    cluster.fail("test")
