#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks one Prometheus the dashboard's questions about each of several runs.

usage: check_runs.py PROMETHEUS_URL SECONDS DASHBOARD.json RUN...

While these runs train, the variable `run` must offer exactly these runs. For every panel
and every run, each series that the panel's query reads must be of that run. The answers
for two runs must differ where their series do: a sum over all runs would be the same for
each. Both must have been seen within SECONDS. Prints what is wrong and a closing line 'N
passed, N failed'; exit code 1 when any failed.
"""

import itertools
import re
import sys
import time

import check_queries

SELECTOR = re.compile(r"\{__name__[^}]*\}|" + check_queries.METRIC.pattern + r"(\{[^}]*\})?"
                      r"|(?<![\w:])up(\{[^}]*\})")
# Labels that say which process a series is of, and so differ between runs anyway.
OF_A_PROCESS = ("__name__", "run", "instance", "host", "name", "strategy")


def series(base, expression, seconds):
    """[(labels, value)] of an expression at a time."""
    answer = check_queries.ask(base, "/api/v1/query", query=expression, time=seconds)
    if answer["status"] != "success":
        raise SystemExit(f"{expression}: {answer.get('error')}")
    data = answer["data"]
    if data["resultType"] == "scalar":
        return [({}, float(data["result"][1]))]
    return [(item["metric"], float(item["value"][1])) for item in data["result"]]


def comparable(found):
    """An answer without the labels that differ for every process."""
    return sorted((sorted((label, value) for label, value in labels.items()
                          if label not in OF_A_PROCESS), repr(value))
                  for labels, value in found)


class Answer:
    """A panel's answer for a run at a time, and the series that it has read."""

    def __init__(self, base, expression, run, seconds):
        text = check_queries.fill_in(expression, run)
        selectors = [match[0] for match in SELECTOR.finditer(text)]
        self.read = [series(base, selector, seconds) for selector in selectors]
        self.shown = series(base, text, seconds)
        self.foreign = sorted({labels.get("run", "none")
                               for found in [*self.read, self.shown]
                               for labels, _ in found
                               if labels.get("run", run) != run})
        self.foreign += [] if selectors else ["an expression without a selector"]

    def totals(self):
        return [sum(value for _, value in found) for found in self.read]


def complaint_about(base, expression, runs):
    """Why the answers at this moment are not right; empty: they are."""
    seconds = time.time()
    answers = {run: Answer(base, expression, run, seconds) for run in runs}
    for run, answer in answers.items():
        if answer.foreign:
            return f"asked about {run}, it reads {', '.join(answer.foreign)}"
        if not answer.shown or not all(answer.read):
            return f"no data of {run}"
    for one, other in itertools.combinations(runs, 2):
        if answers[one].totals() != answers[other].totals() and \
                comparable(answers[one].shown) == comparable(answers[other].shown):
            return f"the same answer for {one} and {other}, which have different series"
    return ""


def questions_of(dashboard):
    for panel in check_queries.panels_of(dashboard["panels"]):
        for target in panel.get("targets", []):
            yield f"panel \"{panel.get('title')}\"", target["expr"]


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    base, seconds, path = sys.argv[1].rstrip("/"), float(sys.argv[2]), sys.argv[3]
    runs = sys.argv[4:]
    dashboard = check_queries.read_dashboard(path)
    questions = list(questions_of(dashboard))
    deadline = time.monotonic() + seconds
    rest, offered = questions, []
    while True:
        failed = [(name, expression, complaint) for name, expression in rest
                  if (complaint := complaint_about(base, expression, runs))]
        offered = check_queries.runs_of_dashboard(base, dashboard)
        done = not failed and sorted(offered) == sorted(runs)
        # A series of another run does not go away.
        wrong = any("it reads" in complaint for _, _, complaint in failed)
        if done or wrong or time.monotonic() > deadline:
            break
        rest = [(name, expression) for name, expression, _ in failed]
        time.sleep(check_queries.PAUSE_SECONDS)
    if sorted(offered) != sorted(runs):
        failed.append(("variable run", "", f"offers {offered} instead of {runs}"))
    for name, expression, complaint in failed:
        print("FAILED:", ": ".join(filter(None, (name, expression, complaint))))
    print(f"{len(questions) + 1 - len(failed)} passed, {len(failed)} failed: "
          f"the queries of {len(runs)} runs in one Prometheus, and their list")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
