# SPDX-License-Identifier: Apache-2.0
"""Random jobs under random faults.

A seed draws a job, a strategy, a way to run it and its faults; the run must end as if
nothing had happened, and say what the documents promise.
"""

import argparse
import collections
import os
import shlex
import sys
import tempfile
import time

import known
import processes
from faults import SOURCE
from reports import Report
from results import References
from run import Run
from trials import Trial

Tools = collections.namedtuple("Tools", "binaries python source")
MINUTES = 2.0
MOST_SEEDS = 100_000  # to look through for --with


def read_options():
    parser = argparse.ArgumentParser(
        description=__doc__,
        prog="chaos.sh",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--minutes", type=float, help=f"how long; default {MINUTES:g}")
    add("--trials", type=int, help="how many; without --minutes, however long it takes")
    add("--seed", type=int, default=1, help="the first; the next ones follow")
    add("--only", type=int, metavar="SEED", help="this one; its folder is kept")
    add("--with", dest="text", default="", help="only trials whose line has this text")
    add("--open", action="store_true", help="also trials whose failure is known")
    add("--list", type=int, help="say what so many seeds draw, run nothing")
    add("--binaries", default=os.path.join(SOURCE, "build/release/bin"))
    add(
        "--python",
        default=os.path.join(SOURCE, "build/python/bin/python"),
        help="has torch, for draws of programs",
    )
    return parser.parse_args()


def again(options, seed):
    """The command that repeats a trial."""
    words = ["tests/fault/chaos.sh", "--only", str(seed)]
    if options.binaries != os.path.join(SOURCE, "build/release/bin"):
        words += ["--binaries", options.binaries]
    if options.python != os.path.join(SOURCE, "build/python/bin/python"):
        words += ["--python", options.python]
    return shlex.join(words)


class Machine:
    """What trials can need; looked up when the first trial needs it."""

    def __init__(self, python):
        self.checks = {
            "hosts": (processes.can_make_hosts, "root, for network namespaces"),
            "disks": (lambda: os.geteuid() == 0, "root, to mount a small disk"),
            "torch": (
                lambda: processes.can_train_programs(python, SOURCE),
                f"PyTorch and the package's native module in {python}",
            ),
        }
        self.known = {}

    def lacks(self, trial):
        """What is missing for the trial; empty: nothing."""
        for need in trial.needs():
            check, what = self.checks[need]
            if need not in self.known:
                self.known[need] = check()
            if not self.known[need]:
                return f"it needs {what}"
        return ""


def seeds_of(options):
    """The seeds to run, as long as there are time and trials left."""
    if options.only is not None:
        yield options.only
        return
    minutes = options.minutes
    if minutes is None:
        minutes = MINUTES if options.trials is None else float("inf")
    until = time.monotonic() + 60 * minutes
    for seed in range(options.seed, options.seed + MOST_SEEDS):
        if time.monotonic() >= until:
            return
        yield seed


def why_not(options, trial, machine):
    """Why the trial is left out; empty: it is not."""
    if lacking := machine.lacks(trial):
        return lacking
    return "" if options.open or options.only is not None else known.reason(trial)


def main():
    options = read_options()
    first = options.only if options.only is not None else options.seed
    if options.list:
        for seed in range(first, first + options.list):
            print(f"seed {seed}: {Trial(seed)}")
        return 0
    work = tempfile.mkdtemp(prefix="chaos-")
    tools = Tools(os.path.abspath(options.binaries), options.python, SOURCE)
    machine = Machine(options.python)
    references = References(lambda trial, folder: Run(trial, folder, tools), work)
    report = Report(lambda seed: again(options, seed))
    for seed in seeds_of(options):
        if options.trials is not None and report.trials == options.trials:
            break
        trial = Trial(seed)
        if options.text not in str(trial):
            continue
        if left_out := why_not(options, trial, machine):
            report.skip(trial, left_out)
            continue
        run = Run(trial, os.path.join(work, f"seed-{seed}"), tools)
        begin = time.monotonic()
        problem = run.execute(references)
        report.add(run, problem, time.monotonic() - begin)
        if problem is None and options.only is None:
            run.remove()
    return report.finish(work)


if __name__ == "__main__":
    sys.exit(main())
