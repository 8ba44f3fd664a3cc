#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks at the status page of a job in headless Chromium, while the job's coordinator,
server and workers are started, stopped, killed and replaced.

usage: check_page.py PROGRAM_DIR SCREENSHOT_DIR [AXE]

AXE is axe.min.js of axe-core; without it the accessibility check is left out. Prints a
line for each check and the bytes that the page reads in a minute. Fails when one of the
checks does.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

from browser import Browser

WIDTHS = (375, 1440)
NAME = "<b>page</b>"  # would be markup if it were not taken as text
SETTINGS = [
    f"name='{NAME}'", "training.epochs=100000", "evaluation.every_steps=300",
    "checkpoint.every_steps=250", "cluster.lease_seconds=3"]
# Holds messages back, so that a step takes some milliseconds on any machine.
SLOW = ["--delay-messages-ms", "12"]
TEXT = "document.getElementById('{}').textContent"


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Job:
    """A coordinator, a server and two workers, each started by hand."""

    def __init__(self, programs, folder):
        self.programs, self.folder = programs, folder
        self.port, self.http = free_port(), free_port()
        self.processes = {}

    def start(self, name, *words):
        with open(f"{self.folder}/{name}.log", "ab") as log:
            self.processes[name] = subprocess.Popen(words, stdout=log, stderr=log)

    def start_coordinator(self):
        """The first one begins the job, another one continues it."""
        settings = [word for setting in SETTINGS for word in ("--set", setting)]
        self.start("coordinator", f"{self.programs}/tributary-coordinator",
                   "--job", "examples/digits.yaml", *settings,
                   "--run-dir", f"{self.folder}/run", "--listen", f"127.0.0.1:{self.port}",
                   "--metrics-listen", f"127.0.0.1:{self.http}")

    def start_member(self, role, index, *words):
        self.start(f"{role}-{index}", f"{self.programs}/tributary-{role}", "--coordinator",
                   f"127.0.0.1:{self.port}", "--index", str(index), *words)

    def send(self, name, number):
        self.processes[name].send_signal(number)
        if number == signal.SIGKILL:
            self.processes[name].wait()

    def end(self):
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()

    def status(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http}/status.json") as answer:
            return json.load(answer)


class Checks:
    """Checks with a name, and pictures of the page."""

    def __init__(self, browser, folder, axe):
        self.browser, self.folder, self.axe = browser, folder, axe
        self.failed = 0

    def check(self, what, holds):
        print(f"{'ok' if holds else 'FAILED'}: {what}", flush=True)
        self.failed += not holds

    def shows(self, what, part, text):
        """Waits until this element shows the text."""
        found = self.browser.until(f"{TEXT.format(part)}.includes({json.dumps(text)})")
        self.check(what, found)
        if not found:
            print(f"       it shows: {self.browser.evaluate(TEXT.format(part))[:300]}")

    def look(self, name):
        """At both widths and in both colour schemes: a picture, no scrolling to the
        side, and what axe-core finds."""
        for width in WIDTHS:
            for dark in (False, True):
                scheme = "dark" if dark else "light"
                self.browser.look(width, dark)
                self.browser.screenshot(f"{self.folder}/{name}-{width}-{scheme}.png")
                wide = self.browser.evaluate("document.documentElement.scrollWidth")
                self.check(f"{name}, {width} px, {scheme}: as wide as the window",
                           wide <= width)
                self.accessible(f"{name}, {width} px, {scheme}")

    def accessible(self, name):
        if not self.axe:
            return
        self.browser.evaluate(f"{self.axe}; 0")
        found = self.browser.evaluate(
            "axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations.map("
            "(v) => `${v.id}: ${v.nodes.map((n) => n.html).join(' ').slice(0, 300)}`))")
        self.check(f"{name}: axe-core finds nothing", found == [])
        for line in found:
            print(f"       {line}")


def check_waiting(job, checks):
    job.start_coordinator()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            job.status()
            break
        except OSError:
            time.sleep(0.05)
    checks.browser.open(f"http://127.0.0.1:{job.http}/")
    checks.shows("before the members come the page says so", "phase", "waiting for members")
    checks.shows("and names those that are missing", "waits", "worker 1")
    checks.shows("markup in a name is text", "name", NAME)
    checks.look("waiting")


def check_running(job, checks):
    job.start_member("server", 0)
    for rank in (0, 1):
        job.start_member("worker", rank, *SLOW)
    checks.shows("the phase changes by itself", "phase", "running")
    checks.shows("evaluations appear", "tests-chart", "test accuracy")
    checks.shows("nobody is held up", "waits", "Nobody is held up")
    checks.shows("samples that are counted have a rate", "figures", "Samples per second")
    browser = checks.browser
    checks.check("every worker has a row of parts",
                 browser.until("document.querySelectorAll('#parts tbody tr').length === 3"))
    label = browser.evaluate(
        "document.querySelector('#loss-chart svg').getAttribute('aria-label')")
    checks.check("the chart is told in words", "training loss" in label and "lowest" in label)
    checks.look("running")


def check_keyboard(checks):
    browser = checks.browser
    browser.look(1440, False)
    browser.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
    reached, hidden = [], []
    for _ in range(20):
        browser.press("Tab")
        here = browser.evaluate(
            "(() => {const e = document.activeElement, s = getComputedStyle(e); return ["
            "e.id || e.textContent.trim().slice(0, 20), e === document.body || "
            "(s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2)]})()")
        if here[0] in reached:
            break
        reached.append(here[0])
        hidden += [] if here[1] else [here[0]]
        if here[0] == "pause":
            break
    for wanted in ("Skip to the content", "Loss as a table", "pause"):
        checks.check(f"Tab reaches {wanted!r}", wanted in reached)
    checks.check(f"the focus can be seen everywhere {hidden or ''}", not hidden)
    browser.press(" ", "Space")
    checks.shows("the space bar pauses the updates", "updated", "paused")
    before = sum(browser.requests.values())
    browser.wait(5)
    checks.check("paused, the page asks for nothing",
                 sum(browser.requests.values()) == before)
    browser.press("Enter")
    checks.shows("Enter goes on", "updated", "every 2 s")


def check_bytes(checks):
    browser = checks.browser
    before, asked = browser.bytes, sum(browser.requests.values())
    browser.wait(60)
    print(f"       {browser.bytes - before} bytes in a minute, "
          f"{sum(browser.requests.values()) - asked} requests", flush=True)
    checks.check("less than 250,000 bytes a minute", browser.bytes - before < 250_000)


def check_losses(job, checks):
    job.send("worker-1", signal.SIGSTOP)
    checks.shows("the page says who waits for a stopped worker", "waits",
                 "server 0 waits for worker 1")
    checks.shows("and since when", "waits", "since ")
    checks.shows("and that it is silent", "waits", "worker 1 has not been heard for")
    job.send("worker-1", signal.SIGKILL)
    checks.shows("a killed worker is lost", "members", "lost")
    checks.shows("and the job's wait has a name", "waits", "worker 1")
    checks.shows("the loss is an event", "events", "worker 1")
    checks.look("worker-killed")
    job.start_member("worker", 1, *SLOW)
    checks.shows("its replacement is an event", "events", "takes its place")
    checks.shows("the job goes on", "waits", "Nobody is held up")
    job.send("server-0", signal.SIGKILL)
    checks.shows("a killed server is an event", "events", "server 0")
    job.start_member("server", 0)
    checks.shows("the rollback is one, too", "safety", "Rollbacks1")
    checks.shows("the job goes on again", "waits", "Nobody is held up")


def check_replaced(job, checks):
    browser = checks.browser
    before = browser.evaluate("seen.history.loss[0][0]")
    job.send("coordinator", signal.SIGKILL)
    checks.shows("without its coordinator the page says so", "phase", "no answer")
    checks.shows("and since when", "silence", "since ")
    checks.look("coordinator-killed")
    loads = browser.requests[f"http://127.0.0.1:{job.http}/"]
    job.start_coordinator()
    checks.shows("it goes on by itself after another came", "phase", "running")
    checks.shows("the other coordinator is an event", "events", "another coordinator")
    checks.shows("the events before it are still there", "events", "takes its place")
    checks.shows("nobody is held up", "waits", "Nobody is held up")
    checks.check("it was not loaded again",
                 browser.requests[f"http://127.0.0.1:{job.http}/"] == loads)
    checks.check("the curve has its beginning",
                 browser.evaluate("seen.history.loss[0][0]") <= 2 * before)
    browser.open(f"http://127.0.0.1:{job.http}/")
    checks.shows("loaded again it shows the same events", "events", "takes its place")
    checks.shows("and the evaluations", "tests-chart", "test accuracy")
    checks.look("coordinator-replaced")


def check_console(checks, away):
    for text in checks.browser.errors:
        print(f"       {text}")
    checks.check("no error in the console, no exception", not checks.browser.errors)
    checks.check("no failed request while there was a coordinator",
                 all("CONNECTION_REFUSED" in text for text in away))


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    programs, folder = sys.argv[1:3]
    axe = open(sys.argv[3], encoding="utf-8").read() if len(sys.argv) == 4 else ""
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        job, browser = Job(programs, work), Browser(os.environ.get("CHROMIUM", "chromium"))
        checks = Checks(browser, folder, axe)
        try:
            check_waiting(job, checks)
            check_running(job, checks)
            check_keyboard(checks)
            check_bytes(checks)
            check_losses(job, checks)
            quiet = len(browser.network_errors)
            check_replaced(job, checks)
            check_console(checks, browser.network_errors)
            checks.check("none at all before it was killed", quiet == 0)
        finally:
            browser.close()
            job.end()
    sys.exit(checks.failed > 0)


if __name__ == "__main__":
    main()
