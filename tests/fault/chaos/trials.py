# SPDX-License-Identifier: Apache-2.0
"""A trial: everything that a seed determines, equal on every machine."""

import copy
import random

import faults
import jobs

WAYS = ["train", "train", "train", "daemons", "daemons", "hosts", "slurm", "program"]
# A program says itself what its optimizer is.
PROGRAMS = ("ps1", "ps2", "ps3", "all_reduce", "sharded")


class Trial:
    def __init__(self, seed):
        draw = random.Random(seed)
        self.seed = seed
        self.way = draw.choice(WAYS)
        self.name = draw.choice(self.names())
        self.strategy = jobs.STRATEGIES[self.name]
        self.optimizer = draw.choice(
            jobs.OPTIMIZERS_OF.get(self.strategy.bits, jobs.OPTIMIZERS)
        )
        self.lease = draw.choice([2, 3])
        # The proxy sees payloads only where they are sent.
        self.transport = draw.choice(["auto", "grpc"])
        self.long = self.way in ("train", "daemons") and draw.random() < 0.05
        self.draw_length(draw)
        self.on_loss = draw.choice(self.policies())
        self.small_disk = (
            self.every > 0
            and self.way in ("train", "daemons", "hosts")
            and not self.long
            and draw.random() < 0.15
        )
        self.timeout = 0
        self.faults = []
        self.draw_faults(draw)
        self.ask_for_checkpoints()
        # Stays with the undisturbed run that other workers begin.
        self.global_batch = self.draws("other workers")
        if self.draws("two resets"):
            self.make_slow()
        self.steps = self.epochs * jobs.steps_per_epoch(jobs.replicas(self.strategy))

    def names(self):
        """The strategies that can run in this way."""
        if self.way == "program":
            return PROGRAMS
        one_process = ("hosts", "slurm")
        return [
            name
            for name in sorted(jobs.STRATEGIES)
            if name != "data_parallel" or self.way not in one_process
        ]

    def draw_length(self, draw):
        """A long run has many evaluations and checkpoints."""
        self.epochs = draw.choice([100, 150] if self.long else [40, 60])
        self.every = draw.choice([4, 8] if self.long else [0, 12, 40, 100])
        self.evaluate = draw.choice([2, 4] if self.long else [0, 0, 28])
        # A program evaluates by itself; the others cannot keep the best weights.
        if self.way == "program" or self.name in ("backup", "local_sgd"):
            self.evaluate = 0
        if self.way == "program":
            self.epochs = 20  # it starts slowly

    def policies(self):
        """The values of on_worker_loss that can be drawn."""
        policies = ["wait", "wait", "wait"]
        # A lost rank of a group, or one with a residual, is not taken over alone.
        strategy = self.strategy
        alone = strategy.servers > 0 and strategy.workers < 4 and self.name != "top_k"
        if alone and self.way in ("train", "daemons", "hosts"):
            policies += ["shrink", "shrink"]
        if self.way in ("train", "slurm"):
            policies.append("fail")
        return policies

    def draw_faults(self, draw):
        # Trials that take long have few faults: programs start slowly.
        slow = self.long or self.way == "program"
        number = draw.randint(0 if self.long else 1, 2 if slow else 5)
        for _ in range(number):
            self.faults.append(faults.draw_fault(draw, self))
        if self.long:
            when = round(draw.uniform(0.8, 0.95), 3)
            self.faults.append(faults.Fault("kill coordinator", when))
        self.faults.sort(key=lambda fault: fault.when)

    def ask_for_checkpoints(self):
        """Drawn apart, so that the other choices of a seed stay as they were."""
        draw = random.Random(self.seed + 0.5)
        if self.way not in ("train", "daemons", "program") or draw.random() < 0.6:
            return
        for _ in range(draw.randint(1, 2)):
            when = round(draw.uniform(0.03, 0.9), 3)
            self.faults.append(faults.Fault("take checkpoint", when))
        self.faults.sort(key=lambda fault: fault.when)

    def make_slow(self):
        """Lets a recomputation last longer than groups may break."""
        self.every, self.lease, self.timeout, self.epochs = 0, 2, 4, 3
        self.evaluate, self.small_disk = 0, False
        kept = ("two resets", "kill", "pause", "proxy", "SIGTERM", "SIGINT")
        kept += ("take checkpoint",)
        self.faults = [fault for fault in self.faults if fault.kind in kept]

    def members(self):
        """Role and index of each server and worker."""
        servers = [("server", i) for i in range(self.strategy.servers)]
        return servers + [("worker", i) for i in range(self.strategy.workers)]

    def has_groups(self):
        return self.strategy.workers == 4 or self.name in ("all_reduce", "sharded")

    def draws(self, kind):
        return any(fault.kind == kind for fault in self.faults)

    def undisturbed(self):
        """The same job without faults and without what prepares for them."""
        trial = copy.copy(self)
        trial.way = "program" if self.way == "program" else "train"
        trial.faults, trial.small_disk, trial.every = [], False, 0
        trial.on_loss, trial.lease, trial.timeout = "wait", 30, 0
        return trial

    def needs(self):
        """What the machine must have for it."""
        needs = {"hosts": ["hosts"], "program": ["torch"]}.get(self.way, [])
        return needs + ["disks"] if self.small_disk else needs

    def __str__(self):
        words = [
            f"{self.name} by {self.way}",
            self.transport,
            f"{self.epochs} epochs",
            self.optimizer.split(":")[0] + "}",
            f"every {self.every}",
            f"evaluates every {self.evaluate}" if self.evaluate else "",
            f"lease {self.lease}",
            self.on_loss,
            "small disk" if self.small_disk else "",
            "long" if self.long else "",
        ]
        faults_of = "; ".join(map(str, self.faults))
        return ", ".join(word for word in words if word) + ": " + faults_of
