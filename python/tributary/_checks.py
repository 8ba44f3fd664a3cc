"""Checks of arguments before the C++ client sees them."""

from __future__ import annotations

import math
import operator
from typing import Any

from tributary._errors import InvalidSetting, Misuse


def count(name: str, value: Any) -> int:
    """A whole number of at least 0, also of numpy or torch. Misuse: it is none."""
    try:
        number = operator.index(value)
    except (TypeError, ValueError, RuntimeError):
        raise Misuse(
            f"{name} must be a whole number, got {value!r} ({type(value).__name__})"
        ) from None
    if number < 0:
        raise Misuse(f"{name} must be at least 0, got {number}")
    return number


def rate(value: Any) -> float:
    """A learning rate. Misuse: it is not finite, or negative."""
    number = float(value)
    if not math.isfinite(number) or number < 0:
        raise Misuse(f"lr must be finite and at least 0, got {number}")
    return number


def seconds(name: str, value: Any) -> float:
    """InvalidSetting: it is no number of seconds, or not above 0."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 < value < math.inf:
        raise InvalidSetting(f"{name} wants seconds above 0, got {value!r}")
    return float(value)
