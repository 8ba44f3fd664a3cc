#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks a running Prometheus for every expression of deploy/prometheus/rules.

Waits until so many targets are there, and until every recording rule, and the
series that every alert compares with its number, has an answer; then fails when an
alert fires, a target is down, or a scrape has labels that Prometheus had to rename.
Also fails when an alert has no test that fires it, or no test that does not.
"""

import argparse
import glob
import json
import re
import sys
import time
import urllib.parse
import urllib.request

DEADLINE_SECONDS = 120
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
COMPARISON = re.compile(r"^(.*\S)\s+(>=|<=|==|!=|<|>)\s+[0-9.]+$", re.DOTALL)


def get(url, path, **arguments):
    query = urllib.parse.urlencode(arguments)
    with OPENER.open(f"{url}/api/v1/{path}?{query}", timeout=10) as reply:
        answer = json.load(reply)
    if answer["status"] != "success":
        raise RuntimeError(f"{path} {arguments}: {answer}")
    return answer["data"]


def subject(rule):
    """The series that exist while nothing is wrong: an alert's left side."""
    if rule["type"] == "recording":
        return rule["query"]
    match = COMPARISON.match(rule["query"])
    if not match:
        raise SystemExit(f"{rule['name']}: the expression must compare a series "
                         f"with a number, is {rule['query']}")
    return match.group(1)


def wait_for_answers(url, rules, absent):
    missing = [rule for rule in rules if rule["name"] not in absent]
    deadline = time.monotonic() + DEADLINE_SECONDS
    while missing and time.monotonic() < deadline:
        missing = [rule for rule in missing
                   if not get(url, "query", query=subject(rule))["result"]]
        time.sleep(1 if missing else 0)
    return [f"{rule['name']}: no answer to {subject(rule)}" for rule in missing]


def read_all(pattern):
    return "\n".join(open(path, encoding="utf-8").read()
                     for path in sorted(glob.glob(pattern)))


def untested_alerts(folder):
    tests = read_all(f"{folder}/tests/*.yml")
    for name in re.findall(r"^ *- alert: (\w+)$",
                           read_all(f"{folder}/rules/*.yml"), re.M):
        cases = re.findall(rf"alertname: {name}\n *exp_alerts:(.*)", tests)
        if not any("[]" in case for case in cases):
            yield f"{name}: no test in which it does not fire"
        if all("[]" in case for case in cases):
            yield f"{name}: no test in which it fires"


def wait_for_targets(url, number):
    deadline = time.monotonic() + DEADLINE_SECONDS
    while True:
        try:
            targets = get(url, "targets", state="active")["activeTargets"]
        except OSError:  # it is not up yet
            targets = []
        if len(targets) == number or time.monotonic() > deadline:
            break
        time.sleep(0.2)
    if len(targets) != number:
        yield f"{len(targets)} targets instead of {number}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", help="of Prometheus")
    parser.add_argument("folder", help="deploy/prometheus")
    parser.add_argument("--targets", type=int, required=True)
    parser.add_argument("--absent", nargs="*", default=[],
                        help="rules that the job under test has nothing for")
    options = parser.parse_args()
    url = options.url.rstrip("/")
    problems = list(untested_alerts(options.folder))
    problems += wait_for_targets(url, options.targets)
    groups = get(url, "rules")["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    problems += wait_for_answers(url, rules, options.absent)
    targets = get(url, "targets")["activeTargets"]
    for target in targets:
        if target["health"] != "up":
            problems.append(f"{target['scrapeUrl']}: {target['lastError']}")
    for group in get(url, "rules")["groups"]:
        for rule in group["rules"]:
            if rule["health"] != "ok":
                problems.append(f"{rule['name']}: {rule.get('lastError')}")
            if rule.get("state") == "firing":
                problems.append(f"{rule['name']} fires: {rule['alerts']}")
    renamed = [label for label in get(url, "labels") if label.startswith("exported_")]
    problems += [f"a metric has the label {label[9:]} of a target" for label in renamed]
    for problem in problems:
        print(problem, file=sys.stderr)
    alerts = sum(rule["type"] == "alerting" for rule in rules)
    print(f"prometheus: {len(targets)} targets, {len(rules) - alerts} recording rules "
          f"and {alerts} alerts asked, {len(options.absent)} left out, {len(problems)} problems")
    return 1 if problems or not rules or not targets else 0


if __name__ == "__main__":
    sys.exit(main())
