# SPDX-License-Identifier: Apache-2.0
"""A fake of the parts of Ray that tributary.ray uses. Actors are threads of this
process."""

from __future__ import annotations

import sys
import threading
import time
from types import ModuleType
from typing import Any


class RayError(Exception):
    cause: Exception | None = None


class Reference:
    def __init__(self) -> None:
        self.done = threading.Event()
        self.error: RayError | None = None


class Method:
    def __init__(self, call: Any) -> None:
        self.call = call

    def remote(self, *arguments: Any) -> Reference:
        reference = Reference()

        def run() -> None:
            try:
                self.call(*arguments)
            except Exception as error:  # noqa: BLE001
                reference.error = RayError(str(error))
                reference.error.cause = error
            reference.done.set()

        threading.Thread(target=run, daemon=True).start()
        return reference


class Actor:
    """`stored`: the arguments that Ray's control store keeps for a restart."""

    def __init__(self, of: type, stored: Any, options: dict[str, Any]) -> None:
        self.stored = stored
        self.options = options
        instance = of(*stored)
        self.run = Method(instance.run)


class Group:
    def __init__(self, bundles: list[dict[str, float]], strategy: str) -> None:
        self.bundle_specs = bundles
        self.bundle_count = len(bundles)
        self.strategy = strategy

    def wait(self, seconds: float) -> bool:
        return sum(bundle["CPU"] for bundle in self.bundle_specs) <= Cluster.cores


class Strategy:
    def __init__(self, **options: Any) -> None:
        self.options = options


class Cluster:
    """The values that a test sets and checks."""

    cores = 8
    actors: list[Actor] = []
    killed: list[Actor] = []
    groups: list[Group] = []
    gauges: dict[str, list[float]] = {}

    @classmethod
    def reset(cls) -> None:
        cls.cores = 8
        cls.actors, cls.killed, cls.groups, cls.gauges = [], [], [], {}


class Gauge:
    def __init__(self, name: str, description: str, tag_keys: tuple[str, ...]) -> None:
        self.values = Cluster.gauges.setdefault(name, [])

    def set_default_tags(self, tags: dict[str, str]) -> None:
        pass

    def set(self, value: float) -> None:
        self.values.append(value)


class RemoteClass:
    def __init__(self, of: type, options: dict[str, Any]) -> None:
        self.of = of
        self.given = options

    def options(self, **options: Any) -> RemoteClass:
        return RemoteClass(self.of, options)

    def remote(self, *arguments: Any) -> Actor:
        Cluster.actors.append(Actor(self.of, arguments, self.given))
        return Cluster.actors[-1]


def _wait(references: list[Reference], timeout: float) -> tuple[list[Any], list[Any]]:
    end = time.monotonic() + timeout
    while not any(r.done.is_set() for r in references) and time.monotonic() < end:
        references[0].done.wait(0.01)
    done = [r for r in references if r.done.is_set()]
    return done[:1], [r for r in references if r not in done[:1]]


def _get(reference: Reference) -> None:
    if reference.error is not None:
        raise reference.error


def _make_group(bundles: list[dict[str, float]], strategy: str) -> Group:
    Cluster.groups.append(Group(bundles, strategy))
    return Cluster.groups[-1]


def _module(name: str, **members: Any) -> ModuleType:
    module = ModuleType(name)
    module.__dict__.update(members)
    sys.modules[name] = module
    return module


def install() -> None:
    """Makes `import ray` import this fake."""
    _module(
        "ray",
        is_initialized=lambda: True,
        remote=lambda of: RemoteClass(of, {}),
        wait=_wait,
        get=_get,
        kill=lambda actor, no_restart: Cluster.killed.append(actor),
        cluster_resources=lambda: {"CPU": Cluster.cores},
        available_resources=lambda: {"CPU": Cluster.cores},
        exceptions=_module("ray.exceptions", RayError=RayError),
        util=_module("ray.util", get_node_ip_address=lambda: "127.0.0.1"),
    )
    _module(
        "ray.util.placement_group",
        PlacementGroup=Group,
        placement_group=_make_group,
        remove_placement_group=lambda group: Cluster.groups.remove(group),
    )
    _module(
        "ray.util.scheduling_strategies",
        PlacementGroupSchedulingStrategy=Strategy,
    )
    _module("ray.util.metrics", Gauge=Gauge)


def uninstall() -> None:
    for name in [*sys.modules]:
        if name.split(".")[0] == "ray" or name.startswith("tributary.ray"):
            del sys.modules[name]
