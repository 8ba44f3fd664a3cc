# SPDX-License-Identifier: Apache-2.0
"""The ways to run a job: which processes are started, and started again."""

import os
import shutil

import hosts
import jobs
import processes
from faults import SOURCE

HERE = os.path.dirname(os.path.abspath(__file__))


def groups_of(options):
    """Each option with its value."""
    groups = []
    for word in options:
        groups.append([]) if word.startswith("--") or not groups else None
        groups[-1].append(word)
    return groups


def missing(options, words):
    """The options that a command does not have yet."""
    found = []
    for name, *value in groups_of(options):
        has = value[0] in words if name == "--set" else name in words
        found += [] if has else [name, *value]
    return found


def without(options, words):
    """A command without these options, which get other values."""
    words = list(words)
    for name, *value in groups_of(options):
        if name in words:
            at = words.index(name)
            del words[at : at + 1 + len(value)]
    return words


class Train:
    """`tributary train`: the coordinator is part of the command."""

    def __init__(self, run):
        self.run = run
        self.trial = run.trial

    def prepare(self):
        """Makes what the way needs, once."""

    def remove(self):
        """Removes what `prepare` has made."""

    def run_dir(self, number):
        """The run directory of the attempt with this number."""
        return os.path.join(self.run.folder, f"run{number}")

    def beginning(self):
        """The words after `tributary` that begin the job."""
        return ["train", "job.yaml"]

    def resumption(self, path):
        return ["train", "--resume", path]

    def disk(self):
        if not self.trial.small_disk:
            return []
        return ["--set", f"checkpoint.directory={self.run.disk}"]

    def options(self):
        """Further options of each command."""
        words = self.disk()
        # The proxy flips bits of messages, which it cannot tell apart under TLS. A
        # connection that is sent again does not get beyond the handshake of TLS.
        rules = [getattr(fault, "rule", "") for fault in self.trial.faults]
        if any(" flip " in rule or " replay " in rule for rule in rules):
            words.append("--insecure")
        return words

    def start(self, words):
        """Starts the leader, whose exit code is the attempt's."""
        command, *words = without(self.run.changes, words)
        options = missing(self.options(), words)
        options += ["--run-dir", self.run.attempt.run_dir, *self.run.changes]
        self.run.leader = self.run.start("tributary", command, *options, *words)

    def begin(self):
        self.start(self.beginning())

    def resume(self, path):
        self.start(self.resumption(path))

    def go_on(self, words):
        """Pastes the command that the run has printed, without its first word."""
        self.start(words)

    def takes_over(self):
        """Whether a killed leader is started again in the same run directory."""
        return False

    def tend(self):
        """Starts members that have ended, if that is nobody else's task."""

    def kill(self):
        """Kills the leader and everything that does not end with it."""
        return self.run.signal_leader("SIGKILL")


class Daemons(Train):
    """The three daemons, restarted when they fail; resumed by `tributary train`."""

    def __init__(self, run):
        super().__init__(run)
        self.address = ""
        self.members = []  # role and process

    def begin(self):
        self.address, self.members = f"127.0.0.1:{processes.free_port()}", []
        self.take_over()

    def start(self, words):
        self.address, self.members = "", []
        super().start(words)

    def take_over(self):
        words = ["--job", "job.yaml", "--run-dir", self.run.attempt.run_dir]
        self.run.leader = self.run.start(
            "tributary-coordinator",
            *words,
            *("--listen", self.address),
            *self.disk(),
            *self.run.changes,
        )

    def takes_over(self):
        return bool(self.address)

    def tend(self):
        if not self.address:
            return
        self.members = [(r, p) for r, p in self.members if not p.poll()]
        workers = 1 if self.trial.name == "data_parallel" else self.run.workers
        for role, wanted in (("server", self.run.servers), ("worker", workers)):
            while sum(r == role for r, _ in self.members) < wanted:
                join = ["--coordinator", self.address, "--join-timeout", "20"]
                process = self.run.start(f"tributary-{role}", *join)
                self.members.append((role, process))

    def kill(self):
        fired = super().kill()
        for _, process in self.members:
            process.kill()
        return fired


class OnHosts(Train):
    """`tributary train` on the first of three hosts, with members on the others."""

    def prepare(self):
        self.hosts = hosts.Hosts(self.trial.seed)

    def remove(self):
        self.hosts.remove()

    def options(self):
        first, second, third = hosts.NAMES
        words = ["--listen", f"{first}:0", "--worker-hosts", f"{second},{third}"]
        words += ["--launch", "ip netns exec {host}"]
        if self.trial.has_groups():
            words.append("--insecure-groups")
        return super().options() + words

    def start(self, words):
        self.run.prefix = ["ip", "netns", "exec", hosts.NAMES[0]]
        super().start(words)


class Program(Train):
    """`tributary run` with a program in PyTorch."""

    def prepare(self):
        for name in ("program.py", "jobs.py"):
            shutil.copy(os.path.join(HERE, name), self.run.folder)
        self.run.variables["PYTHONPATH"] = os.path.join(SOURCE, "python")

    def program(self):
        kind = self.trial.optimizer[1:].split(":")[0]
        return ["program.py", kind, str(self.trial.epochs)]

    def beginning(self):
        words = ["run", "--python", self.run.tools.python]
        if self.trial.strategy.servers:
            words += ["--servers", str(self.trial.strategy.servers)]
        words += ["--workers", str(self.trial.strategy.workers)]
        if self.trial.every:
            words += ["--set", f"checkpoint.every_steps={self.trial.every}"]
        for field in (f"lease_seconds={self.trial.lease}", "max_restarts=20"):
            words += ["--set", f"cluster.{field}"]
        words += ["--set", f"strategy={jobs.strategy_block(self.trial)}"]
        return [*words, *self.program()]

    def resumption(self, path):
        return ["run", "--python", self.run.tools.python, "--resume", path] + (
            self.program()
        )
