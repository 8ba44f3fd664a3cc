# SPDX-License-Identifier: Apache-2.0
"""Prints the tables of plan_grid.py: which strategy won, and which one the cost model
named."""

import collections
import math
import statistics

CLEAR_GAP = 0.15  # a smaller lead does not count as a win

Cell = collections.namedtuple("Cell", "rate workers model strategy servers")


def name(cell):
    if cell.strategy != "parameter_server":
        return cell.strategy
    return f"parameter_server:{cell.servers}"


def winner(steps):
    return min(steps, key=steps.get)


def gap(steps):
    """The relative lead of the fastest over the second fastest."""
    best, second = sorted(steps.values())[:2]
    return second / best - 1


def score(groups):
    """Counts the groups of strategies with a clear winner that the plan predicts.
    groups: (measured, predicted) by strategy."""
    clear = [(m, p) for m, p in groups if len(m) > 1 and gap(m) > CLEAR_GAP]
    right = sum(winner(m) == winner(p) for m, p in clear)
    # The loss of following the plan where it is wrong.
    worst = max((m[winner(p)] / min(m.values()) - 1 for m, p in groups),
                default=0)
    share = f"{right / len(clear):.0%}" if clear else "-"
    return (f"{right} of {len(clear)} cells with a clear winner ({share}); "
            f"following the plan costs at most {worst:.0%} in any of "
            f"{len(groups)}")


def error(record):
    return abs(record["predicted"] / record["measured"] - 1)


def milliseconds(seconds):
    return f"{seconds * 1e3:.3g}" if seconds < 1 else f"{seconds * 1e3:.0f}"


def steps_of(runs, keep):
    """Measured and predicted seconds by strategy, for cells where keep(cell)."""
    return tuple({name(c): r[key] for c, r in runs.items() if keep(c)}
                 for key in ("measured", "predicted"))


def print_steps(groups):
    names = list(dict.fromkeys(name(c) for g in groups.values() for c in g))
    print("Milliseconds of a step, measured / predicted\n")
    print("| model | workers | Mbit/s | " + " | ".join(names) +
          " | winner | gap | predicted winner |")
    print("| --- | ---: | ---: |" + " ---: |" * len(names) +
          " --- | ---: | --- |")
    for (model, workers, rate), runs in sorted(groups.items()):
        m, p = steps_of(runs, lambda c: True)
        steps = [f"{milliseconds(m[n])} / {milliseconds(p[n])}"
                 if n in m else "" for n in names]
        last = ["", "", ""]
        if len(m) > 1:
            wrong = gap(m) > CLEAR_GAP and winner(m) != winner(p)
            last = [winner(m), f"{gap(m):.0%}",
                    winner(p) + (" (wrong)" if wrong else "")]
        print(f"| {model} | {workers} | {rate} | " +
              " | ".join(steps + last) + " |")


def report(records):
    latest = {Cell(**r["cell"]): r for r in records}
    groups = collections.defaultdict(dict)
    for cell, r in latest.items():
        groups[cell.model, cell.workers, cell.rate][cell] = r
    print_steps(groups)

    def of(keep):
        return score([steps_of(runs, keep) for runs in groups.values()])

    def for_each_number(keep):
        return score([
            steps_of(runs, lambda c, n=n: c.servers in (0, n) and keep(c))
            for runs in groups.values()
            for n in sorted({c.servers for c in runs if c.servers})])

    # For the network, sharded is the same as all-reduce.
    def replicated(cell):
        return cell.strategy in ("parameter_server", "all_reduce")

    print(f"\nwinner of all: {of(lambda c: True)}")
    print("winner, for each number of servers: "
          f"{for_each_number(lambda c: True)}")
    print(f"servers of any number, or all-reduce: {of(replicated)}")
    print("servers or all-reduce, for each number of servers: "
          f"{for_each_number(replicated)}")
    by_strategy = collections.defaultdict(list)
    for cell, r in latest.items():
        by_strategy[cell.strategy].append(error(r))
    for strategy, errors in by_strategy.items():
        print(f"median error, {strategy}: {statistics.median(errors):.1%}")
    errors = sorted(map(error, latest.values()))
    print(f"median error of the predicted step, {len(errors)} runs: "
          f"{statistics.median(errors):.1%}; nine of ten within "
          f"{errors[math.ceil(0.9 * len(errors)) - 1]:.0%}")
