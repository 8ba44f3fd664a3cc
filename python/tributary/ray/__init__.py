# SPDX-License-Identifier: Apache-2.0
"""Trains a job file on a Ray cluster.

    import tributary.ray
    result = tributary.ray.train("job.yaml", servers=2, workers=4)
    print(result.sha256, result.test["accuracy"])

Servers and workers are actors in a placement group; Ray starts lost ones again
(docs/engines.md).
"""

from __future__ import annotations

try:
    import ray as _ray  # noqa: F401
except ImportError as error:
    raise ImportError(
        "tributary.ray needs Ray: pip install 'tributary[ray]'"
    ) from error

from tributary.ray._result import Result
from tributary.ray._train import train, trial_resources

__all__ = ["Result", "train", "trial_resources"]
