# SPDX-License-Identifier: Apache-2.0
"""Runs a job on simulated hosts with slow links (bench/slow_links/shaped_hosts.sh)."""

import contextlib
import json
import os
import subprocess
import sys

PREFIX = "shaped"
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shaped_hosts.sh")
COORDINATOR = "10.77.0.1:7070"


@contextlib.contextmanager
def hosts(number, rate):
    """As many hosts, each with one link of this rate. Needs root."""
    subprocess.run([SCRIPT, "up", str(number), rate, PREFIX], check=True)
    try:
        yield
    finally:
        subprocess.run([SCRIPT, "down", PREFIX], check=True)


def on_host(host, *command):
    return subprocess.Popen(["ip", "netns", "exec", f"{PREFIX}{host}", *command],
                            stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)


def train(directory, job, run, servers, workers, settings=()):
    """Trains on servers + workers hosts with the programs of a directory, and
    returns the run's summary. The coordinator is on the first host."""
    program = lambda name: os.path.join(directory, f"tributary-{name}")
    settings = [f"cluster.servers={servers}", f"cluster.workers={workers}", *settings]
    processes = [on_host(1, program("coordinator"), "--job", job, "--run-dir", run,
                         "--listen", COORDINATOR, "--insecure",
                         *[word for s in settings for word in ("--set", s)])]
    for host in range(1, servers + 1):
        processes.append(on_host(host, program("server"), "--coordinator", COORDINATOR,
                                 "--listen", f"10.77.0.{host}:0", "--insecure"))
    for host in range(servers + 1, servers + workers + 1):
        processes.append(on_host(host, program("worker"), "--coordinator", COORDINATOR))
    try:
        for process in processes:
            if process.wait(timeout=300) != 0:
                sys.exit(f"{process.args} failed")
    finally:
        for process in processes:
            process.kill()
    with open(os.path.join(run, "summary.json")) as file:
        return json.load(file)
