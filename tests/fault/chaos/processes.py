# SPDX-License-Identifier: Apache-2.0
"""Processes, ports and what this machine can do."""

import itertools
import os
import signal
import socket
import subprocess

# The ports belong to this process alone, so several can run in parallel. The kernel
# uses none of them for outgoing connections.
FIRST_PORT = 12000 + os.getpid() % 200 * 100
PORTS = itertools.cycle(range(FIRST_PORT, FIRST_PORT + 100))


def state_of(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "gone"


def alive(pid):
    return pid > 0 and state_of(pid) not in ("gone", "Z", "X")


def send(pid, what):
    """Whether the process was alive and has got the signal."""
    if not alive(pid):
        return False
    os.kill(pid, what)
    return True


def free_port():
    while True:
        port = next(PORTS)
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


class Marked:
    """All processes whose environment has this variable."""

    def __init__(self, value):
        self.name, self.value = "TRIBUTARY_CHAOS", value

    def pids(self):
        mark = f"{self.name}={self.value}".encode()
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    mine = mark in file.read().split(b"\0")
            except OSError:
                continue
            if mine and alive(int(pid)):
                found.append(int(pid))
        return found

    def signal(self, what):
        """Whether any of them has got it."""
        return any([send(pid, what) for pid in self.pids()])

    def kill(self):
        """Also those that are just being started."""
        while self.signal(signal.SIGKILL):
            pass


def can_make_hosts():
    if os.geteuid() != 0:
        return False
    probe = f"chaos-probe-{os.getpid()}"
    try:
        made = subprocess.run(
            ["ip", "netns", "add", probe], capture_output=True, check=False
        )
        subprocess.run(["ip", "netns", "del", probe], capture_output=True, check=False)
    except FileNotFoundError:
        return False
    return made.returncode == 0


def can_train_programs(python, source):
    """Whether this Python has torch and the package with its native module."""
    try:
        done = subprocess.run(
            [python, "-c", "import torch, tributary.torch, tributary._native"],
            env=dict(os.environ, PYTHONPATH=os.path.join(source, "python")),
            capture_output=True,
            check=False,
        )
    except OSError:
        return False
    return done.returncode == 0
