# SPDX-License-Identifier: Apache-2.0
"""Stands where the compiled module is missing. Python prefers the compiled one."""

from __future__ import annotations


def __getattr__(name: str) -> None:
    if name.startswith("__"):
        raise AttributeError(name)
    raise ImportError(
        "this copy of the package has no compiled module; without it only "
        "tributary.torch.load works, so install the wheel or run python/test.sh"
    )
