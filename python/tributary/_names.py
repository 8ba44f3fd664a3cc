# SPDX-License-Identifier: Apache-2.0
"""Hints for wrong names, and values as the job file writes them."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tributary._errors import InvalidSetting

_PLAIN_WORD = re.compile(r"[a-z][a-z0-9_]*")
_YAML_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}


def hint(written: str, names: Iterable[str]) -> str:
    """`; did you mean "lr"?`, or `; there are lr, eps` when no name is near."""
    known = sorted(names)
    near = difflib.get_close_matches(str(written).lower(), known, n=1, cutoff=0.6)
    if near:
        return f'; did you mean "{near[0]}"?'
    return f"; there are {', '.join(known)}"


def to_yaml(value: Any) -> str:
    """A value of the job file on one line, as `--set` takes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidSetting(f"a setting must be finite, got {value}")
        return repr(value)
    if isinstance(value, str):
        if _PLAIN_WORD.fullmatch(value) and value not in _YAML_WORDS:
            return value
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        fields = (f"{key}: {to_yaml(item)}" for key, item in value.items())
        return "{" + ", ".join(fields) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(to_yaml, value)) + "]"
    raise InvalidSetting(
        f"wanted a number, a text, a list or a dict, got {type(value).__name__}"
    )
