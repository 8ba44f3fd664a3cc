# SPDX-License-Identifier: Apache-2.0
"""The classes and texts of statuses of the C++ client."""

from __future__ import annotations

import pytest

import tributary
from tributary._errors import from_status


@pytest.mark.parametrize(
    ("code", "during", "message", "kind", "text"),
    [
        ("ABORTED", "finish_step", "rank 1 failed", "WrongState", "rank 1 failed"),
        ("FAILED_PRECONDITION", "start", "it differs", "ModelMismatch", "it differs"),
        ("FAILED_PRECONDITION", "start", "the job has ended", "WrongState", "ended"),
        ("FAILED_PRECONDITION", "join", "it is over", "WrongState", "it is over"),
        ("ALREADY_EXISTS", "join", "taken", "PlaceTaken", "taken"),
        ("UNIMPLEMENTED", "join", "no method", "Unavailable", "not that of a coord"),
        ("UNAVAILABLE", "join", "silent", "Unavailable", "silent; "),
        ("UNAVAILABLE", "finish", "lost", "Unavailable", "^lost$"),
        ("INVALID_ARGUMENT", "join", "a field", "InvalidSetting", "a field"),
        ("INVALID_ARGUMENT", "begin_step", "rates", "Misuse", "rates"),
        ("INVALID_ARGUMENT", "finish_step", "not finite", "Misuse", "not finite"),
        ("DEADLINE_EXCEEDED", "finish_step", "step 3", "Timeout", "step 3"),
        ("NOT_FOUND", "open", "no file", "Missing", "no file"),
        ("DATA_LOSS", "open", "a bit", "DamagedData", "a bit"),
        ("CANCELLED", "finish", "interrupted", "Cancelled", "interrupted"),
        ("INTERNAL", "finish", "other", "Error", "other"),
    ],
)
def test_a_status_becomes_the_class_that_says_what_to_do(
    code: str, during: str, message: str, kind: str, text: str
) -> None:
    wanted = getattr(tributary, kind)
    with pytest.raises(tributary.Error, match=text) as raised:
        raise from_status(code, message, during)
    assert raised.type is wanted
