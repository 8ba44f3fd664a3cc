# SPDX-License-Identifier: Apache-2.0
"""The optimizers by torch's names and keywords, as the job file writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tributary._errors import InvalidSetting
from tributary._names import hint

Fields = tuple[str, ...]


@dataclass(frozen=True)
class Kind:
    """One optimizer: its keywords, and the fields of the job that each sets."""

    lr: float | None  # the default rate; None: it must be given
    keywords: Mapping[str, Fields]
    defaults: Mapping[str, Any]  # of the keywords, as in the job file
    rate_field: str = "learning_rate"
    decays: bool = True
    more: Mapping[str, Fields] = field(default_factory=dict)

    def fields_of(self) -> dict[str, Fields]:
        """Every keyword, with the fields that its value or values set."""
        fields = {"lr": (self.rate_field,), **self.keywords, **self.more}
        if self.decays:
            fields |= {"weight_decay": ("weight_decay",), "decay_on": ("decay_on",)}
        return fields

    def options_of(self) -> dict[str, Any]:
        """The options of a group in torch's form, with their defaults."""
        decay = {"weight_decay": 0.0} if self.decays else {}
        return {**decay, **self.defaults}


_ADAM: dict[str, Fields] = {
    "betas": ("beta1", "beta2"),
    "eps": ("epsilon",),
    "amsgrad": ("amsgrad",),
}
_ADAM_DEFAULTS = {"betas": (0.9, 0.999), "eps": 1e-8, "amsgrad": False}
KINDS: dict[str, Kind] = {
    "sgd": Kind(
        None,
        {
            "momentum": ("momentum",),
            "dampening": ("dampening",),
            "nesterov": ("nesterov",),
        },
        {"momentum": 0.0, "dampening": 0.0, "nesterov": False},
    ),
    "adam": Kind(1e-3, _ADAM, _ADAM_DEFAULTS),
    "adamw": Kind(1e-3, _ADAM, {**_ADAM_DEFAULTS, "weight_decay": 1e-2}),
    "adagrad": Kind(
        1e-2,
        {
            "lr_decay": ("learning_rate_decay",),
            "initial_accumulator_value": ("initial_accumulator",),
            "eps": ("epsilon",),
        },
        {"lr_decay": 0.0, "initial_accumulator_value": 0.0, "eps": 1e-10},
    ),
    "rmsprop": Kind(
        1e-2,
        {
            "alpha": ("alpha",),
            "eps": ("epsilon",),
            "momentum": ("momentum",),
            "centered": ("centered",),
        },
        {"alpha": 0.99, "eps": 1e-8, "momentum": 0.0, "centered": False},
    ),
    "lamb": Kind(
        1e-3,
        {
            "betas": ("beta1", "beta2"),
            "eps": ("epsilon",),
            "bias_correction": ("bias_correction",),
            "clip_min": ("clip_min",),
            "clip_max": ("clip_max",),
        },
        {
            **{"betas": (0.9, 0.999), "eps": 1e-6, "bias_correction": True},
            **{"clip_min": 0.0, "clip_max": 0.0},
        },
    ),
    "lion": Kind(1e-4, {"betas": ("beta1", "beta2")}, {"betas": (0.9, 0.99)}),
    "adafactor": Kind(
        1e-2,
        {
            "beta2_decay": ("beta2_decay",),
            "eps": ("epsilon1", "epsilon2"),
            "d": ("clip_threshold",),
        },
        {"beta2_decay": -0.8, "eps": (None, 1e-3), "d": 1.0},
    ),
    "ftrl": Kind(
        0.1,
        {
            "beta": ("beta",),
            "l1": ("l1",),
            "l2": ("l2",),
            "initial_accumulator_value": ("initial_accumulator",),
        },
        {"beta": 1.0, "l1": 0.0, "l2": 0.0, "initial_accumulator_value": 0.0},
        rate_field="alpha",
        decays=False,
    ),
}
_LEAST_RATE = 2.0**-126  # the least normal float32
_EPSILON = 2.0**-23  # of float32, in which the servers compute
# Keywords of torch that choose an implementation and not a result.
_WITHOUT_MEANING = {"foreach", "fused", "capturable", "differentiable"}


def kind_of(name: str) -> Kind:
    """InvalidSetting: there is no optimizer of this name."""
    if not isinstance(name, str):
        raise InvalidSetting(f'wanted an optimizer by its name, as "adam", got {name}')
    if name not in KINDS:
        raise InvalidSetting(f'unknown optimizer "{name}"{hint(name, KINDS)}')
    return KINDS[name]


def is_optimizer_keyword(name: str, keyword: str) -> bool:
    return keyword in kind_of(name).fields_of() or keyword in _WITHOUT_MEANING


def spec_of(name: str, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """An OptimizerSpec of the job file: {"adamw": {"learning_rate": 0.001}}.

    keywords: torch's names. InvalidSetting: an unknown keyword, or a keyword such
    as `betas` that is not a pair.
    """
    fields = kind_of(name).fields_of()
    spec: dict[str, Any] = {}
    for keyword, value in keywords.items():
        if keyword in _WITHOUT_MEANING:
            raise InvalidSetting(
                f"{name} runs on the servers, where {keyword} has no meaning; "
                "leave it out"
            )
        if keyword not in fields:
            raise InvalidSetting(
                f'{name} has no keyword "{keyword}"{hint(keyword, fields)}'
            )
        spec |= _values(name, keyword, fields[keyword], value)
    rate_field = fields["lr"][0]
    rate = spec.get(rate_field)
    is_zero = isinstance(rate, (int, float)) and 0 <= rate < _LEAST_RATE
    if is_zero and name != "ftrl":
        # The job file needs a rate above 0, also in float32. It is only recorded,
        # because each step carries its own rate.
        spec[rate_field] = _LEAST_RATE
    return {name: spec}


def _values(name: str, keyword: str, fields: Fields, value: Any) -> dict[str, Any]:
    if len(fields) == 1:
        return {fields[0]: _plain(value)}
    pair = list(value) if isinstance(value, (tuple, list)) else [value]
    if len(pair) != len(fields):
        raise InvalidSetting(
            f"{keyword} of {name} wants {len(fields)} numbers, got {value}"
        )
    # None: torch computes adafactor's first epsilon from the type.
    if fields[0] == "epsilon1" and pair[0] is None:
        pair[0] = _EPSILON
    if None in pair:
        raise InvalidSetting(f"{keyword} of {name} wants numbers, got {value}")
    return {f: _plain(v) for f, v in zip(fields, pair, strict=True)}


def _plain(value: Any) -> Any:
    """A tensor or numpy scalar as a Python number; other values as they are."""
    return value.item() if hasattr(value, "item") else value
