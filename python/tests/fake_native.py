# SPDX-License-Identifier: Apache-2.0
"""tributary._native in Python: one rank whose servers apply plain SGD.

`world` - 1 further ranks exist in name only: their gradients equal this rank's.
Each session keeps its calls, and a test decides how a step goes on.
"""

from __future__ import annotations

import enum
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

OPEN_END = (1 << 53) - 1


class Next(enum.Enum):
    STEP = 0
    MOVED = 1
    END = 2


def floats(memory: Any) -> np.ndarray:
    """A writable view of a numpy array or torch tensor."""
    view = memory if isinstance(memory, np.ndarray) else memory.numpy()
    assert view.dtype == np.float32 and view.flags.c_contiguous
    return view.reshape(-1)


class Session:
    # Settings of the next session of a test.
    seed = 7
    name = "fake"
    world = 1
    first_steps = 0
    first_course: list[dict[str, Any]] = []  # of a job that goes on
    job_weights: dict[str, np.ndarray] | None = None  # of a job that goes on
    start_error: Exception | None = None
    last: Session | None = None

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self.rank = options["rank"] or 0
        self.steps = self.first_steps
        self.skipped = False
        self.is_late = False
        self.calls: list[tuple[Any, ...]] = []
        self.parameters: list[tuple[Any, ...]] = []
        self.traffic = (0, 0)
        self.failed: str | None = None
        self.finished = 0
        self.course = [dict(s) for s in self.first_course]
        # Overrides of a test: what a call returns, by steps finished.
        self.begins: dict[int, Next] = {}
        self.after: Callable[[Session], Next] = lambda session: Next.STEP
        self.finishes: list[Callable[[Session], Next]] = []

    @staticmethod
    def join(**options: Any) -> Session:
        Session.last = Session(options)
        return Session.last

    def set_data(self, **data: Any) -> None:
        """Goes on from the course, as DataCourse does, without its checks."""
        self.course = [s for s in self.course if s["step"] < self.steps]
        last = {k: v for k, v in (self.course or [{}])[-1].items() if k in data}
        if last == data:
            return
        at = self.position or (0, 0)
        begin = {"step": self.steps if self.course else 0, "at": at}
        self.course.append({**data, **begin})

    @property
    def position(self) -> tuple[int, int] | None:
        return self._after(self.steps) if self.course else None

    def _after(self, steps: int) -> tuple[int, int]:
        s = [s for s in self.course if s["step"] <= steps][-1]
        epoch, row = s["at"]
        for _ in range(s["step"], steps):
            row += s["global_batch"] * s["accumulation"]
            if row >= s["rows"]:
                epoch, row = epoch + 1, 0
        return epoch, row

    def steps_of(self, epochs: int) -> int:
        steps = 0
        while self._after(steps)[0] < epochs:
            steps += 1
        return steps

    def start(
        self, parameters: list[Any], reserved: Any = (), **totals: Any
    ) -> None:
        if self.start_error is not None:
            raise self.start_error
        self.parameters = list(parameters)
        self.totals = totals
        self.names = [name for name, *_ in parameters]
        self.weights = [floats(memory) for *_, memory in parameters]
        for (name, shape, _, _), weights in zip(parameters, self.weights, strict=True):
            assert weights.size == int(np.prod(shape)), name
        self.gradients = [np.full(w.size, 99, np.float32) for w in self.weights]
        for name, values in (self.job_weights or {}).items():
            self.weights[self.names.index(name)][:] = np.ravel(values)
        self._publish()

    gradient_moves = 0

    def gradient(self, parameter: int) -> np.ndarray:
        return self.gradients[parameter]

    def is_unchanged(self, parameter: int) -> bool:
        own = self.weights[parameter].tobytes()
        return own == self.published[parameter]

    def begin_step(self, samples: int, learning_rates: list[float]) -> Next:
        self.calls.append(("begin", samples, list(learning_rates)))
        self.rates = list(learning_rates)
        self.ready: set[int] = set()
        return self.begins.pop(self.steps, Next.STEP)

    def gradient_ready(self, parameter: int) -> None:
        assert parameter not in self.ready, "sent twice"
        self.ready.add(parameter)
        self.calls.append(("ready", parameter))

    def finish_step(self, **result: float | None) -> Next:
        assert self.ready == set(range(len(self.weights))), "some are missing"
        self.calls.append(("finish", result))
        for i, (_, _, momentum, _) in enumerate(self.parameters):
            if momentum == 1:
                self.weights[i][:] = self.gradients[i]
            elif not self.skipped:
                self.weights[i] -= np.float32(self.rates[0]) * self.gradients[i]
        self.steps += 1
        result = self.after(self)
        self._publish()
        return result

    def _publish(self) -> None:
        self.published = [weights.tobytes() for weights in self.weights]

    def report_evaluation(self, **part: float) -> None:
        self.calls.append(("evaluation", part))

    def finish(self) -> Next:
        self.finished += 1
        return self.finishes.pop(0)(self) if self.finishes else Next.END

    def fail(self, why: str) -> None:
        self.failed = why

    def cancel(self, why: str) -> None:
        self.calls.append(("cancel", why))

    # For assertions.

    @property
    def begun(self) -> list[tuple[int, list[float]]]:
        """(samples, learning rates) of each step."""
        return [call[1:] for call in self.calls if call[0] == "begin"]

    def sent(self) -> list[str]:
        """The names of the gradients in the order of the last step."""
        start = max(i for i, call in enumerate(self.calls) if call[0] == "begin")
        return [self.names[c[1]] for c in self.calls[start:] if c[0] == "ready"]

    def gradient_of(self, name: str) -> np.ndarray:
        return self.gradients[self.names.index(name)]


def back_to(there: int, after: int) -> Any:
    """A value of Session.after: after `after` steps the job goes back once."""

    def back_once(fake: Session) -> Next:
        if fake.steps == after and fake.traffic == (0, 0):
            fake.traffic, fake.steps = (1, 1), there
            return Next.MOVED
        return Next.STEP

    return back_once


def _mix(x: int) -> int:
    x &= 2**64 - 1
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 % 2**64
    x ^= x >> 27
    x = x * 0x94D049BB133111EB % 2**64
    return x ^ (x >> 31)


def _hash(seed: int, a: int, b: int) -> int:
    key = _mix(seed + 0x9E3779B97F4A7C15)
    row = _mix(key + a * 0x9E3779B97F4A7C15)
    return _mix(row + b * 0xD1B54A32D192ED03)


def shuffled_order(rows: int, seed: int, epoch: int) -> np.ndarray:
    """Follows the definition in worker/train/data/batches/sampler.h."""
    order = np.arange(rows, dtype=np.uint32)
    for i in range(rows - 1, 0, -1):
        j = _hash(seed ^ 0x73687566666C6531, epoch, i) * (i + 1) >> 64
        order[i], order[j] = order[j], order[i]
    return order


def crc32c(data: Any, crc: int = 0) -> int:
    return zlib.crc32(data.tobytes(), crc)  # of another polynomial


class Checkpoint:
    """A checkpoint of one parameter [2, 2] with one state."""

    step = 5
    parameters = [("w", [2, 2])]
    state_names = ["exp_avg"]

    @staticmethod
    def open(folder: str) -> Checkpoint:
        reader = Checkpoint()
        reader.folder = folder
        return reader

    def read(self, tensor: int, parameter: int, values: np.ndarray) -> None:
        values[...] = np.arange(4, dtype=np.float32).reshape(2, 2) + 10 * tensor


def stay_near(pci_id: str) -> str:
    return f"near {pci_id}"
