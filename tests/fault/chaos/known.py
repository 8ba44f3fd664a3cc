# SPDX-License-Identifier: Apache-2.0
"""Trials that fail because of a known error that is not fixed.

They are left out, with a word, unless --open or --only is given. Delete an entry
together with the fault that it names.
"""


def reason(trial):
    """Why the trial is left out; empty: it is not."""
    return next((why for why, applies in OPEN.items() if applies(trial)), "")


# For each reason, a function that tells whether it applies to a trial.
OPEN = {}
