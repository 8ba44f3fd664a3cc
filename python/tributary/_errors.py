# SPDX-License-Identifier: Apache-2.0
"""The exceptions of Tributary, one for each thing that the caller can do."""

from __future__ import annotations


class Error(RuntimeError):
    """Base of all. The message says what was wanted, what came and what to do."""


class Unavailable(Error, ConnectionError):
    """The coordinator or a server did not answer: start it, or check the address."""


class Timeout(Error, TimeoutError):
    """An answer did not come in time. The message names what was waited for."""


class InvalidSetting(Error, ValueError):
    """A setting or an argument is wrong. The message names it."""


class ModelMismatch(Error):
    """This rank declares another model than another rank or the job."""


class WrongState(Error):
    """The job cannot do this now, for example because it has ended or failed."""


class PlaceTaken(Error):
    """A living process holds the wanted rank, or every rank is taken."""


class DamagedData(Error):
    """A checkpoint is damaged. Use an older one."""


class Missing(Error, FileNotFoundError):
    """There is no such file or checkpoint."""


class Cancelled(Error):
    """A wait was cancelled."""


class Stopped(Error):
    """The job has ended: there is no further step."""


class Misuse(Error):
    """The program calls this package in a wrong order or with wrong objects."""


_CLASSES: dict[str, type[Error]] = {
    "CANCELLED": Cancelled,
    "INVALID_ARGUMENT": InvalidSetting,
    "OUT_OF_RANGE": InvalidSetting,
    "DEADLINE_EXCEEDED": Timeout,
    "NOT_FOUND": Missing,
    "ABORTED": WrongState,  # the job has failed
    "ALREADY_EXISTS": PlaceTaken,
    "FAILED_PRECONDITION": WrongState,
    "UNAVAILABLE": Unavailable,
    "DATA_LOSS": DamagedData,
}


def from_status(code: str, message: str, during: str) -> Error:
    """The exception for a status of the C++ client.

    code: the name of the status' code. during: the method that failed.
    """
    if code == "FAILED_PRECONDITION" and during == "start":
        ended = message == "the job has ended"
        return WrongState(message) if ended else ModelMismatch(message)
    if code == "OUT_OF_RANGE" and during == "follow":
        return Stopped(message)
    if during in ("join", "follow") and code == "UNIMPLEMENTED":
        return Unavailable(
            f"this address is not that of a coordinator ({message}); correct it, and "
            "use programs and a package of one version"
        )
    if during in ("join", "follow") and code == "UNAVAILABLE":
        return Unavailable(f"{message}; start the coordinator, or correct its address")
    if during in ("begin_step", "finish_step") and code == "INVALID_ARGUMENT":
        return Misuse(message)
    return _CLASSES.get(code, Error)(message)
