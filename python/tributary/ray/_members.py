# SPDX-License-Identifier: Apache-2.0
"""Servers and workers as actors of Ray, in a placement group."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

import ray
from ray.util.placement_group import (
    PlacementGroup,
    placement_group,
    remove_placement_group,
)
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from tributary._errors import Timeout, Unavailable
from tributary.ray._process import find_program, start

Resources = dict[str, float]

_LONGEST_PAUSE_SECONDS = 10.0


class Member:
    """An actor that runs one daemon as a child and lasts as long as it. The daemon's
    log goes to the actor's, which Ray shows in the dashboard and on the driver."""

    def __init__(
        self,
        role: str,
        index: int,
        coordinator: str,
        max_restarts: int,
        insecure_groups: bool,
    ) -> None:
        self._role = role
        self._index = index
        self._coordinator = coordinator
        self._max_restarts = max_restarts
        self._insecure_groups = insecure_groups

    def __repr__(self) -> str:  # Ray puts it before each line of the log.
        return f"{self._role}-{self._index}"

    def run(self, keys: str) -> None:
        """Returns when the job has ended. Starts a failed daemon again. When the actor
        or its node dies, Ray starts the actor again and calls this again.

        keys: for the daemon's standard input. Ray sends an argument of a call only
        to the actor. It keeps those of the constructor in its control store, where
        every client of the store can read them.

        Unavailable: the daemon has failed too often.
        """
        words = [
            find_program(f"tributary-{self._role}"),
            "--coordinator", self._coordinator, "--index", str(self._index),
            "--tls", "-",
        ]  # fmt: skip
        if self._role == "server":
            words += ["--listen", at_port_0(ray.util.get_node_ip_address())]
        else:
            # Ray shows the process only the devices that it has given to it.
            words += ["--local-rank", "0"]
            if self._insecure_groups:
                words += ["--insecure-groups"]
        for failures in range(self._max_restarts + 1):
            if failures > 1:  # the first time at once
                time.sleep(min(_LONGEST_PAUSE_SECONDS, 2.0 ** (failures - 2)))
            code = start(words, text=keys).wait()
            if code == 0:
                return
            how = f"was killed by signal {-code}" if code < 0 else f"exited with {code}"
            print(f"{self!r} {how}", file=sys.stderr, flush=True)
        raise Unavailable(f"{self!r} {how} {failures + 1} times; its log says why")


def at_port_0(host: str) -> str:
    return f"[{host}]:0" if ":" in host else f"{host}:0"


class Members:
    """The actors of a job. Use it in a `with` block, which kills them.

    `group`: has a bundle for each server and then for each worker, from bundle
    `offset` on; None: makes one, and removes it.
    """

    def __init__(
        self,
        servers: list[Resources],
        workers: list[Resources],
        *,
        strategy: str,
        group: PlacementGroup | None,
        offset: int,
        max_restarts: int,
        insecure_groups: bool,
    ) -> None:
        self._bundles = [*servers, *workers]
        self._num_servers = len(servers)
        self._strategy = strategy
        self._given = group
        self._own: PlacementGroup | None = None
        self._offset = offset
        self._max_restarts = max_restarts
        self._insecure_groups = insecure_groups
        self._actors: list[Any] = []
        self._running: dict[Any, str] = {}  # name by reference of its `run`

    def place(self, seconds: float) -> None:
        """Reserves the resources. Timeout: the cluster does not have them."""
        if self._given is not None:
            return
        self._own = placement_group(self._bundles, strategy=self._strategy)
        if not self._own.wait(seconds):
            raise Timeout(self._missing(seconds))

    def _missing(self, seconds: float) -> str:
        kinds = Counter(str(bundle) for bundle in self._bundles)
        names = sorted({name for bundle in self._bundles for name in bundle})
        total, free = ray.cluster_resources(), ray.available_resources()
        return (
            f"waited {seconds:g} s for a placement group ({self._strategy}) of "
            + " and ".join(f"{count} x {kind}" for kind, count in kinds.items())
            + "; the cluster has "
            + ", ".join(
                f"{total.get(name, 0):g} {name}, {free.get(name, 0):g} of it free"
                for name in names
            )
        )

    def start(self, coordinator: str, keys: Mapping[str, str]) -> None:
        """keys: by role, the text for its daemons' standard input."""
        for place, resources in enumerate(self._bundles):
            is_server = place < self._num_servers
            role = "server" if is_server else "worker"
            index = place if is_server else place - self._num_servers
            others = {k: v for k, v in resources.items() if k not in ("CPU", "GPU")}
            actor = (
                ray.remote(Member)
                .options(
                    name=None,
                    num_cpus=resources.get("CPU", 0),
                    num_gpus=resources.get("GPU", 0),
                    resources=others,
                    max_restarts=self._max_restarts,
                    # A call fails as long as Ray does not know yet that the
                    # actor is dead; such failures do not count.
                    max_task_retries=-1,
                    scheduling_strategy=PlacementGroupSchedulingStrategy(
                        placement_group=self._given or self._own,
                        placement_group_bundle_index=self._offset + place,
                    ),
                )
                .remote(
                    role,
                    index,
                    coordinator,
                    self._max_restarts,
                    self._insecure_groups,
                )
            )
            self._actors.append(actor)
            self._running[actor.run.remote(keys[role])] = f"{role}-{index}"

    def check(self, seconds: float) -> None:
        """Waits for so long, or until an actor has ended. Unavailable: it was
        restarted too often."""
        ended, _ = ray.wait([*self._running], timeout=seconds)
        for reference in ended:
            name = self._running.pop(reference)
            try:
                ray.get(reference)
            except ray.exceptions.RayError as error:
                cause = getattr(error, "cause", None) or error
                if isinstance(cause, Unavailable):
                    raise cause from error
                last = (str(cause).strip() or type(cause).__name__).splitlines()[-1]
                raise Unavailable(
                    f"{name} was started {self._max_restarts} times again and is "
                    f"lost: {last}"
                ) from error

    def any_running(self) -> bool:
        return bool(self._running)

    def __enter__(self) -> Members:
        return self

    def __exit__(self, *_: object) -> None:
        for actor in self._actors:
            ray.kill(actor, no_restart=True)
        if self._own is not None:
            remove_placement_group(self._own)
