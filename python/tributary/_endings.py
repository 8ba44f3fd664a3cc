# SPDX-License-Identifier: Apache-2.0
"""How the program ends, as far as the interpreter's hooks show it."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Iterable
from types import TracebackType
from typing import Any

from tributary._errors import Stopped


def text_of(error: BaseException) -> str:
    kind = type(error).__name__
    return f"{kind}: {error}" if str(error) else kind


def is_normal_end(error: BaseException) -> bool:
    if isinstance(error, SystemExit):
        return error.code in (None, 0)
    return isinstance(error, Stopped)


class _Hooks:
    """Replaces sys.excepthook, threading.excepthook and sys.exit, notes each call
    and passes it on."""

    def __init__(self) -> None:
        self.uncaught: BaseException | None = None  # that ends the program
        # Of the last call of sys.exit with an error, by the main thread.
        self.exit: SystemExit | None = None
        self.watched: weakref.WeakSet[Endings] = weakref.WeakSet()
        self._uncaught_before = sys.excepthook
        self._thread_before = threading.excepthook
        self._exit_before = sys.exit
        sys.excepthook = self._on_uncaught
        threading.excepthook = self._on_thread
        sys.exit = self._on_exit  # type: ignore[assignment]

    def _on_uncaught(
        self,
        kind: type[BaseException],
        error: BaseException,
        trace: TracebackType | None,
    ) -> None:
        self.uncaught = error
        self._uncaught_before(kind, error, trace)

    def _on_thread(self, arguments: Any) -> None:
        error, thread = arguments.exc_value, arguments.thread
        if error is not None and thread is not None and not is_normal_end(error):
            for endings in self.watched:
                endings.threads[thread] = text_of(error)
        self._thread_before(arguments)

    def _on_exit(self, code: Any = None, /) -> Any:
        error = SystemExit(code)
        is_main = threading.current_thread() is threading.main_thread()
        self.exit = error if is_main and not is_normal_end(error) else None
        self._exit_before(code)


_hooks: _Hooks | None = None


class Endings:
    """Notes what ends the program or its threads, since this object was made."""

    def __init__(self) -> None:
        global _hooks
        if _hooks is None:
            _hooks = _Hooks()
        self._hooks = _hooks
        self.threads: dict[threading.Thread, str] = {}  # that an exception ended
        self._shown_before = _last_shown()
        _hooks.watched.add(self)

    def exception(self) -> str:
        """The exception that ends the program; empty: none, or the end of the job."""
        error = self._hooks.uncaught
        return "" if error is None or isinstance(error, Stopped) else text_of(error)

    def of_threads(self, threads: Iterable[threading.Thread]) -> str:
        """The exception that has ended one of these threads; empty: none has."""
        return next((self.threads[t] for t in threads if t in self.threads), "")

    def exit_text(self) -> str:
        """The argument of sys.exit, or the last exception that an interactive shell
        has shown; empty: nothing is known."""
        if self._hooks.exit is not None:
            return text_of(self._hooks.exit)
        shown = _last_shown()
        return "" if shown is None or shown is self._shown_before else text_of(shown)

    def shows(self) -> bool:
        """The interpreter exits with an error already."""
        return self._hooks.uncaught is not None or self._hooks.exit is not None


def _last_shown() -> BaseException | None:
    return getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
