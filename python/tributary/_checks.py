# SPDX-License-Identifier: Apache-2.0
"""Checks of arguments before the C++ client sees them."""

from __future__ import annotations

import math
import operator
from typing import Any

from tributary._errors import InvalidSetting, Misuse


def count(name: str, value: Any, least: int = 0) -> int:
    """A whole number, also of numpy or torch. Misuse: it is not one, or below
    `least`."""
    try:
        found = operator.index(value)
    except (TypeError, ValueError, RuntimeError):
        raise Misuse(
            f"{name} must be a whole number, got {value!r} ({type(value).__name__})"
        ) from None
    if found < least:
        raise Misuse(f"{name} must be at least {least}, got {found}")
    return found


def rate(value: Any) -> float:
    """A learning rate. Misuse: it is not finite, or negative."""
    found = number("lr", value)
    if not math.isfinite(found) or found < 0:
        raise Misuse(f"lr must be finite and at least 0, got {found}")
    return found


def number(name: str, value: Any) -> float:
    """A number, also of numpy or torch. Misuse: it is not a number."""
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError):
        text = str(value) if len(str(value)) < 80 else "..."
        raise Misuse(
            f"{name} must be a number, got {text} ({type(value).__name__})"
        ) from None


def seconds(name: str, value: Any) -> float:
    """InvalidSetting: it is not a number of seconds above 0."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 < value < math.inf:
        raise InvalidSetting(f"{name} wants seconds above 0, got {value!r}")
    return float(value)
