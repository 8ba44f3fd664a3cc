#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the queries of the dashboard's panels and of the rules on a live Prometheus.

usage: check_queries.py PROMETHEUS_URL SECONDS DASHBOARD.json...

Every expression must parse, know its metrics and return data within SECONDS,
while a job runs. For an alert, queries comparisons as 0 or 1, and the sides of
"unless" and the operand of absent() by themselves: its series must exist, whether or
not it fires. Prints queries without an answer, and a closing line 'N passed, N
failed'; exit code 1 when any failed.
"""

import json
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

PAUSE_SECONDS = 2
# Grafana's values of these variables for a scrape interval of 5 s.
VARIABLES = {"__rate_interval": "20s", "__interval": "5s", "__range": "15m"}
LABEL_VALUES = re.compile(r"label_values\((\w+), *(\w+)\)")
PANEL_KEYS = ("id", "title", "type", "gridPos", "datasource", "targets")
DATASOURCE = "${datasource}"  # a variable, so that people choose theirs

STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
COMPARISON = re.compile(r"(==|!=|>=|<=|>|<)(?!\s*bool\b)")
METRIC = re.compile(r"(?<![\w:])((?:tributary|process)[a-zA-Z0-9_:]*)")


def ask(base, path, **arguments):
    url = base + path + "?" + urllib.parse.urlencode(arguments)
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        return json.load(error)


def outside_braces(expression, change):
    """Applies `change` to the parts that are not label matchers."""
    parts = re.split(r"(\{[^}]*\})", expression)
    return "".join(part if part.startswith("{") else change(part)
                   for part in parts)


def split_at_word(expression, word):
    """Cuts where `word` stands outside of all brackets."""
    parts, depth, begin = [], 0, 0
    for match in re.finditer(r'"(?:[^"\\]|\\.)*"|[({]|[)}]|\b%s\b' % word,
                             expression):
        if match[0] in "({":
            depth += 1
        elif match[0] in ")}":
            depth -= 1
        elif match[0] == word and depth == 0:
            parts.append(expression[begin:match.start()])
            begin = match.end()
    return parts + [expression[begin:]]


def strip_brackets(expression):
    """Removes brackets around the whole."""
    expression = expression.strip()
    while expression.startswith("("):
        depth = 0
        for i, letter in enumerate(expression):
            depth += (letter == "(") - (letter == ")")
            if depth == 0:
                break
        if i != len(expression) - 1:
            break
        expression = expression[1:-1].strip()
    return expression


def questions_of_alert(expression):
    """Expressions that have an answer whether or not the alert fires."""
    expression = strip_brackets(expression)
    for word in ("unless", "or", "and"):
        sides = split_at_word(expression, word)
        if len(sides) > 1:
            # The matching, as in "and on (run) x", is not part of a side.
            return [question for side in sides for question in
                    questions_of_alert(re.sub(
                        r"^\s*(on|ignoring)\s*\([^)]*\)(\s*group_\w+\s*(\([^)]*\))?)?",
                        "", side))]
    absent = re.fullmatch(r"absent\s*(\(.*\))(\s*==\s*1)?", expression, re.S)
    if absent:
        return questions_of_alert(absent[1])
    return [outside_braces(expression,
                           lambda part: COMPARISON.sub(r"\1 bool", part))]


def panels_of(panels):
    for panel in panels:
        yield panel
        yield from panels_of(panel.get("panels", []))


def read_dashboard(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def runs_of_dashboard(base, dashboard):
    """The choices of the dashboard's variable `run`, in its order."""
    [variable] = [variable for variable in dashboard["templating"]["list"]
                  if variable["name"] == "run"]
    metric, label = LABEL_VALUES.fullmatch(variable["query"]["query"]).groups()
    answer = ask(base, "/api/v1/label/%s/values" % label, **{"match[]": metric})
    return answer["data"]


def questions_of_dashboard(path):
    """Yields (name, expression with variables, complaint) of every target."""
    dashboard = read_dashboard(path)
    panels = list(panels_of(dashboard["panels"]))
    ids = [panel["id"] for panel in panels]
    if len(ids) != len(set(ids)):
        yield path, "", "two panels share an id"
    for panel in panels:
        if panel["type"] == "row":
            continue
        name = "panel \"%s\"" % panel.get("title")
        missing = [key for key in PANEL_KEYS if key not in panel]
        if missing or not panel.get("targets"):
            yield name, "", "has no " + ", ".join(missing or ["targets"])
        for target in panel.get("targets", []):
            uid = target.get("datasource", {}).get("uid")
            complaint = ("" if uid == DATASOURCE else
                         "asks data source %s, not %s" % (uid, DATASOURCE))
            if unfiltered(target["expr"]):
                complaint = "mixes runs: a selector without run=\"$run\""
            yield name, target["expr"], complaint


def unfiltered(expression):
    """Whether a selector of the expression takes the series of every run."""
    return any('run="$run"' not in match[0] for match in
               re.finditer(METRIC.pattern + r"(\{[^}]*\})?",
                           STRING.sub(lambda text: text[0] if "$run" in text[0]
                                      else '""', expression)))


def fill_in(expression, run):
    """The expression as Grafana sends it when `run` is chosen."""
    values = {**VARIABLES, "run": run.replace("\\", "\\\\").replace('"', '\\"')}
    return re.sub(r"\$\{?(\w+)\}?",
                  lambda match: values.get(match[1], match[0]), expression)


def questions_of_rules(base):
    answer = ask(base, "/api/v1/rules")
    rules = [rule for group in answer["data"]["groups"]
             for rule in group["rules"]]
    if not rules:
        yield "rules", "", "Prometheus has loaded none"
    for rule in rules:
        name = "%s rule %s" % (rule["type"], rule["name"])
        if rule["type"] != "alerting":
            yield name, rule["query"], ""
            continue
        for question in questions_of_alert(rule["query"]):
            yield name, question, ""


def complaint_about(base, expression, names):
    answer = ask(base, "/api/v1/query", query=expression)
    if answer["status"] != "success":
        return answer.get("error", "no answer")
    bare = re.sub(r"\{[^}]*\}", "", STRING.sub('""', expression))
    unknown = sorted(set(METRIC.findall(bare)) - names)
    if unknown:
        return "no metric " + ", ".join(unknown)
    return "" if answer["data"]["result"] else "no data"


def without_answer(base, questions, dashboards):
    """The (name, expression, complaint) without an answer for the first run."""
    # Where the series of the only run have no label `run` there is nothing to choose.
    runs = [run for path in dashboards
            for run in runs_of_dashboard(base, read_dashboard(path))]
    run = runs[0] if runs else ""
    names = set(ask(base, "/api/v1/label/__name__/values")["data"])
    for name, expression, flaw in questions:
        complaint = flaw or complaint_about(base, fill_in(expression, run), names)
        if complaint:
            yield name, expression, complaint


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    base, seconds = sys.argv[1].rstrip("/"), float(sys.argv[2])
    questions = [question for path in sys.argv[3:]
                 for question in questions_of_dashboard(path)]
    questions += questions_of_rules(base)
    deadline = time.monotonic() + seconds
    # Data come with the job's progress, but once is enough.
    failed, rest = [], questions
    while True:
        failed = list(without_answer(base, rest, sys.argv[3:]))
        if not failed or time.monotonic() > deadline:
            break
        open_ones = {(name, expression) for name, expression, _ in failed}
        rest = [question for question in rest if question[:2] in open_ones]
        time.sleep(PAUSE_SECONDS)
    for name, expression, complaint in failed:
        print("FAILED:", ": ".join(filter(None, (name, expression, complaint))))
    print("%d passed, %d failed" % (len(questions) - len(failed), len(failed)))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
