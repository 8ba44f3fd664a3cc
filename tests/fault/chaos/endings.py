# SPDX-License-Identifier: Apache-2.0
"""What follows the end of an attempt: what a supervisor, Slurm or a user would do,
or nothing, if no fault explains its exit code."""

import os
import shlex
import shutil
import signal
import time

import causes
import checkpoints
import promises
from faults import STOPPING

KILLED = -signal.SIGKILL
MEMBER_SECONDS = 60  # a coordinator counts as lost after half of them
# Exit codes that each kind explains (docs/commands.md). A batch script of Slurm
# passes on the exit code of its child, as shells do.
KILLED_CHILD = 128 + signal.SIGKILL
CODES = {
    "kill coordinator": {KILLED},
    "kill everything": {KILLED},
    "damage": {KILLED},
    "node failure": {KILLED},
    "zeros in the log": {KILLED},
    "failpoint": {KILLED, KILLED_CHILD},
    "SIGTERM twice": {143},
    **{name: {128 + getattr(signal, name)} for name in STOPPING},
    "preempted": {143},
    "time is up": {143},
    "cancelled": {143},
    "other servers": {KILLED, 143},
    "other workers": {KILLED, 143},
}
# SIGINT or SIGTERM this many seconds after the first signal ends everything at once.
IMPATIENT_SECONDS = 1.0
NOW = 130
LOSES_MEMBERS = ("kill", "kill several", "long pause", "failpoint", "damage alive")


def explained_codes(run):
    """The exit codes that the faults of this attempt explain."""
    fired = run.fired_now()
    codes = set().union(*(CODES.get(fault.kind, set()) for fault in fired))
    if is_impatient(run.attempt.signals) or is_stop_of_another(run):
        codes.add(NOW)
    if run.trial.on_loss == "fail" and any(f.kind in LOSES_MEMBERS for f in fired):
        codes.add(1)
    if run.attempt.is_refused_for:
        codes.add(2)
    return codes


def is_impatient(signals):
    """Whether a later signal may have ended the run at once; .4 s are for delays."""
    return any(
        name in ("SIGINT", "SIGTERM") and at - signals[0][1] >= IMPATIENT_SECONDS - 0.4
        for name, at in signals[1:]
    )


def is_stop_of_another(run):
    """Whether a coordinator may have finished the stop that a signal to an earlier one
    had begun. It does not know the signal."""
    stops = any(name != "SIGKILL" for name, _ in run.attempt.signals)
    return stops and run.attempt.is_taken_over


def wait_for_members(run):
    """Waits for daemons, which are no longer restarted. None, or what is wrong."""
    if not run.way.takes_over():
        return None
    until = time.monotonic() + MEMBER_SECONDS
    for _, process in run.way.members:
        while process.poll() is None:
            if time.monotonic() > until:
                return f"this does not end: {shlex.join(process.args)}"
            run.do_what_is_due()  # such as the end of a pause
            time.sleep(0.005)
    return None


def go_on(run, code):
    """Starts what follows. Returns None, or what is wrong with this end."""
    causes.continue_stopped(run)
    if code not in explained_codes(run):
        return f"exit code {code}: {run.last_words()}"
    if problem := promises.broken_at_end(run, code):
        return problem
    run.killed_all |= code == KILLED_CHILD
    damage_files(run)
    if code == KILLED and run.way.takes_over() and not run.next_numbers:
        run.attempt.is_taken_over = True
        run.way.take_over()
        return None
    if code == KILLED:
        run.killed_all = True
        run.way.kill()  # also what was started again meanwhile
    if problem := wait_for_members(run):
        return problem
    if run.trial.way == "slurm" and run.way.requeues():
        newest = run.newest_checkpoint()
        run.begin_attempt()
        run.attempt.passes_over = causes.damage_in(run, newest)
        run.way.begin()
        return None
    resume(run, code)
    return None


def damage_files(run):
    """Damages what the next start would read, when no process writes there."""
    for fault in run.fired_now():
        if fault.kind == "damage" and not hasattr(fault, "folder"):
            causes.damage(run, fault, run.newest_checkpoint())
        if fault.kind == "zeros in the log" and not hasattr(fault, "log"):
            fault.log = causes.add_zeros(run)


def resume(run, code):
    """Continues by what the run has printed, or else from the newest checkpoint."""
    words = promises.printed_command(run)
    if code == 2:
        older = promises.named_older(run)
        start(run, older, lambda: run.way.resume(older) if older else run.way.begin())
    elif words:
        place = words[words.index("--resume") + 1]
        start(run, checkpoint_at(place), lambda: run.way.go_on(words))
    elif newest := run.newest_checkpoint():
        start(run, newest, lambda: run.way.resume(place_of(newest)))
    else:
        start(run, None, run.way.begin)


def start(run, checkpoint, act):
    for role, number in run.next_numbers.items():
        run.changes += [f"--{role}", str(number)]
        setattr(run, role, number)
    run.next_numbers = {}
    keep_for_reference(run, checkpoint)
    refused_for = causes.damage_in(run, checkpoint)
    run.begin_attempt()
    run.attempt.is_refused_for = refused_for
    act()


def checkpoint_at(place):
    """The checkpoint that a path on the command line means."""
    if os.path.exists(os.path.join(place, checkpoints.MANIFEST)):
        return place
    return checkpoints.newest([os.path.join(place, "checkpoints"), place])


def place_of(checkpoint):
    """What names it on a command line: its run directory, or the folder beside it."""
    directory = os.path.dirname(checkpoint)
    is_of_run = os.path.basename(directory) == "checkpoints"
    return os.path.dirname(directory) if is_of_run else directory


def keep_for_reference(run, checkpoint):
    """Copies the checkpoint with which another number of workers begins."""
    if run.workers == run.trial.strategy.workers:
        return
    writers = [a for a in run.attempts if checkpoint and is_below(checkpoint, a)]
    if checkpoint and writers and writers[0].workers == run.workers:
        return
    run.changed_from = None
    if checkpoint:
        kept = os.path.join(run.folder, "kept")
        shutil.rmtree(kept, ignore_errors=True)
        run.changed_from = shutil.copytree(
            checkpoint, os.path.join(kept, os.path.basename(checkpoint))
        )


def is_below(checkpoint, attempt):
    return checkpoint.startswith(attempt.run_dir + os.sep)
