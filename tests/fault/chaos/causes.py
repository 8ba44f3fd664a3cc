# SPDX-License-Identifier: Apache-2.0
"""Injects faults into a run."""

import os
import signal
import time

import checkpoints
import processes
from faults import STOPPING

ZEROS = 200_000


def cause(run, fault):
    """Whether the fault has met a living process."""
    return CAUSES[fault.kind](run, fault)


def pause(run, pid, seconds):
    run.at(seconds, lambda: processes.send(pid, signal.SIGCONT))
    return processes.send(pid, signal.SIGSTOP)


def kill_member(run, role, index):
    return processes.send(run.pid_of(role, index), signal.SIGKILL)


def kill_several(run, fault):
    pids = {run.pid_of(*victim) for victim in fault.victims}
    return any([processes.send(pid, signal.SIGKILL) for pid in pids])


def kill_coordinator(run, fault):
    run.killed_all |= not run.way.takes_over()
    return run.signal_leader("SIGKILL")


def kill_everything(run, fault):
    run.killed_all = True
    return run.way.kill()


def signal_twice(run, fault):
    """Two signals to the same command, if the second one is sent before it ends."""
    number = run.attempt.number

    def again():
        if run.attempt.number == number:
            run.signal_leader("SIGTERM")

    run.at(fault.seconds, again)
    return run.signal_leader("SIGTERM")


def drain(run, fault):
    """A daemon gives its place back; its supervisor starts another."""
    return processes.send(run.pid_of(fault.role, fault.index), signal.SIGTERM)


def take_checkpoint(run, fault):
    """A person asks for one; the answer is looked at in the end."""
    words = ["checkpoint", "take", run.attempt.run_dir, "--timeout", "8"]
    run.asked.append(run.start("tributary", *words, to=run.asked_output()))
    return True


def add_zeros(run):
    """Adds the zeros that some file systems leave at a file's end after a power cut."""
    path = os.path.join(run.attempt.run_dir, "metrics.jsonl")
    with open(path, "ab") as file:
        file.write(bytes(ZEROS))
    return path


def disturb_link(run, fault):
    hosts = run.way.hosts
    hosts.disturb(fault, True)
    run.at(fault.seconds, lambda: hosts.disturb(fault, False))
    return True


def change(run, fault):
    """Stops the run, or kills everything; the next start has other numbers."""
    run.next_numbers[fault.kind.split()[1]] = fault.number
    return kill_everything(run, fault) if fault.killed else run.signal_leader("SIGTERM")


def damage_alive(run, fault):
    """Damages the newest checkpoint and lets the job lose what it must restore."""
    if not damage(run, fault, checkpoints.newest([run.attempt.checkpoints()])):
        return False
    role = "server" if run.trial.strategy.servers else "worker"
    return kill_member(run, role, 0)


def damage(run, fault, folder):
    """Damages a checkpoint. False: there is none, or the job has just removed it."""
    path = folder and checkpoints.damage(folder, fault.how, fault.which)
    fault.folder, fault.damaged_at = folder if path else None, time.time()
    if path:
        with open(path, "rb") as file:
            run.damaged[path] = file.read()
    return bool(path)


def damage_in(run, folder):
    """The damaged file of a checkpoint, or None: also if it was written anew."""
    if folder is None:
        return None
    for path, content in run.damaged.items():
        if os.path.dirname(path) != folder:
            continue
        try:
            with open(path, "rb") as file:
                if file.read() == content:
                    return path
        except FileNotFoundError:
            pass
    return None


CAUSES = {
    "kill": lambda run, f: kill_member(run, f.role, f.index),
    "kill several": kill_several,
    "pause": lambda run, f: pause(run, run.pid_of(f.role, f.index), f.seconds),
    "long pause": lambda run, f: pause(run, run.pid_of(f.role, f.index), f.seconds),
    "kill coordinator": kill_coordinator,
    "pause coordinator": lambda run, f: pause(run, run.leader_pid(), f.seconds),
    "kill everything": kill_everything,
    "drain": drain,
    "take checkpoint": take_checkpoint,
    "zeros in the log": lambda run, f: run.signal_leader("SIGKILL"),
    **dict.fromkeys(STOPPING, lambda run, f: run.signal_leader(f.kind)),
    "SIGTERM twice": signal_twice,
    "damage": kill_everything,
    "damage alive": damage_alive,
    "other servers": change,
    "other workers": change,
    "link down": disturb_link,
    "one way": disturb_link,
    "node failure": kill_everything,
    "preempted": lambda run, f: run.way.terminate(),
    "time is up": lambda run, f: run.way.time_is_up(),
    "cancelled": lambda run, f: run.way.terminate(),
}


# ---- what is in effect from the beginning


def rules_of(trial):
    """The rules of the proxy."""
    rules = []
    for fault in trial.faults:
        rules += [fault.rule] if hasattr(fault, "rule") else []
        rules += [fault.delay] if hasattr(fault, "delay") else []
    return rules


def count_rules(trial, lines):
    """Notes which rules have fired, from what the proxy says at its end."""
    times = {line.split(" ", 1)[1]: int(line.split()[0]) for line in lines}
    for fault in trial.faults:
        if hasattr(fault, "rule"):
            wanted = 2 if fault.kind == "two resets" else 1
            fault.fired = times[fault.rule] >= wanted


def continue_stopped(run):
    """Continues processes half a second after a failpoint stopped them."""
    for fault in run.trial.faults:
        if fault.kind != "failpoint" or fault.fired:
            continue
        mark = os.path.join(run.folder, "fired", fault.entry.rsplit(":", 1)[0])
        if not os.path.exists(mark):
            continue
        with open(mark, encoding="utf-8") as file:
            words = file.read().split()
        if len(words) < 2:
            continue  # still being written
        fault.fired, fault.attempt = True, run.attempt.number
        if words[1] == "stop":
            pid = int(words[0])
            run.at(0.5, lambda pid=pid: processes.send(pid, signal.SIGCONT))
