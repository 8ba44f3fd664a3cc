# SPDX-License-Identifier: Apache-2.0
"""Sweeps the learning rate of a job file with Ray Tune: four trials, of which the
worse ones end early. Each trial has a server and two workers.

    python examples/ray/sweep.py [JOB.yaml [FOLDER]]

JOB trains with Adam and has a test set; default: digits.yaml. FOLDER gets the run
directories and Tune's records; default: runs/sweep.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

from ray import tune  # noqa: E402
from ray.tune.schedulers import ASHAScheduler  # noqa: E402

import tributary.ray  # noqa: E402

EXAMPLES = Path(__file__).resolve().parents[1]
JOB = Path(sys.argv[1] if len(sys.argv) > 1 else EXAMPLES / "digits.yaml").resolve()
FOLDER = Path(sys.argv[2] if len(sys.argv) > 2 else "runs/sweep").resolve()
# Half a core each, so that a trial fits on two cores.
SHAPE: dict[str, Any] = {
    "servers": 1,
    "workers": 2,
    "server_resources": {"CPU": 0.5},
    "worker_resources": {"CPU": 0.5},
}


def trial(config: dict[str, float]) -> None:
    """Reports every evaluation to Tune."""
    tributary.ray.train(
        JOB,
        **SHAPE,
        run_dir=FOLDER / "runs" / tune.get_context().get_trial_id(),
        overrides={
            "training.optimizer.adam.learning_rate": config["learning_rate"],
        },
    )


def main() -> None:
    tuner = tune.Tuner(
        tune.with_resources(trial, tributary.ray.trial_resources(**SHAPE)),
        param_space={"learning_rate": tune.grid_search([3e-3, 1e-3, 3e-2, 1e-5])},
        tune_config=tune.TuneConfig(
            metric="test_accuracy",
            mode="max",
            # Compared at the 4th, 8th and 16th evaluation.
            scheduler=ASHAScheduler(grace_period=4, reduction_factor=2, max_t=1000),
        ),
        run_config=tune.RunConfig(name="tune", storage_path=str(FOLDER), verbose=1),
    )
    results = tuner.fit()
    for result in results:
        rate = result.config["learning_rate"]
        epoch, accuracy = result.metrics["epoch"], result.metrics["test_accuracy"]
        print(f"learning rate {rate:g}: accuracy {accuracy:.4f} after epoch {epoch}")
    best = results.get_best_result()
    print(f"best: learning rate {best.config['learning_rate']:g}")
    print(f"run directory: {FOLDER / 'runs' / best.metrics['trial_id']}")


if __name__ == "__main__":
    main()
