# SPDX-License-Identifier: Apache-2.0
"""Trains Fashion-MNIST for ray.sh on a new Ray cluster of this machine. Prints the
result as JSON.

    ray_run.py plain|actors|node|cancelled|refused RUN_DIR EPOCHS

actors: kills the process of a worker's actor, then of a server's.
cancelled: trains within a task of Ray, which ray.cancel ends.
node: of two nodes, kills the second with its daemon and its actors.
refused: wants more cores than there are.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import signal
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import ray
from ray.cluster_utils import Cluster

import tributary.ray

ROOT = Path(__file__).resolve().parents[2]
MODE, RUN_DIR, EPOCHS = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
DEADLINE_SECONDS = 120


def step() -> int:
    try:
        lines = (RUN_DIR / "metrics.jsonl").read_text().splitlines()
        return int(json.loads(lines[-1])["step"])
    except (OSError, IndexError, json.JSONDecodeError):
        return 0


def wait_for(step_wanted: int) -> None:
    end = time.monotonic() + DEADLINE_SECONDS
    while step() < step_wanted:
        if time.monotonic() > end:
            sys.exit(f"the job is at step {step()}, wanted {step_wanted}")
        time.sleep(0.1)


def actor_of(role: str, index: int) -> int:
    """The process of the actor that has started this member of this run. Other runs
    on this machine are left alone."""
    log = (RUN_DIR / "logs/coordinator.log").read_text()
    daemons = re.findall(rf"{role} {index} is .*\(pid (\d+)\)", log)
    status = Path(f"/proc/{daemons[-1]}/status").read_text()
    parent = int(re.findall(r"PPid:\s+(\d+)", status)[0])
    assert Path(f"/proc/{parent}/cmdline").read_bytes().startswith(b"ray::Member")
    return parent


def kill_actors() -> None:
    wait_for(1000)
    print("metrics:", *exported(), flush=True)
    os.kill(actor_of("worker", 1), signal.SIGKILL)
    wait_for(step() + 500)
    os.kill(actor_of("server", 0), signal.SIGKILL)
    wait_for(step() + 500)


def exported() -> list[str]:
    """Our lines of the metrics page that Ray's node exports for Prometheus."""
    port = ray.nodes()[0]["MetricsExportPort"]
    end = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < end:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as page:
            lines = page.read().decode().splitlines()
        ours = [line for line in lines if line.startswith("ray_tributary_")]
        if len(ours) == 3:
            return [line.split("{")[0] for line in ours]
        time.sleep(0.5)
    return []


def start_cluster() -> Callable[[], None] | None:
    """Returns the function that disturbs the run; None: nothing does."""
    if MODE == "node":
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 4})
        second = cluster.add_node(num_cpus=4)
        ray.init(address=cluster.address)

        def kill_node() -> None:
            wait_for(1000)
            cluster.remove_node(second, allow_graceful=False)

        atexit.register(cluster.shutdown)
        return kill_node
    ray.init(address="local", num_cpus=4, include_dashboard=False)
    return kill_actors if MODE == "actors" else None


def main() -> None:
    # A shell's background processes ignore Ctrl-C, which the test sends.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    disturb = start_cluster()
    if MODE == "cancelled":
        cancel_task()
        return
    if disturb is not None:
        threading.Thread(target=disturb, daemon=True).start()
    result = train()
    print(json.dumps({**result.summary, "lost": result.lost}))


def train() -> tributary.ray.Result:
    return tributary.ray.train(
        ROOT / "examples/fashion-mnist.yaml",
        servers=2,
        workers=20 if MODE == "refused" else 2,
        run_dir=RUN_DIR,
        strategy="SPREAD",
        start_timeout=5 if MODE == "refused" else 60,
        overrides={
            "training.epochs": EPOCHS,
            "checkpoint.every_steps": 250,
            "cluster.lease_seconds": 3,
        },
    )


def cancel_task() -> None:
    task = ray.remote(num_cpus=0)(train).remote()
    wait_for(1000)
    ray.cancel(task)
    try:
        ray.get(task)
    except ray.exceptions.TaskCancelledError:
        print("the task was cancelled")


if __name__ == "__main__":
    main()
