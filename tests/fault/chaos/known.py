# SPDX-License-Identifier: Apache-2.0
"""Trials that fail for a reason that is known and open.

They are left out, with a word, unless --open or --only is given. Delete an entry
together with the fault that it names.
"""


def reason(trial):
    """Why the trial is left out; empty: it is not."""
    return next((why for why, applies in OPEN.items() if applies(trial)), "")


def draws_any(trial, *kinds):
    return any(trial.draws(kind) for kind in kinds)


def may_lose_members(trial):
    """Whether a member can be lost while the coordinator lives."""
    kinds = ("kill", "kill several", "long pause", "failpoint", "damage alive")
    return draws_any(trial, *kinds, "drain", "link down", "one way")


OPEN = {
    "on_worker_loss: fail names neither the lost worker's host nor its step": (
        lambda trial: trial.on_loss == "fail" and may_lose_members(trial)
    ),
}
