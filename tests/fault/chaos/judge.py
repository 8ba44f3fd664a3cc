# SPDX-License-Identifier: Apache-2.0
"""Whether a run has ended as if nothing had happened."""

import collections
import os
import re
import time

import jobs
import promises
import results

# For runs with different numbers of workers, whose sums round differently.
LOSS_TOLERANCE = 0.05


def what_is_wrong(run, references):
    """None, or the first difference. Without references only the end is checked."""
    result = results.summary(run.attempt.run_dir)
    if result.get("status") != "done":
        return f"status {result.get('status')}: {result.get('message')}"
    checks = [wrong_steps, wrong_samples, wrong_sentences, wrong_answers, leftovers]
    if references is not None and run.trial.strategy.bits:
        checks.insert(0, lambda run: wrong_result(run, references))
    for check in checks:
        if problem := check(run):
            return problem
    return None


def wrong_result(run, references):
    """Compares weights and evaluations with those of an undisturbed run."""
    own, wanted = results.result_of(run.attempt.run_dir), references.of(run.trial)
    changed = run.workers != run.trial.strategy.workers
    if wanted.loss is not None and own.loss is None:
        # A program evaluates by itself, but not once it is resumed after its last step.
        if run.trial.way != "program" or own.start < run.trial.steps:
            return f"no evaluation on the test set; wanted {wanted.loss}"
    elif changed and abs(own.loss - wanted.loss) > LOSS_TOLERANCE * wanted.loss:
        return f"test loss {own.loss}, with {run.workers} workers; wanted {wanted.loss}"
    sha256 = references.after_change(run).sha256 if changed else wanted.sha256
    if own.sha256 != sha256:
        return f"weights {own.sha256}, undisturbed {sha256}"
    if not run.trial.evaluate:
        return None
    again = [s for s, n in collections.Counter(own.evaluations).items() if n > 1]
    due = {step for step in wanted.evaluations if step > own.start}
    missing = sorted(due - set(own.evaluations))
    if again or missing:
        return f"evaluations of steps {again[:3]} again, of {missing[:3]} missing"
    best = dict(wanted.best or {})
    if run.trial.small_disk and "weights_sha256" not in (own.best or {}):
        best.pop("weights_sha256", None)  # there was no room for them
    if not changed and (own.best or {}) != best:
        return f"best {own.best}, undisturbed {wanted.best}"
    return None


def wrong_steps(run):
    """Every step is recorded once."""
    first = results.summary(run.attempt.run_dir)["start_step"] + 1
    steps = [line["step"] for line in results.metrics(run.attempt.run_dir)]
    if steps == list(range(first, run.trial.steps + 1)):
        return None
    gaps = [(a, b) for a, b in zip(steps, steps[1:], strict=False) if b != a + 1]
    return f"{len(steps)} steps from {steps[:1]} to {steps[-1:]}, gaps {gaps[:3]}"


def wrong_samples(run):
    """Every step has trained the samples of its place in the epoch."""
    result = results.summary(run.attempt.run_dir)
    # Reports that a lost rank had not yet sent are missing, and so are those of ranks
    # that the others leave behind.
    reported = {f.kind for f in run.fired_now()} <= {
        "pause",
        "take checkpoint",
        "SIGTERM",
        "SIGINT",
    }
    if result["lost"]["workers"] or not reported or not run.trial.strategy.bits:
        return None
    batch = jobs.BATCH * jobs.ACCUMULATE * jobs.replicas(run.trial.strategy)
    last = jobs.ROWS - batch * ((jobs.ROWS - 1) // batch)
    for line in results.metrics(run.attempt.run_dir):
        ends = line["step"] % jobs.steps_per_epoch(jobs.replicas(run.trial.strategy))
        wanted = batch if ends else last
        if line["samples"] != wanted:
            return f"step {line['step']}: {line['samples']} samples, wanted {wanted}"
    return None


def wrong_sentences(run):
    return promises.broken_in_last(run)


def wrong_answers(run):
    """What came of requests for a checkpoint: its folder, or a sentence why not."""
    for number, process in enumerate(run.asked, 1):
        code = process.wait(60)
        path = os.path.join(run.folder, f"asked-{number}")
        with open(path, encoding="utf-8") as file:
            said = file.read().splitlines()[-1]
        wanted = {0: r"checkpoint of step \d+: /.+", 1: "tributary: .+", 2: "tributary: .+"}
        if not re.fullmatch(wanted.get(code, "never"), said):
            return f"the request {number} for a checkpoint: exit code {code}, {said}"
    return None


def leftovers(run):
    """Processes and half-written files."""
    until = time.monotonic() + 15
    while run.marked.pids() and time.monotonic() < until:
        time.sleep(0.05)
    if run.marked.pids():
        return f"processes are left: {run.marked.pids()}"
    for folder, _, names in os.walk(run.attempt.run_dir):
        for name in names:
            if ".partial-" in name:
                return f"a half-written file is left: {folder}/{name}"
        is_checkpoint = os.path.basename(folder).startswith("step-")
        if is_checkpoint and not run.killed_all and "manifest.ckpt" not in names:
            return f"a checkpoint without a manifest is left: {folder}"
    return None
