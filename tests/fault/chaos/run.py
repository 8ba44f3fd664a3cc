# SPDX-License-Identifier: Apache-2.0
"""One trial: starts the processes of a job, injects its faults at their steps, goes on
after each end that a fault explains, and checks the last one."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import time

import causes
import checkpoints
import endings
import jobs
import judge
import processes
from faults import FROM_THE_START
from slurm import Slurm
from ways import Daemons, OnHosts, Program, Train

WAYS = {
    "train": Train,
    "daemons": Daemons,
    "hosts": OnHosts,
    "program": Program,
    "slurm": Slurm,
}
LIMIT_SECONDS = 300
LONG_LIMIT_SECONDS = 600


class Attempt:
    """A run directory, from its first process to the end of its leader."""

    def __init__(self, number, run_dir, folder, workers):
        self.number, self.run_dir, self.workers = number, run_dir, workers
        self.output = os.path.join(folder, f"output-{number}")
        self.signals = []  # to its leader: name, time
        self.is_taken_over = False  # by another leader, after it was killed
        self.is_refused_for = None  # a damaged file of the checkpoint it begins from
        self.passes_over = None  # such a file, if the way takes an older one by itself

    def text(self):
        """The output of its processes and its coordinator."""
        texts = []
        for path in (self.output, os.path.join(self.run_dir, "logs/coordinator.log")):
            try:
                with open(path, encoding="utf-8", errors="replace") as file:
                    texts.append(file.read())
            except FileNotFoundError:
                pass
        return "".join(texts)

    def checkpoints(self):
        return os.path.join(self.run_dir, "checkpoints")


class Run:
    def __init__(self, trial, folder, tools):
        self.trial, self.folder, self.tools = trial, folder, tools
        self.marked = processes.Marked(f"{os.path.basename(folder)}-{os.getpid()}")
        self.disk = os.path.join(folder, "disk")
        os.makedirs(os.path.join(folder, "fired"))
        with open(os.path.join(folder, "job.yaml"), "w", encoding="utf-8") as file:
            file.write(jobs.text(trial))
        self.variables, self.prefix = {}, []
        self.leader = self.proxy = self.control = None
        self.attempts, self.later = [], []
        self.servers, self.workers = trial.strategy.servers, trial.strategy.workers
        self.next_numbers = {}  # of servers or workers, from the next start
        self.changes = []  # options of every further start
        self.changed_from = None  # the checkpoint from which other workers go on
        self.damaged = {}  # path: content
        self.asked = []  # processes that have asked for a checkpoint
        self.killed_all = False
        self.waiting = [f for f in trial.faults if f.kind not in FROM_THE_START]
        self.way = WAYS[trial.way](self)

    # ---- starting

    @property
    def attempt(self):
        return self.attempts[-1]

    def environment(self):
        environment = dict(os.environ, **self.variables)
        environment[self.marked.name] = self.marked.value
        entries = [f.entry for f in self.trial.faults if f.kind == "failpoint"]
        if entries:
            environment["TRIBUTARY_FAILPOINT"] = ",".join(entries)
            environment["TRIBUTARY_FAILPOINT_FIRED"] = os.path.join(
                self.folder, "fired"
            )
        if self.proxy is not None:
            environment["TRIBUTARY_PROXY"] = self.control
            environment["LD_PRELOAD"] = os.path.join(
                self.tools.binaries, "libredirect_connections.so"
            )
        return environment

    def asked_output(self):
        return os.path.join(self.folder, f"asked-{len(self.asked) + 1}")

    def start(self, program, *words, to=None):
        if program != "bash":
            program = os.path.join(self.tools.binaries, program)
        command = [*self.prefix, program, *map(str, words)]
        with open(to or self.attempt.output, "a", encoding="utf-8") as output:
            print("+", shlex.join(command), file=output, flush=True)
            return subprocess.Popen(
                command,
                cwd=self.folder,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def start_proxy(self):
        rules = causes.rules_of(self.trial)
        if not rules:
            return
        self.control = f"/tmp/chaos-{os.getpid()}-{self.trial.seed}"
        words = ["--control", self.control, "--seed", str(self.trial.seed), *rules]
        self.proxy = subprocess.Popen(
            [os.path.join(self.tools.binaries, "fault-proxy"), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.proxy.stdout.readline()  # waits until the proxy listens

    def begin_attempt(self):
        number = len(self.attempts) + 1
        run_dir = self.way.run_dir(number)
        self.attempts.append(Attempt(number, run_dir, self.folder, self.workers))

    # ---- faults

    def steps_done(self):
        try:
            path = os.path.join(self.attempt.run_dir, "metrics.jsonl")
            with open(path, "rb") as file:
                file.seek(0, os.SEEK_END)
                file.seek(max(0, file.tell() - 4096))
                steps = re.findall(rb'"step":\s*(\d+)', file.read())
                return int(steps[-1]) if steps else 0
        except OSError:
            return 0

    def pid_of(self, role, index):
        path = os.path.join(self.attempt.run_dir, "logs/coordinator.log")
        try:
            with open(path, encoding="utf-8") as file:
                found = re.findall(rf"{role} {index} is .*pid (\d+)", file.read())
        except OSError:
            return 0
        return int(found[-1]) if found else 0

    def leader_pid(self):
        return self.leader.pid if self.leader.poll() is None else 0

    def signal_leader(self, name):
        self.note_signal(name)
        return processes.send(self.leader_pid(), getattr(signal, name))

    def note_signal(self, name):
        self.attempt.signals.append((name, time.monotonic()))

    def at(self, seconds, what):
        self.later.append((time.monotonic() + seconds, what))

    def fired_now(self):
        """The faults that have fired in this attempt."""
        number = self.attempt.number
        return [f for f in self.trial.faults if f.fired and f.attempt == number]

    def newest_checkpoint(self):
        """Of the latest attempt that has one, or None."""
        disk = [self.disk] if self.trial.small_disk else []
        own = [attempt.checkpoints() for attempt in reversed(self.attempts)]
        return checkpoints.newest(disk + own)

    # ---- the trial

    def execute(self, references, begins_from=None):
        """Runs the trial, from the beginning or a checkpoint.

        Returns None, or what is wrong with how it ended.
        """
        try:
            self.way.prepare()
            if self.trial.small_disk:
                os.mkdir(self.disk)
                disk = ["-t", "tmpfs", "-o", "size=64k", "chaos", self.disk]
                subprocess.run(["mount", *disk], check=True)
            self.start_proxy()
            self.begin_attempt()
            if begins_from is None:
                self.way.begin()
            else:
                self.way.resume(begins_from)
            return self.watch() or judge.what_is_wrong(self, references)
        finally:
            self.clean()

    def watch(self):
        limit = LONG_LIMIT_SECONDS if self.trial.long else LIMIT_SECONDS
        until = time.monotonic() + limit
        while time.monotonic() < until:
            self.let_faults_come()
            code = self.leader.poll()
            if code is None:
                self.way.tend()
            elif code == 0:
                return endings.wait_for_members(self)
            elif problem := endings.go_on(self, code):
                return problem
            time.sleep(0.005)
        return f"it still runs after {limit} s: {self.last_words()}"

    def do_what_is_due(self):
        for due, what in [e for e in self.later if e[0] <= time.monotonic()]:
            self.later.remove((due, what))
            what()

    def let_faults_come(self):
        self.do_what_is_due()
        causes.continue_stopped(self)
        while self.waiting and self.has_reached(self.waiting[0]):
            fault = self.waiting.pop(0)
            fault.attempt, fault.at = self.attempt.number, time.time()
            fault.fired = causes.cause(self, fault)

    def has_reached(self, fault):
        return self.steps_done() >= fault.when * self.trial.steps

    def last_words(self):
        with open(self.attempt.output, encoding="utf-8", errors="replace") as file:
            return " | ".join(file.read().splitlines()[-3:])[-600:]

    def clean(self):
        self.marked.kill()
        if self.proxy is not None:
            told, _ = self.proxy.communicate()  # closes its input, which ends it
            causes.count_rules(self.trial, told.splitlines())
        if self.trial.small_disk:
            subprocess.run(
                ["umount", "-l", self.disk], capture_output=True, check=False
            )
        self.way.remove()

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)
