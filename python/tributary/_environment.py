# SPDX-License-Identifier: Apache-2.0
"""The settings that a launcher passes to a process in its environment."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tributary._errors import InvalidSetting, Misuse

_RANKS = ("TRIBUTARY_RANK", "RANK", "SLURM_PROCID")
_WORLDS = ("TRIBUTARY_WORLD_SIZE", "WORLD_SIZE", "SLURM_NTASKS")
_COORDINATOR = "TRIBUTARY_COORDINATOR"
_METRICS = "TRIBUTARY_METRICS_LISTEN"
_TLS = "TRIBUTARY_TLS"
_TOKEN_FILE = "TRIBUTARY_TOKEN_FILE"
_METRICS_TOKEN_FILE = "TRIBUTARY_METRICS_TOKEN_FILE"
_INSECURE = "TRIBUTARY_INSECURE"
_INSECURE_GROUPS = "TRIBUTARY_INSECURE_GROUPS"


@dataclass(frozen=True)
class Place:
    """Where the coordinator answers, and who this process is."""

    address: str  # host:port
    rank: int | None  # None: any free rank
    world_size: int | None  # None: known after joining
    metrics_listen: str = ""  # host:port of this rank's metrics; empty: none
    # The folder with the certificate that this process shows, and the file with
    # the job's token; empty: none.
    tls: str = ""
    token_file: str = ""
    metrics_token_file: str = ""  # readers of the metrics show its token
    insecure: bool = False  # other machines may read the metrics in clear text
    insecure_groups: bool = False  # ranks may exchange gradients in clear text

    @staticmethod
    def find(
        address: str | None,
        rank: int | None,
        environment: Mapping[str, str] | None = None,
    ) -> Place:
        """The arguments, or the values of `tributary run`, torchrun or Slurm.

        Misuse: neither names a coordinator.
        """
        known = os.environ if environment is None else environment
        address = address or known.get(_COORDINATOR)
        if address and not isinstance(address, str):
            raise InvalidSetting(f"the address wants host:port, got {address!r}")
        if not address:
            raise Misuse(
                "no coordinator is known: start this program with `tributary run "
                f"--workers N PROGRAM`, set {_COORDINATOR}=host:port, or call "
                'connect("host:port")'
            )
        if rank is None:
            rank = _number(known, _RANKS)
        elif isinstance(rank, bool) or not isinstance(rank, int) or rank < 0:
            raise InvalidSetting(f"rank wants a whole number from 0, got {rank!r}")
        metrics = known.get(_METRICS, "")
        return Place(
            address,
            rank,
            _number(known, _WORLDS),
            metrics,
            known.get(_TLS, ""),
            known.get(_TOKEN_FILE, ""),
            known.get(_METRICS_TOKEN_FILE, ""),
            known.get(_INSECURE) == "1",
            known.get(_INSECURE_GROUPS) == "1",
        )


def operator_folder(
    address: str, environment: Mapping[str, str] | None = None
) -> str:
    """The folder with the operator's certificate of a job of this user that the
    coordinator at `address` runs, from the register that `tributary list` shows.
    Empty: no job there has one."""
    known = os.environ if environment is None else environment
    state = known.get("XDG_STATE_HOME", "")
    if not state.startswith("/"):
        state = str(Path(known.get("HOME", "/nonexistent")) / ".local/state")
    for file in sorted(Path(state, "tributary/jobs").glob("*.json")):
        try:
            job = json.loads(file.read_text())
        except (OSError, ValueError):
            continue
        if not isinstance(job, dict) or job.get("coordinator") != address:
            continue
        folder = Path(str(job.get("run_directory", "")), "tls/operator")
        if folder.is_dir():
            return str(folder)
    return ""


def _number(known: Mapping[str, str], names: tuple[str, ...]) -> int | None:
    """The first of these variables that is set."""
    for name in names:
        text = known.get(name)
        if not text:
            continue
        if not text.isdecimal():
            raise InvalidSetting(f'{name} wants a whole number, got "{text}"')
        return int(text)
    return None
