# SPDX-License-Identifier: Apache-2.0
"""Python keywords and the fields of the job that they set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tributary._errors import InvalidSetting
from tributary._names import hint, to_yaml

_SERVER = "strategy.parameter_server."
FIELDS: dict[str, str] = {
    "name": "name",
    "seed": "seed",
    "sync": _SERVER + "sync",
    "wire": _SERVER + "wire",
    "weights_wire": _SERVER + "weights_wire",
    "error_feedback": _SERVER + "error_feedback",
    "top_k_fraction": _SERVER + "top_k_fraction",
    "bucket_bytes": _SERVER + "bucket_bytes",
    "transport": _SERVER + "transport",
    "sync_timeout": _SERVER + "sync_timeout_seconds",
    "clip_norm": "training.clip_norm",
    "nonfinite": "training.nonfinite",
    "checkpoint_every": "checkpoint.every_steps",
    "checkpoint_keep": "checkpoint.keep",
    "checkpoint_at_end": "checkpoint.at_end",
    "checkpoint_directory": "checkpoint.directory",
    "on_worker_loss": "cluster.on_worker_loss",
    "max_restarts": "cluster.max_restarts",
    "lease_seconds": "cluster.lease_seconds",
}


def sync_of(keywords: Mapping[str, Any]) -> Any:
    """The policy of synchronization that the keywords set; None: they set none."""
    further = keywords.get("settings")
    by_path = further if isinstance(further, Mapping) else {}
    return keywords.get("sync", by_path.get(FIELDS["sync"]))


def round_of(sync: Any) -> int:
    """Steps of a round of local_sgd, after which the ranks exchange; else 1."""
    policy = sync.get("local_sgd") if isinstance(sync, Mapping) else None
    period = policy.get("period") if isinstance(policy, Mapping) else None
    return period if isinstance(period, int) and period > 0 else 1


def gathers_steps(sync: Any) -> bool:
    """Whether the servers average all ranks' values of a step. If not, they take
    each rank's values by themselves, late or not at all."""
    if sync is None or sync == "bsp":
        return True
    policy = sync.get("bsp") if isinstance(sync, Mapping) else None
    return isinstance(policy, Mapping) and not policy.get("backup_workers")


def settings_of(keywords: Mapping[str, Any]) -> list[str]:
    """The settings KEY=VALUE for keywords of FIELDS; one that is None is left out.

    The keyword `settings` is a dict of further fields by their path in the job
    file: {"trace.last_step": 10}. InvalidSetting: an unknown keyword.
    """
    settings: list[str] = []
    for keyword, value in keywords.items():
        if keyword == "settings":
            if value is not None and not isinstance(value, Mapping):
                raise InvalidSetting(
                    f"settings wants a dict of fields by their path, got {value!r}"
                )
            for path, item in dict(value or {}).items():
                settings.append(f"{path}={to_yaml(item)}")
            continue
        if keyword not in FIELDS:
            names = [*FIELDS, "settings"]
            raise InvalidSetting(f'unknown keyword "{keyword}"{hint(keyword, names)}')
        if keyword == "on_worker_loss" and value == "shrink":
            raise InvalidSetting(
                "on_worker_loss cannot be shrink, since no process can run another "
                'one\'s program; use "wait" or "fail"'
            )
        if value is not None:
            settings.append(f"{FIELDS[keyword]}={to_yaml(value)}")
    return settings
