# SPDX-License-Identifier: Apache-2.0
"""Starts a job's coordinator here and its members on the cluster, and follows it."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import ray
from ray.util.metrics import Gauge

from tributary._errors import InvalidSetting
from tributary.ray._interrupts import Interrupts
from tributary.ray._members import Members, Resources, at_port_0
from tributary.ray._process import Coordinator, failure, make_keys
from tributary.ray._result import (
    Result,
    StepRecords,
    parse_evaluation,
    read_result,
)

_LOOK_SECONDS = 0.2
_STOP_SECONDS = 30.0
_LEAVE_SECONDS = 5.0

Report = Callable[[dict[str, float]], None]


def train(
    job: str | os.PathLike[str],
    *,
    servers: int = 1,
    workers: int = 1,
    overrides: Mapping[str, Any] | None = None,
    run_dir: str | os.PathLike[str] | None = None,
    server_resources: Resources | None = None,
    worker_resources: Resources | None = None,
    strategy: str = "PACK",
    max_restarts: int = 10,
    start_timeout: float = 600.0,
    insecure_groups: bool = False,
    checkpoint_key: str | os.PathLike[str] | None = None,
    report: Report | None = None,
) -> Result:
    """Trains the job file `job` with actors for its servers and workers.

    overrides: keys of the job file and their values, {"training.epochs": 3}.
    run_dir: for the run's files; default: runs/NAME-TIME, within a trial of Ray
        Tune the trial's folder. If a run there ended because its driver died,
        continues it.
    server_resources, worker_resources: of each; default {"CPU": 1}.
    strategy: of the placement group: PACK, SPREAD, STRICT_PACK, STRICT_SPREAD.
    max_restarts: how often Ray starts each lost server or worker again.
    start_timeout: seconds to wait for the resources and for the actors.
    insecure_groups: workers that form groups may exchange in clear text, which a
        job with all_reduce, tensor or pipeline parallelism needs.
    checkpoint_key: a file with a secret for keyed checksums of the checkpoints.
    report: gets every evaluation, {"epoch": 1, "test_accuracy": 0.8, ...}; default:
        ray.tune.report within a trial.

    Initializes Ray if that has not been done. Timeout: the cluster does not have the
    resources. Unavailable: a member is lost too often. Error: the job has failed;
    the message says why. Ctrl-C, and ray.cancel of a task that calls this, stop at
    the next step, with a checkpoint in the run directory.
    """
    job = Path(job).absolute()
    if not job.is_file():
        raise InvalidSetting(f"there is no job file {job}")
    if not ray.is_initialized():
        ray.init()
    in_trial = _trial_folder() is not None
    if report is None:
        report = _report_to_tune if in_trial else lambda _: None
    folder = Path(run_dir) if run_dir is not None else _default_folder(job)
    own = [server_resources or {"CPU": 1.0}] * servers
    group, offset = _group_of_trial(servers + workers) if in_trial else (None, 0)
    members = Members(
        own,
        [worker_resources or {"CPU": 1.0}] * workers,
        strategy=strategy,
        group=group,
        offset=offset,
        max_restarts=max_restarts,
        insecure_groups=insecure_groups,
    )
    words = ["--job", str(job), "--run-dir", str(folder.absolute())]
    words += ["--servers", str(servers), "--workers", str(workers)]
    words += ["--start-timeout", str(start_timeout)]
    for key, value in (overrides or {}).items():
        words += ["--set", f"{key}={_yaml(value)}"]
    if checkpoint_key is not None:
        words += ["--checkpoint-key", str(Path(checkpoint_key).absolute())]
    with Interrupts() as interrupts, members:
        members.place(start_timeout)
        host = at_port_0(ray.util.get_node_ip_address()).removesuffix(":0")
        keys = make_keys(["coordinator", "server", "worker"])
        coordinator = Coordinator(words, host, keys["coordinator"])
        try:
            members.start(coordinator.address, keys)
            _follow(coordinator, members, folder, report, interrupts)
        finally:
            if coordinator.exit_code() is None:
                coordinator.stop(_STOP_SECONDS)
            _let_leave(members)
    code = coordinator.exit_code() or 0
    result = read_result(folder)
    if code != 0 or result is None:
        raise failure(code, coordinator.error())
    return result


def trial_resources(
    *,
    servers: int = 1,
    workers: int = 1,
    server_resources: Resources | None = None,
    worker_resources: Resources | None = None,
    strategy: str = "PACK",
) -> Any:
    """Resources of a trial of Ray Tune that calls `train` with the same arguments,
    for ray.tune.with_resources. The coordinator takes no core of its own."""
    from ray.tune import PlacementGroupFactory

    own = [server_resources or {"CPU": 1.0}] * servers
    return PlacementGroupFactory(
        [{"CPU": 0.0}, *own, *([worker_resources or {"CPU": 1.0}] * workers)],
        strategy=strategy,
    )


def _follow(
    coordinator: Coordinator,
    members: Members,
    folder: Path,
    report: Report,
    interrupts: Interrupts,
) -> None:
    """Returns when the coordinator has ended."""
    gauges = _Gauges(folder.name)
    records = StepRecords(folder)
    ended = False
    while not ended:
        interrupts.check()
        ended = coordinator.exit_code() is not None
        for line in coordinator.lines():
            if evaluation := parse_evaluation(line):
                report(evaluation)
        for record in records.new():
            gauges.set(record)
        if not ended and members.any_running():
            members.check(_LOOK_SECONDS)
        elif not ended:
            time.sleep(_LOOK_SECONDS)


def _let_leave(members: Members) -> None:
    """Members learn from their next heartbeat that the job is over, and end well."""
    deadline = time.monotonic() + _LEAVE_SECONDS
    try:
        while members.any_running() and time.monotonic() < deadline:
            members.check(_LOOK_SECONDS)
    except Exception:  # noqa: BLE001, S110 - the job is over; they are killed next
        pass


class _Gauges:
    """The newest step as metrics of Ray, beside those that Ray itself exports."""

    def __init__(self, run: str) -> None:
        self._gauges = {
            key: Gauge(f"tributary_{key}", text, tag_keys=("run",))
            for key, text in (
                ("step", "Steps that all workers have finished"),
                ("loss", "Mean loss of the newest step's samples"),
                ("samples_per_second", "Samples per second of all workers"),
            )
        }
        for gauge in self._gauges.values():
            gauge.set_default_tags({"run": run})

    def set(self, record: dict[str, Any]) -> None:
        for key, gauge in self._gauges.items():
            if record.get(key) is not None:
                gauge.set(float(record[key]))


def _trial_folder() -> Path | None:
    """The folder of the trial of Ray Tune that this is part of; None: of none."""
    tune = sys.modules.get("ray.tune")  # a trial has imported it
    if tune is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # says that there is no trial
        folder = tune.get_context().get_trial_dir()
    return None if folder is None else Path(folder)


def _report_to_tune(evaluation: dict[str, float]) -> None:
    from ray import tune

    tune.report(evaluation)


def _group_of_trial(num_members: int) -> tuple[Any, int]:
    """The trial's placement group and the first bundle of a member. InvalidSetting:
    it has no bundles for members."""
    group = ray.util.get_current_placement_group()
    bundles = 0 if group is None else group.bundle_count
    # Ray Tune leaves out an empty first bundle.
    if bundles not in (num_members, num_members + 1):
        raise InvalidSetting(
            f"the trial has a placement group of {bundles} bundles, and servers and "
            f"workers want {num_members}: give it tributary.ray.trial_resources(...) "
            "by ray.tune.with_resources"
        )
    return group, bundles - num_members


def _default_folder(job: Path) -> Path:
    trial = _trial_folder()
    if trial is not None:
        return trial / "run"
    return Path("runs") / f"{job.stem}-{time.strftime('%Y%m%d-%H%M%S')}"


def _yaml(value: Any) -> str:
    """A value as --set reads it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
