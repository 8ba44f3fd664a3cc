# SPDX-License-Identifier: Apache-2.0
"""What chaos prints: a line for each trial, and at the end the counts by kind."""

import collections
import os


class Report:
    def __init__(self, again):
        self.again = again  # the command that repeats a seed
        self.trials = 0
        self.drawn, self.fired = collections.Counter(), collections.Counter()
        self.of, self.failed_of = collections.Counter(), collections.Counter()
        self.failed = {}  # seed: the kinds of the trial
        self.left_out = collections.Counter()

    def skip(self, trial, why):
        self.left_out[why] += 1
        print(f"seed {trial.seed}: left out, {why}", flush=True)

    def add(self, run, problem, seconds):
        trial = run.trial
        self.trials += 1
        for fault in trial.faults:
            self.drawn[fault.kind] += 1
            self.fired[fault.kind] += fault.fired
        kinds = self.kinds(trial)
        self.of.update(kinds)
        fired = sum(fault.fired for fault in trial.faults)
        print(
            f"seed {trial.seed}: {'ok' if problem is None else 'FAILED'} in "
            f"{seconds:.1f} s: {trial}; fired {fired}",
            flush=True,
        )
        if problem is None:
            return
        self.failed[trial.seed] = problem
        self.failed_of.update(kinds)
        print(f"  {problem}\n  files: {run.folder}", flush=True)
        print(f"  again: {self.again(trial.seed)}", flush=True)

    def kinds(self, trial):
        """What a failure is counted under: strategy, way, and each kind of fault."""
        kinds = {trial.name, trial.way, *(fault.kind for fault in trial.faults)}
        return kinds | ({"long"} if trial.long else set())

    def finish(self, work):
        """Prints the counts. Returns the exit code."""
        fired = ", ".join(f"{k} {self.fired[k]}/{n}" for k, n in in_order(self.drawn))
        of = ", ".join(f"{k} {self.failed_of[k]}/{n}" for k, n in in_order(self.of))
        print(f"faults, fired of drawn: {fired}")
        print(f"failed of trials: {of}")
        for why, number in in_order(self.left_out):
            print(f"left out {number}: {why}")
        for seed, problem in self.failed.items():
            print(f"failed: {self.again(seed)}  # {problem.splitlines()[0][:200]}")
        total = sum(self.fired.values())
        print(f"{self.trials} trials, {total} faults fired, {len(self.failed)} failed")
        try:
            os.rmdir(work)
        except OSError:
            pass  # files of failures are kept
        return 1 if self.failed or total == 0 else 0


def in_order(counter):
    return sorted(counter.items())
