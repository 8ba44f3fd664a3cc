# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C that is not lost."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class Interrupts:
    """Remembers Ctrl-C within a `with` on the main thread. Python drops the
    KeyboardInterrupt if the signal comes while it runs a finalizer, such as those
    with which Ray releases its objects."""

    def __init__(self) -> None:
        self._noted = False
        self._handler: Any = None

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            handler = signal.getsignal(signal.SIGINT)
            if callable(handler):
                self._handler = handler
                signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)

    def check(self) -> None:
        """Raises KeyboardInterrupt if Ctrl-C has come since the `with` began."""
        if self._noted:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._noted = True
        self._handler(number, frame)
