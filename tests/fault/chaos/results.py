# SPDX-License-Identifier: Apache-2.0
"""What a run has left behind, and runs without faults to compare it with."""

import collections
import json
import os
import tempfile

Result = collections.namedtuple("Result", "sha256 start loss best evaluations")


def summary(run_dir):
    """The content of summary.json; empty without the file."""
    try:
        with open(os.path.join(run_dir, "summary.json"), encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return {}


def metrics(run_dir):
    """The lines of metrics.jsonl."""
    with open(os.path.join(run_dir, "metrics.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def result_of(run_dir):
    found = summary(run_dir)
    return Result(
        found["weights_sha256"],
        found["start_step"],
        (found.get("test") or {}).get("loss"),
        found.get("best"),
        [evaluation["step"] for evaluation in found["evaluations"]],
    )


class References:
    """Results of undisturbed runs; one run for all trials that share it."""

    def __init__(self, make_run, work):
        self.make_run, self.work, self.known = make_run, work, {}

    def of(self, trial):
        kind = trial.strategy.bits if trial.way != "program" else "program"
        key = (kind, trial.epochs, trial.optimizer, trial.evaluate)
        if key not in self.known:
            self.known[key] = self.train(trial.undisturbed(), [], None)
        return self.known[key]

    def after_change(self, run):
        """Of a run that has begun where other numbers of members began."""
        return self.train(run.trial.undisturbed(), run.changes, run.changed_from)

    def train(self, trial, changes, begins_from):
        run = self.make_run(trial, tempfile.mkdtemp(dir=self.work))
        run.changes = changes
        if problem := run.execute(None, begins_from):
            raise RuntimeError(f"the undisturbed run failed: {problem} ({run.folder})")
        result = result_of(run.attempt.run_dir)
        if result.best and "weights_sha256" not in result.best:
            # Its folder stays, because the cause is not known.
            raise RuntimeError(
                f"the undisturbed run kept no weights of its best evaluation: "
                f"{run.last_words()} ({run.folder})"
            )
        run.remove()
        return result
