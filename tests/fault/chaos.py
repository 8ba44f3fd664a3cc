# SPDX-License-Identifier: Apache-2.0
"""Random jobs under random faults: tests/fault/chaos.sh --help.

A seed draws a job, a strategy, a way to run it and one to five faults; the run
must end as if nothing had happened. chaos_run.py starts and watches processes.
"""

import argparse
import collections
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

import chaos_run

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

JOB = """name: chaos
model:
  sequential:
    - linear: {in: 16, out: 96}
    - tanh
    - dropout: {p: 0.1}
    - linear: {in: 96, out: 1}
data:
  train: {synthetic: {kind: mlp_teacher, rows: 1250}}
  test: {synthetic: {kind: mlp_teacher, rows: 200, first_row: 1000000}}
  batch_size: 20
training:
  epochs: %(epochs)d
  loss: mse
  gradient_accumulation: 2
  optimizer: %(optimizer)s
strategy: %(block)s
%(checkpoint)scluster: {servers: %(servers)d, workers: %(workers)d, lease_seconds: %(lease)d,
  on_worker_loss: %(on_loss)s, max_restarts: 20}
"""
ROWS_PER_STEP = 40  # of each replica

# block, servers, workers, group of strategies that end with the same bits ("" for
# one whose bits depend on timing).
Strategy = collections.namedtuple("Strategy", "block servers workers bits")
STRATEGIES = {
    "ps1": Strategy("parameter_server", 1, 2, "data"),
    "ps2": Strategy("parameter_server", 2, 2, "data"),
    "ps3": Strategy("parameter_server", 3, 2, "data"),
    "all_reduce": Strategy("all_reduce", 0, 2, "data"),
    "sharded": Strategy("{all_reduce: {sharded: true}}", 0, 2, "data"),
    "data_parallel": Strategy("data_parallel", 0, 2, "data"),
    "ps_tp2": Strategy("{tensor_parallel: 2}", 2, 4, "ps_tp"),
    "ar_tp2": Strategy("{all_reduce: {}, tensor_parallel: 2}", 0, 4, "tp"),
    "ps_pp2": Strategy("{pipeline_parallel: {stages: 2}}", 2, 4, "pp"),
    "ar_pp2": Strategy("{all_reduce: {}, pipeline_parallel: {stages: 2}}", 0, 4, "pp"),
    "top_k": Strategy("{parameter_server: {wire: top_k, top_k_fraction: 0.05}}", 2, 2, "top_k"),
    "async": Strategy("{parameter_server: {sync: async}}", 2, 2, ""),
    "ssp": Strategy("{parameter_server: {sync: {ssp: {staleness: 3}}}}", 2, 2, ""),
    "local_sgd": Strategy("{parameter_server: {sync: {local_sgd: {period: 4}}}}", 2, 2, "local"),
    "backup": Strategy("{parameter_server: {sync: {bsp: {backup_workers: 1}}}}", 2, 3, ""),
}
OPTIMIZERS = ["{sgd: {learning_rate: 0.05, momentum: 0.9}}", "{adam: {learning_rate: 0.003}}"]
# Momentum diverges with stale or delayed gradients, and the state of a worker's local
# optimizer is lost with the worker (docs/consistency.md).
OPTIMIZERS_OF = {"": ["{sgd: {learning_rate: 0.01}}", "{adam: {learning_rate: 0.003}}"],
                 "top_k": ["{sgd: {learning_rate: 0.01}}", "{adam: {learning_rate: 0.003}}"],
                 "local": ["{sgd: {learning_rate: 0.05}}"]}

# Rules of the proxy; BYTES is drawn from the seed.
PROXY_RULES = {
    "delay": "{w}>{s} both delay ms=5",
    "stall": "{w}>{s} both stall after=BYTES ms=1000",
    "answers lost": "{w}>{s} back drop after=BYTES ms=700",
    "resets": "{w}>{s} both reset after=BYTES every=400000 times=10",
    "flips": "{w}>{s} both flip after=BYTES every=300000 times=10",
    "replays": "{w}>{s} there replay after=BYTES every=500000 times=5",
    "coordinator resets": "*>coordinator both reset after=9000 every=9000 times=5",
    "coordinator silent": "*>coordinator back drop after=9000 ms=900",
}
GROUP_RULES = {
    "late ranks": "worker*>worker* both delay ms=3",
    "silent ranks": "worker*>worker* both stall after=BYTES ms=1000",
    "group reset": "worker*>worker* both reset after=BYTES",
}


def failpoints():
    """The failpoints that docs/failures.md lists."""
    with open(os.path.join(SOURCE, "docs/failures.md"), encoding="utf-8") as file:
        text = file.read()
    table = text[text.index("## Failpoints"):text.index("## Disturbed")]
    return re.findall(r"^\| `([a-z-]+)` \|", table, re.M)


class Fault:
    """A fault's kind, its time (as a fraction of the steps), and further parameters."""

    def __init__(self, kind, when, **more):
        self.kind, self.when, self.fired = kind, when, False
        self.__dict__.update(more)

    def __str__(self):
        more = [str(v) for k, v in sorted(self.__dict__.items())
                if k not in ("kind", "when", "fired")]
        return " ".join([self.kind] + more) + f" @{self.when:.2f}"


class Trial:
    """Everything that a seed determines."""

    def __init__(self, seed, can_make_hosts):
        draw = random.Random(seed)
        self.seed = seed
        self.name = draw.choice(sorted(STRATEGIES))
        self.strategy = STRATEGIES[self.name]
        ways = ["train", "train", "daemons"]
        if can_make_hosts:
            ways.append("hosts")
        if self.name == "data_parallel":
            ways = ["train", "daemons"]
        self.way = draw.choice(ways)
        self.epochs = draw.choice([40, 60])
        self.optimizer = draw.choice(OPTIMIZERS_OF.get(self.strategy.bits, OPTIMIZERS))
        self.every = draw.choice([0, 12, 40, 100])
        self.lease = draw.choice([2, 3])
        # A lost rank of a group, or one with a residual, is not taken over alone.
        whole = self.strategy.servers > 0 and self.strategy.workers < 4 and self.name != "top_k"
        self.on_loss = draw.choice(["wait", "wait", "shrink"]) if whole else "wait"
        self.small_disk = self.every > 0 and can_make_hosts and draw.random() < 0.15
        replicas = 2 if self.strategy.workers == 4 else self.strategy.workers
        self.steps = self.epochs * -(-1250 // (ROWS_PER_STEP * replicas))
        self.faults = [self.draw_fault(draw) for _ in range(draw.randint(1, 5))]
        self.faults.sort(key=lambda fault: fault.when)
        # The proxy sees payloads only where they are sent.
        self.transport = draw.choice(["auto", "grpc"])

    def draw_fault(self, draw):
        when = draw.uniform(0.03, 0.85)
        kinds = ["kill", "kill", "kill several", "pause", "long pause", "failpoint",
                 "kill coordinator", "pause coordinator", "kill everything"]
        if self.every > 0:
            kinds += ["SIGINT", "SIGTERM"]
        if self.way == "hosts":
            kinds += ["link down", "one way"]
        else:
            kinds += ["proxy"]
        kind = draw.choice(kinds)
        members = [("server", i) for i in range(self.strategy.servers)]
        members += [("worker", i) for i in range(self.strategy.workers)]
        if kind in ("kill", "pause", "long pause"):
            role, index = draw.choice(members)
            more = {"role": role, "index": index}
            if kind == "pause":
                more["seconds"] = round(draw.uniform(0.1, 1.0), 2)
            if kind == "long pause":
                more["seconds"] = self.lease + round(draw.uniform(1.0, 4.0), 2)
            return Fault(kind, when, **more)
        if kind == "kill several":
            return Fault(kind, when, victims=draw.sample(members, draw.randint(2, len(members))))
        if kind == "pause coordinator":
            return Fault(kind, when, seconds=round(draw.uniform(0.2, 1.5), 2))
        if kind == "failpoint":
            action = draw.choice(["kill", "kill", "stop", "delay=300"])
            return Fault(kind, 0, entry=f"{draw.choice(failpoints())}:{draw.randint(1, 400)}:{action}")
        if kind == "proxy":
            groups = self.strategy.workers == 4 or self.name in ("all_reduce", "sharded")
            rules = dict(PROXY_RULES, **(GROUP_RULES if groups else {}))
            name = draw.choice(sorted(rules))
            to = "server*" if self.strategy.servers else "coordinator"
            rule = rules[name].format(w="worker*", s=to)
            return Fault(kind, 0, rule=rule.replace("BYTES", str(draw.randint(2000, 900000))))
        if kind in ("link down", "one way"):
            return Fault(kind, when, host=draw.randint(2, 3), seconds=round(
                draw.choice([draw.uniform(0.2, 1.0), draw.uniform(3, 6)]), 2))
        return Fault(kind, when)

    def block(self):
        """The strategy with the trial's transport."""
        block = self.strategy.block
        if self.strategy.servers == 0:
            return block
        server = f"parameter_server: {{transport: {self.transport}"
        if block == "parameter_server":
            return f"{{{server}}}}}"
        if "parameter_server: {" in block:
            return block.replace("parameter_server: {", server + ", ")
        return block.replace("{", f"{{{server}}}, ", 1)

    def job(self):
        return JOB % {"epochs": self.epochs, "optimizer": self.optimizer,
                      "block": self.block(), "checkpoint":
                      f"checkpoint: {{every_steps: {self.every}}}\n" if self.every else "",
                      "servers": self.strategy.servers, "workers": self.strategy.workers,
                      "lease": self.lease, "on_loss": self.on_loss}

    def __str__(self):
        return (f"{self.name} by {self.way}, {self.transport}, {self.epochs} epochs, {self.optimizer.split(':')[0]}}}, "
                f"every {self.every}, lease {self.lease}, {self.on_loss}"
                f"{', small disk' if self.small_disk else ''}: "
                + ("; ".join(map(str, self.faults))))


def undisturbed(trial, work, binaries, known):
    """The sha256 of the job without faults; one run for all trials that share it."""
    key = (trial.strategy.bits, trial.epochs, trial.optimizer)
    if key not in known:
        folder = tempfile.mkdtemp(dir=work)
        with open(os.path.join(folder, "job.yaml"), "w", encoding="utf-8") as file:
            file.write(trial.job())
        done = subprocess.run(
            [os.path.join(binaries, "tributary"), "train", "job.yaml", "--run-dir", "run",
             "--set", "cluster.lease_seconds=30"],
            cwd=folder, capture_output=True, text=True, timeout=200, check=False)
        if done.returncode != 0:
            raise RuntimeError("the undisturbed run failed: " + done.stdout + done.stderr)
        known[key] = chaos_run.summary(os.path.join(folder, "run"))["weights_sha256"]
        shutil.rmtree(folder)
    return known[key]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[1], prog="chaos.sh")
    parser.add_argument("--minutes", type=float, default=2)
    parser.add_argument("--seed", type=int, default=1, help="the first; the next ones follow")
    parser.add_argument("--only", type=int, help="this seed alone; its folder is kept")
    parser.add_argument("--list", type=int, help="say what so many seeds draw, run nothing")
    parser.add_argument("--binaries", default=os.path.join(SOURCE, "build/release/bin"))
    options = parser.parse_args()
    hosts = chaos_run.can_make_hosts()
    first = options.only if options.only is not None else options.seed
    if options.list:
        for seed in range(first, first + options.list):
            print(f"seed {seed}: {Trial(seed, hosts)}")
        return 0
    work = tempfile.mkdtemp(prefix="chaos-")
    until = time.monotonic() + 60 * options.minutes
    known, failed, fired, drawn, trials = {}, [], collections.Counter(), collections.Counter(), 0
    per = collections.defaultdict(lambda: [0, 0])
    seed = first
    while (options.only is None and time.monotonic() < until) or seed == options.only:
        trial = Trial(seed, hosts)
        begin = time.monotonic()
        wanted = undisturbed(trial, work, options.binaries, known) if trial.strategy.bits else None
        run = chaos_run.Run(trial, os.path.join(work, f"seed-{seed}"), options.binaries)
        problem = run.execute(wanted)
        trials += 1
        for fault in trial.faults:
            drawn[fault.kind] += 1
            fired[fault.kind] += fault.fired
        for what in (trial.name, trial.way):
            per[what][0] += 1
            per[what][1] += problem is not None
        print(f"seed {seed}: {'ok' if problem is None else 'FAILED'} in "
              f"{time.monotonic() - begin:.1f} s: {trial}; fired "
              f"{sum(fault.fired for fault in trial.faults)}", flush=True)
        if problem is not None:
            failed.append(seed)
            print(f"  {problem}\n  files: {run.folder}\n"
                  f"  again: tests/fault/chaos.sh --only {seed}", flush=True)
        elif options.only is None:
            shutil.rmtree(run.folder, ignore_errors=True)
        seed += 1
    print("faults, fired of drawn: " + ", ".join(f"{k} {fired[k]}/{drawn[k]}" for k in sorted(drawn)))
    print("failed of trials: " + ", ".join(f"{k} {v[1]}/{v[0]}" for k, v in sorted(per.items())))
    print(f"{trials} trials, {sum(fired.values())} faults fired, failed seeds: {failed}")
    if not failed and options.only is None:
        shutil.rmtree(work, ignore_errors=True)
    return 1 if failed or sum(fired.values()) == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
