# SPDX-License-Identifier: Apache-2.0
"""Whether the weights of another run mean the same in a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tributary._errors import InvalidSetting
from tributary.torch.preprocess import as_text

_EFFECTS = {
    "class": "so its output would be that of another class",
    "token": "so texts would be read as others",
    "input": "so it would be taken for another one",
}


def check_weights(weights: Path, record: dict[str, Any], run: Path) -> None:
    """InvalidSetting if `weights` lies beside the model.json of another run, and
    that run differs from `run` (with the model.json `record`): in names of classes,
    tokens or inputs, in the model's computation, or much in input scales.
    """
    for other in (weights.parent, weights.resolve().parent):
        beside = _record_of(other)
        if beside is not None:
            break
    else:
        return
    before, now = beside.get("preprocessing"), record.get("preprocessing")
    if not before or not now:
        return
    names = _names(beside, before, now), _names(record, now, before)
    for kind, effect in _EFFECTS.items():
        pairs = zip(names[0][kind], names[1][kind], strict=False)
        for at, (there, here) in enumerate(pairs):
            if _are_others(there, here):
                raise InvalidSetting(
                    f"{weights}: {kind} {at} is {_quoted(here)} in "
                    f"{run / 'model.json'}, but {_quoted(there)} in "
                    f"{other / 'model.json'}, {effect}; load the run {other} itself, "
                    "or weights of a run with the same names"
                )
    pairs = list(zip(names[0]["input"], names[1]["input"], strict=False))
    others = {at for at, (there, here) in enumerate(pairs) if _are_others(there, here)}
    scales = [one.get("numeric") or {} for one in (before, now)]
    at = _scaled_otherwise(scales[0], scales[1], others)
    for is_other, what, same in (
        (_computes_otherwise(beside, record), "the model computes otherwise", "model"),
        (at is not None, f"input {at} is scaled otherwise", "`normalize`"),
        (_fill_otherwise(beside, record), "missing numbers are others", "`missing`"),
    ):
        if is_other:
            raise InvalidSetting(
                f"{weights}: {what} in {other / 'model.json'} than in "
                f"{run / 'model.json'}, so the results would be wrong; load the run "
                f"{other} itself, or weights of a run with the same {same}"
            )


def _record_of(run: Path) -> dict[str, Any] | None:
    try:
        record = json.loads((run / "model.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) else None


def _computes_otherwise(before: dict[str, Any], now: dict[str, Any]) -> bool:
    """Whether equal weights give other outputs in the model of the other run."""
    layers = [_evaluated(one.get("sequential") or []) for one in (before, now)]
    return before.get("output") != now.get("output") or layers[0] != layers[1]


def _evaluated(layers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The layers without those that only train."""
    kept = []
    for layer in layers:
        if "residual" in layer:
            parts = layer["residual"].items()
            layer = {"residual": {name: _evaluated(part) for name, part in parts}}
        if "dropout" not in layer:
            kept.append(layer)
    return kept


def _fill_otherwise(before: dict[str, Any], now: dict[str, Any]) -> bool:
    """Whether both fill in missing numbers, but with other constants."""
    fills = []
    for record in (before, now):
        source = record.get("training_data", {}).get("source", {})
        fills.append(source.get("csv", {}).get("missing", {}))
    if any(not fill or "skip" in fill for fill in fills):
        return False
    return bool(fills[0].get("constant") != fills[1].get("constant"))


def _names(
    record: dict[str, Any], own: dict[str, Any], other: dict[str, Any]
) -> dict[str, list[Any]]:
    """The names of each kind, by position, that can be compared with `other`."""
    classes = [as_text(name) for name in own.get("class_names", ())]
    tables = own.get("source") == other.get("source") == "csv"
    if not classes and tables and record.get("output") != "numbers":
        # Labels of a table that are numbers are the names of their classes.
        classes = [str(i) for i in range(len(other.get("class_names", ())))]
    tokens = own.get("text", {}).get("vocabulary", [])
    return {"class": classes, "token": tokens, "input": _inputs(own, other)}


def _inputs(own: dict[str, Any], other: dict[str, Any]) -> list[Any]:
    table = own.get("csv") or {}
    by_place = table.get("columns") == (other.get("csv") or {}).get("columns")

    def name_of(column: dict[str, Any]) -> Any:
        if column.get("name"):
            return as_text(column["name"])
        return f"#{column['index']}" if by_place else None

    names = [name_of(column) for column in table.get("numeric", ())]
    for one in table.get("categorical", ()):
        column = name_of(one["column"])
        for category in one["categories"]:
            names.append(column and f"{column}={as_text(category)}")
    return names


def _are_others(before: Any, now: Any) -> bool:
    if before in (None, "") or now in (None, ""):
        return False
    if isinstance(before, str) and isinstance(now, str):
        # A column without a name, "#2", is compared only with such columns.
        return before != now and (before[0] == "#") == (now[0] == "#")
    return bool(before != now)


def _scaled_otherwise(
    before: dict[str, Any], now: dict[str, Any], others: set[int]
) -> int | None:
    """The first input with a scale that two tables of one kind do not have."""
    divisors = [one.get("byte_divisor", 0) for one in (before, now)]
    # Numbers are usually in the unit of bytes that are divided.
    any_unit = (divisors[0] == 0) != (divisors[1] == 0)
    units = [1.0, 1.0] if any_unit else [one or 1.0 for one in divisors]
    same_kind = bool(before.get("mean")) == bool(now.get("mean"))
    shift, ratio = (1, 4) if same_kind else (0.1, 1.1)
    for at in range(min(before.get("count", 0), now.get("count", 0))):
        if at in others:
            continue
        centers, deviations = [], []
        for one, unit in zip((before, now), units, strict=True):
            center = _at(one.get("offset"), at, 0) + _at(one.get("mean"), at, 0)
            centers.append(center * unit)
            deviations.append(_at(one.get("deviation"), at, 1) * unit)
        least, most = min(deviations), max(deviations)
        distance = abs(centers[0] - centers[1])
        if most >= ratio * least or distance > shift * least:
            return at
    return None


def _at(values: list[float] | None, at: int, if_none: float) -> float:
    if not values:
        return if_none
    return values[0] if len(values) == 1 else values[at]


def _quoted(name: str | int) -> str:
    text = chr(name) if isinstance(name, int) else name  # a token, or a name
    return json.dumps(text, ensure_ascii=not text.isprintable())
