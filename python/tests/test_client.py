# SPDX-License-Identifier: Apache-2.0
"""Client: numpy arrays and arrays of other libraries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fake_native import Next, Session

import tributary


def last() -> Session:
    assert Session.last is not None
    return Session.last


def test_importing_the_package_does_not_import_torch() -> None:
    program = (
        "import sys; sys.path[:0] = sys.argv[1:]; import fake_native\n"
        "sys.modules['tributary._native'] = fake_native\n"
        "import tributary; assert 'torch' not in sys.modules"
    )
    here = Path(__file__).parent
    command = [sys.executable, "-c", program, str(here), str(here.parent)]
    subprocess.run(command, check=True)


def test_a_step_applies_the_pushed_gradients() -> None:
    client = tributary.connect()
    weights = client.declare({"w": np.ones((2, 2)), "b": np.zeros(2)}, lr=0.5)
    client.push({"w": np.full((2, 2), 2.0)}, samples=3)
    assert client.pull(loss=1.5) is weights
    # w = 1 - 0.5 * 2; b has no gradient.
    np.testing.assert_array_equal(weights["w"], np.zeros((2, 2), np.float32))
    np.testing.assert_array_equal(weights["b"], np.zeros(2, np.float32))
    assert last().begun == [(3, [0.5])]
    assert last().sent() == ["b", "w"]  # the last layers first
    assert client.steps == 1
    client.finish()


def test_a_weight_that_is_written_between_push_and_pull() -> None:
    client = tributary.connect()
    weights = client.declare({"w": np.ones(2), "b": np.zeros(2)}, lr=0.5)
    client.step({"w": np.ones(2)})
    client.push({"w": np.ones(2)})
    weights["b"][1] = 7
    with pytest.raises(tributary.Misuse, match="has written into b since push"), client:
        client.pull()


def test_arrays_that_support_dlpack_are_taken() -> None:
    client = tributary.connect()
    weights = client.declare({"w": torch.ones(3)}, lr=1.0)
    client.step({"w": torch.full((3,), 0.25, dtype=torch.float64)})
    np.testing.assert_array_equal(weights["w"], np.full(3, 0.75, np.float32))
    client.finish()


def test_the_declared_arrays_do_not_change() -> None:
    mine = np.ones(2, np.float32)
    client = tributary.connect()
    client.declare({"w": mine}, lr=1.0)
    client.step({"w": np.ones(2)})
    assert mine.tolist() == [1, 1]
    client.finish()


def test_settings_reach_the_job() -> None:
    client = tributary.connect(rank=2, sync="async")
    client.declare({"w": np.ones(1)}, "adam", betas=(0.5, 0.9))
    assert last().options["rank"] == 2
    assert last().options["settings"] == [
        "strategy.parameter_server.sync=async",
        "training.optimizer={adam: {beta1: 0.5, beta2: 0.9, learning_rate: 0.001}}",
    ]
    client.finish()


@pytest.mark.parametrize(
    ("misuse", "message"),
    [
        (lambda c: c.push({"v": np.ones(1)}), '"v" is not declared'),
        (lambda c: c.push({"w": np.ones(3)}), r"has shape \[3\], wanted \[2\]"),
        (lambda c: c.pull(), "call push first"),
        (lambda c: (c.push({}), c.push({})), "call pull after each push"),
        (lambda c: c.declare({"w": np.ones(1)}, lr=1.0), "already joined"),
        (lambda c: c.push({}, samples=-1), "samples must be at least 0"),
        (lambda c: c.push({}, samples=1.5), "samples must be a whole number"),
        (lambda c: c.push({}, lr=float("nan")), "lr must be finite"),
        (lambda c: c.push({"w": np.array(["1", "2"])}), "w wants numbers"),
        (lambda c: c.push({"w": np.array([True, False])}), "numbers, got bool"),
    ],
)
def test_a_wrong_call_says_what_to_do(misuse: Any, message: str) -> None:
    client = tributary.connect()
    client.declare({"w": np.ones(2)}, lr=1.0)
    with pytest.raises(tributary.Misuse, match=message):
        misuse(client)
    client.fail("test")


def test_before_declare_there_is_no_job() -> None:
    with pytest.raises(tributary.Misuse, match="not joined"):
        tributary.connect().push({})
    with pytest.raises(tributary.InvalidSetting, match="learning rate"):
        tributary.connect().declare({"w": np.ones(1)}, "sgd")
    with pytest.raises(tributary.Misuse, match="no parameters"):
        tributary.connect().declare({}, lr=1.0)


def test_after_the_end_of_the_job_push_raises_stopped() -> None:
    client = tributary.connect()
    client.declare({"w": np.ones(1)}, lr=1.0)
    last().after = lambda session: Next.END
    client.step({"w": np.ones(1)})  # the last step counts
    with pytest.raises(tributary.Stopped):
        client.push({"w": np.ones(1)})
    client.finish()


def test_a_roll_back_shows_in_moved() -> None:
    client = tributary.connect()
    weights = client.declare({"w": np.ones(1)}, lr=1.0)

    def back(session: Session) -> Next:
        session.steps = 0
        session.weights[0][:] = 7
        return Next.MOVED

    last().after = back
    client.step({"w": np.ones(1)})
    assert client.moved and client.steps == 0 and weights["w"][0] == 7
    client.finish()


def test_the_block_ends_the_job_well_or_fails_it() -> None:
    with tributary.connect() as client:
        client.declare({"w": np.ones(1)}, lr=1.0)
    assert last().finished == 1 and last().failed is None
    with pytest.raises(ZeroDivisionError):
        with tributary.connect() as client:
            client.declare({"w": np.ones(1)}, lr=1.0)
            1 / 0  # noqa: B018
    assert last().failed == "rank 0: ZeroDivisionError: division by zero"
    assert last().finished == 0


def test_the_block_ends_at_stopped() -> None:
    with tributary.connect() as client:
        client.declare({"w": np.ones(1)}, lr=1.0)
        last().after = lambda session: Next.END
        while True:
            client.step({"w": np.ones(1)})
    assert last().finished == 1 and client.steps == 1


def test_a_roll_back_after_the_loop_asks_for_a_restart() -> None:
    with pytest.raises(tributary.Error, match="run the program again"):
        with tributary.connect() as client:
            client.declare({"w": np.ones(1)}, lr=1.0)
            last().finishes = [lambda session: Next.MOVED]
    client.fail("test")


def test_a_closed_connection_says_so() -> None:
    client = tributary.connect(rank=1)
    client.declare({"w": np.ones(1)}, lr=1.0)
    client.finish()
    with pytest.raises(tributary.WrongState, match="closed"):
        client.push({})
    assert client.rank == 1 and client.world_size == 1


def test_a_step_has_its_own_rate_and_reports_its_loss() -> None:
    client = tributary.connect()
    client.declare({"w": np.ones(1)}, lr=0.5, total_steps=9, steps_per_epoch=3)
    client.step({}, lr=0.25, loss=1.5)
    assert last().begun == [(1, [0.25])]
    assert last().calls[-1][1]["loss"] == 1.5
    wanted = {"total_steps": 9, "steps_per_epoch": 3, "data_checksum": 0}
    assert last().totals == wanted
    client.finish()


def test_a_step_that_begins_elsewhere_sends_nothing() -> None:
    client = tributary.connect()
    weights = client.declare({"w": np.ones(1)}, lr=1.0)
    last().begins = {0: Next.MOVED}
    assert client.step({"w": np.ones(1)}) is weights
    assert client.moved and last().sent() == []
    last().begins = {0: Next.END}
    for _ in range(2):
        with pytest.raises(tributary.Stopped):
            client.push({"w": np.ones(1)})
    assert len(last().begun) == 2  # the job is not asked again
    client.finish()


def test_an_evaluation_may_have_several_values_a_sample() -> None:
    client = tributary.connect()
    client.declare({"w": np.ones(1)}, lr=1.0)
    client.evaluated(loss_sum=1, samples=2, values=6)
    wanted = {"samples": 2, "loss_sum": 1.0, "correct": 0, "values": 6}
    assert last().calls[-1] == ("evaluation", wanted)
    client.finish()


@pytest.mark.parametrize(("code", "ends_well"), [(None, True), (0, True), (3, False)])
def test_leaving_the_block_by_sys_exit(code: int | None, ends_well: bool) -> None:
    with pytest.raises(SystemExit):
        with tributary.connect() as client:
            client.declare({"w": np.ones(1)}, lr=1.0)
            sys.exit(code)
    assert last().finished == int(ends_well)
    assert last().failed == (None if ends_well else "rank 0: SystemExit: 3")


def test_the_place_is_known_after_the_end(monkeypatch: Any) -> None:
    monkeypatch.delenv("TRIBUTARY_RANK")
    monkeypatch.delenv("TRIBUTARY_WORLD_SIZE")
    monkeypatch.setattr(Session, "world", 3)
    client = tributary.connect()
    with pytest.raises(tributary.Misuse, match="rank is not known"):
        _ = client.rank
    client.declare({"w": np.ones(1)}, lr=1.0)
    client.finish()
    assert (client.rank, client.world_size) == (0, 3)


def test_a_refused_declaration_gives_the_place_back(monkeypatch: Any) -> None:
    monkeypatch.setattr(Session, "start_error", tributary.ModelMismatch("differs"))
    client = tributary.connect()
    with pytest.raises(tributary.ModelMismatch):
        client.declare({"w": np.ones(1)}, lr=1.0)
    with pytest.raises(tributary.WrongState, match="closed"):
        client.push({})
