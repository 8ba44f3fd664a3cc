# SPDX-License-Identifier: Apache-2.0
"""Keywords, names and the environment."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tributary import InvalidSetting, Misuse
from tributary._environment import Place, operator_folder
from tributary._names import to_yaml
from tributary._optimizers import KINDS, spec_of
from tributary._settings import settings_of


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (3, "3"),
        (3e-05, "3e-05"),
        ("bsp", "bsp"),
        ("true", '"true"'),
        ("0.weight", '"0.weight"'),
        ({"ssp": {"staleness": 2}}, "{ssp: {staleness: 2}}"),
        (["a", "3.b"], '[a, "3.b"]'),
    ],
)
def test_a_value_is_written_as_the_job_file_reads_it(value: object, text: str) -> None:
    assert to_yaml(value) == text


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object()])
def test_a_value_that_no_job_file_has_is_refused(value: object) -> None:
    with pytest.raises(InvalidSetting):
        to_yaml(value)


def test_keywords_become_fields_of_the_job() -> None:
    assert settings_of(
        {
            "sync": {"ssp": {"staleness": 3}},
            "checkpoint_every": 100,
            "clip_norm": 1.0,
            "wire": None,
            "settings": {"trace.last_step": 10},
        }
    ) == [
        "strategy.parameter_server.sync={ssp: {staleness: 3}}",
        "checkpoint.every_steps=100",
        "training.clip_norm=1.0",
        "trace.last_step=10",
    ]


def test_a_rank_of_a_program_cannot_be_taken_over() -> None:
    with pytest.raises(InvalidSetting, match='use "wait" or "fail"'):
        settings_of({"on_worker_loss": "shrink"})
    assert settings_of({"on_worker_loss": "fail"}) == ["cluster.on_worker_loss=fail"]


def test_an_unknown_keyword_names_the_nearest() -> None:
    with pytest.raises(InvalidSetting, match='did you mean "checkpoint_every"'):
        settings_of({"checkpoints_every": 5})
    with pytest.raises(InvalidSetting, match='did you mean "weight_decay"'):
        spec_of("adamw", {"weight_decy": 0.1})
    with pytest.raises(InvalidSetting, match='did you mean "rmsprop"'):
        spec_of("RMSprop", {})
    with pytest.raises(InvalidSetting, match="leave it out"):
        spec_of("sgd", {"lr": 0.1, "foreach": True})


def test_torchs_keywords_become_the_jobs_fields() -> None:
    adamw = spec_of("adamw", {"lr": 3e-4, "betas": (0.8, 0.95), "eps": 1e-6})
    assert adamw == {
        "adamw": {
            "learning_rate": 3e-4,
            "beta1": 0.8,
            "beta2": 0.95,
            "epsilon": 1e-6,
        }
    }
    assert spec_of("ftrl", {"lr": 0.5}) == {"ftrl": {"alpha": 0.5}}
    # The job file wants a rate above 0, also in float32.
    for rate in (0.0, 1e-46):
        assert np.float32(spec_of("sgd", {"lr": rate})["sgd"]["learning_rate"]) > 0
    # A group that asks for the default does not take the epsilon of the others.
    adafactor = spec_of("adafactor", {"eps": (None, 1e-2), "d": 2.0})
    assert adafactor == {
        "adafactor": {"epsilon1": 2**-23, "epsilon2": 1e-2, "clip_threshold": 2.0}
    }
    with pytest.raises(InvalidSetting, match="wants 2 numbers"):
        spec_of("adam", {"betas": 0.9})
    with pytest.raises(InvalidSetting, match="betas of adam wants numbers"):
        spec_of("adam", {"betas": (None, 0.9)})


def test_every_optimizer_has_a_rate_and_no_field_twice() -> None:
    for name, kind in KINDS.items():
        fields = [f for group in kind.fields_of().values() for f in group]
        assert kind.rate_field in fields, name
        assert len(fields) == len(set(fields)), name


def test_the_place_comes_from_the_launcher() -> None:
    torchrun = {"TRIBUTARY_COORDINATOR": "a:1", "RANK": "3", "WORLD_SIZE": "4"}
    assert Place.find(None, None, torchrun) == Place("a:1", 3, 4)
    ours = {**torchrun, "TRIBUTARY_RANK": "1", "TRIBUTARY_WORLD_SIZE": "2"}
    assert Place.find(None, None, ours) == Place("a:1", 1, 2)
    slurm = {"SLURM_PROCID": "5", "SLURM_NTASKS": "8"}
    assert Place.find("b:2", None, slurm) == Place("b:2", 5, 8)
    assert Place.find("b:2", 0, ours) == Place("b:2", 0, 2)
    assert not Place.find(None, None, ours).insecure_groups
    clear = {**ours, "TRIBUTARY_INSECURE_GROUPS": "1"}
    assert Place.find(None, None, clear).insecure_groups


def test_without_a_coordinator_the_message_says_how_to_start() -> None:
    with pytest.raises(Misuse, match="tributary run"):
        Place.find(None, 0, {})
    with pytest.raises(InvalidSetting, match="RANK wants a whole number"):
        Place.find("a:1", None, {"RANK": "-1"})


def test_the_operators_certificate_of_an_own_job_is_found(tmp_path: Path) -> None:
    jobs = tmp_path / "tributary/jobs"
    jobs.mkdir(parents=True)
    environment = {"XDG_STATE_HOME": str(tmp_path)}
    assert operator_folder("127.0.0.1:7", environment) == ""
    run = tmp_path / "run"
    text = json.dumps({"coordinator": "127.0.0.1:7", "run_directory": str(run)})
    (jobs / "a.json").write_text("no json")
    (jobs / "b.json").write_text("[]")
    (jobs / "c.json").write_text(text)
    assert operator_folder("127.0.0.1:7", environment) == "", "it has none"
    (run / "tls/operator").mkdir(parents=True)
    assert operator_folder("127.0.0.1:7", environment) == str(run / "tls/operator")
    assert operator_folder("127.0.0.1:8", environment) == ""
    relative = {"XDG_STATE_HOME": "state", "HOME": str(tmp_path)}
    assert operator_folder("127.0.0.1:7", relative) == ""
