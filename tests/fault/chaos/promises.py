# SPDX-License-Identifier: Apache-2.0
"""The sentences that the documents promise for each fault."""

import datetime
import os
import re
import shlex
import signal

import causes
import checkpoints
import results
from faults import STOPPING

STOPPED = {128 + getattr(signal, name) for name in STOPPING}
AGAIN = "interrupted again: all processes were killed"
NO_CHECKPOINT = "there is no checkpoint to continue from"
CONTINUE = re.compile(r"^continue with: (tributary .*)$", re.M)
OLDER = re.compile(r"the newest intact checkpoint before it is (\S+): name it")
NO_OLDER = "no checkpoint before it is intact"
LOST = re.compile(r"(server|worker) (\d+) \([^\n]*was lost")
DONE = re.compile(r"^(\S+) info coordinator: the job is done$", re.M)
GOES_BACK = re.compile(
    r"^(\S+) warning coordinator: everybody goes back to step \d+, checkpoint (\S+)",
    re.M,
)
STARTS_OVER = "everybody starts over at the beginning"
UNREADABLE = "cannot be read, "


def printed_command(run):
    """The words after `tributary` of the command that continues the run, or none."""
    found = CONTINUE.findall(run.attempt.text())
    return shlex.split(found[-1])[1:] if found else []


def named_older(run):
    """The checkpoint that a refused one's message names, or None."""
    found = OLDER.search(run.attempt.text())
    return found[1] if found else None


def broken_at_end(run, code):
    """What is missing or wrong in how a leader has ended with this exit code."""
    if code == 2:
        return broken_by_refusal(run)
    if code == 1:
        return broken_by_failure(run)
    if code in STOPPED:
        return broken_by_stop(run, code)
    return None


def broken_by_refusal(run):
    """docs/failures.md: refused with file and byte; the newest intact one is named."""
    damaged, text = run.attempt.is_refused_for, run.attempt.text()
    if os.path.basename(damaged) not in text:
        return f"{damaged} is damaged, and not named: {run.last_words()}"
    folder = os.path.dirname(damaged)
    older = [
        one
        for one in checkpoints.whole_ones(os.path.dirname(folder))
        if one < folder and not causes.damage_in(run, one)
    ]
    named = named_older(run)
    if older and named is None or not older and NO_OLDER not in text:
        return f"wanted the name of {older[-1:]}: {run.last_words()}"
    if older and os.path.normpath(named) != older[-1]:
        return f"{named} is named, wanted {older[-1]}"
    return None


def broken_by_failure(run):
    """on_worker_loss: fail ends the job with the worker, its host and its step."""
    message = results.summary(run.attempt.run_dir).get("message", "")
    if not re.search(r"worker \d+ \(.+\) was lost, last heard at step \d+", message):
        return f"wanted the lost worker's name and step, got: {message}"
    return None


def broken_by_stop(run, code):
    """A checkpoint of the last step, and the command that continues from there."""
    text, summary = run.attempt.text(), results.summary(run.attempt.run_dir)
    if AGAIN in text:
        if code != 130 or summary:
            return f"exit code {code} after a second signal, summary {bool(summary)}"
        return None
    if summary.get("status") != "interrupted":
        return f"exit code {code}, status {summary.get('status')}: {run.last_words()}"
    if broken_by_time_limit(run):
        return "the script's time was up, and it has not requeued itself"
    if run.trial.small_disk or run.trial.draws("failpoint"):
        return None  # the checkpoint may have failed
    if summary["checkpoint_step"] != summary["steps"]:
        return f"stopped at {summary['steps']}, checkpoint {summary['checkpoint_step']}"
    if not printed_command(run):
        return f"no command continues it: {run.last_words()}"
    return None


def broken_by_time_limit(run):
    """docs/engines.md: near the time limit the script stops the run and requeues it."""
    if not any(fault.kind == "time is up" for fault in run.fired_now()):
        return False
    return not run.way.is_by_hand and not run.way.has_asked()


# ---- in the last attempt

KILLS = ("kill", "kill several", "long pause", "damage alive")
HARMLESS = ("pause", "kill", "kill several", "long pause", "take checkpoint")


def is_over_before_a_loss(run, fault, text):
    """Whether the job was done before the coordinator could miss the member."""
    done = DONE.search(text)
    if done is None:
        return False
    seconds = run.trial.lease if fault.kind == "long pause" else 0.5
    return seconds_of(done[1]) - fault.at < seconds


def seconds_of(time):
    """The time of a line of a log, in seconds since 1970."""
    return datetime.datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp()


def broken_in_last(run):
    """Whether each member that was lost in the last attempt is named as lost."""
    text, fired = run.attempt.text(), run.fired_now()
    damaged = run.attempt.passes_over
    if damaged and f"{os.path.dirname(damaged)} is passed over" not in text:
        return f"{damaged} is damaged, and not named as passed over"
    if problem := broken_by_damage(fired, text):
        return problem
    if any(fault.kind not in HARMLESS for fault in fired):
        return None  # another fault may have hit its place meanwhile
    lost = set(LOST.findall(text))
    for fault in fired:
        if fault.kind not in KILLS or is_over_before_a_loss(run, fault, text):
            continue
        victims = getattr(fault, "victims", None) or [(fault.role, fault.index)]
        for role, index in victims if run.trial.name != "data_parallel" else []:
            # Several may include one that was dead.
            if (role, str(index)) not in lost and len(victims) == 1:
                return f"{role} {index} was killed, and no notice says so"
    servers = any(role == "server" for role, _ in lost)
    if servers and not GOES_BACK.search(text) and STARTS_OVER not in text:
        return "a server was lost, and no notice says where the job goes back to"
    return None


def broken_by_damage(fired, text):
    """A notice names the file and the reason when all go back to a damaged one."""
    if UNREADABLE in text:
        return None
    for time, folder in GOES_BACK.findall(text):
        for fault in fired:
            if fault.folder == folder and fault.damaged_at < seconds_of(time):
                return f"{folder} is damaged, and no notice says that it is passed"
    return None
