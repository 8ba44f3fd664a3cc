# SPDX-License-Identifier: Apache-2.0
"""The keywords of Cluster.optimizer: those of the optimizer and those of the job."""

from __future__ import annotations

import warnings
from typing import Any

from tributary._errors import InvalidSetting
from tributary._names import hint, to_yaml
from tributary._optimizers import is_optimizer_keyword, kind_of, spec_of
from tributary._settings import FIELDS
from tributary.torch._declare import Declared, group_settings


def split_keywords(
    kind: str, keywords: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The optimizer's keywords and those of the job."""
    options: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    for keyword, value in keywords.items():
        if is_optimizer_keyword(kind, keyword):
            options[keyword] = value
        elif keyword in FIELDS or keyword == "settings":
            settings[keyword] = value
        elif keyword == "staged":
            warnings.warn(
                "staged has no effect: weights always change in step() only",
                stacklevel=3,
            )
        else:
            names = [*kind_of(kind).fields_of(), *FIELDS, "settings"]
            raise InvalidSetting(f'unknown keyword "{keyword}"{hint(keyword, names)}')
    if options.get("lr", kind_of(kind).lr) is None:
        raise InvalidSetting(f"{kind} wants a learning rate: lr=0.1")
    return options, settings


def optimizer_settings(
    kind: str, options: dict[str, Any], declared: Declared
) -> tuple[list[str], list[int]]:
    """The settings of the optimizer and its groups, and the group of each rate."""
    own = [
        {k: v for k, v in group.items() if k not in ("params", "name")}
        for group in declared.groups
    ]
    spec = spec_of(kind, {"lr": kind_of(kind).lr, **options})
    groups, rates = group_settings(kind, declared, own)
    fields = [f"training.optimizer={to_yaml(spec)}"]
    if groups:
        fields.append(f"training.parameter_groups={to_yaml(groups)}")
    return fields, rates
