#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the cost model name the strategy that wins?

Runs `tributary compare` among hosts whose links are shaped (slow_links/shaped_hosts.sh): the
coordinator, each server and each worker have a host of their own. For each rate of
the links, number of workers and model one command trains with a parameter server
of every number of servers, all-reduce, sharded all-reduce, tensor and pipeline
parallelism, and predicts each before, knowing the job, the links' rate, latency
and burst, how fast this machine computes the model alone (tributary-worker
--measure-compute) and how many cores all processes share, but no measured step.
This script compares the median steps with the predictions.

usage: bench/plan_grid.py RESULTS.jsonl [--build build/release]
           [--rates 50,100,200,500,1000] [--workers 2,4] [--servers 1,2,4]
           [--models small,large] [--strategies ...] [--seconds 4]
           [--pages DIR] [--report]

Each run adds a line to RESULTS.jsonl once its comparison is done; runs that are there
already are not repeated, so an interrupted grid continues. --pages keeps every comparison's
page. --report runs nothing and prints the tables; --predict repeats the predictions of all
runs in the file. Needs root for the hosts.
"""

import argparse
import collections
import itertools
import json
import os
import pathlib
import random
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

from plan_grid_report import Cell, name, report

HERE = pathlib.Path(__file__).resolve().parent
PREFIX = "10.77.0."  # the hosts' names are their addresses
BURST = "256KiB"  # as in slow_links/shaped_hosts.sh
COORDINATOR, FIRST_SERVER, FIRST_WORKER = 1, 2, 6
SERVER_HOSTS = 4
HOSTS = 9
ROWS = 2048

# Wide layers; a step sends 0.8 or 7.5 MB in each direction.
MODELS = {
    "small": [784, 256, 10],
    "large": [784, 1024, 1024, 10],
}

JOB = """name: {name}
model:
  sequential:
    - flatten
{layers}
data:
  train: {{idx: {{images: images.idx, labels: labels.idx}}}}
  global_batch_size: 256
  shuffle: none
training:
  steps: {steps}
  loss: cross_entropy
  optimizer: {{sgd: {{learning_rate: 0.01}}}}
strategy: {strategy}
cluster: {{servers: {servers}, workers: {workers}}}
device: cpu
"""

# With blocks of 256 KiB on all servers, new weights are received while gradients
# are still being sent.
BLOCK = 256 * 1024
SERVERS = "{parameter_server: {bucket_bytes: 256KiB}}"
STRATEGIES = {
    "parameter_server": SERVERS,
    "all_reduce": "{all_reduce: {}}",
    "sharded": "{all_reduce: {sharded: true}}",
    "tensor": "{all_reduce: {}, tensor_parallel: {ranks: 2}}",
    "pipeline": "{all_reduce: {}, pipeline_parallel: {stages: 2, "
                "micro_batches: 4, schedule: 1f1b}}",
}

# The names that `tributary compare` uses.
NAMES = {
    "parameter_server": "parameter_server",
    "all_reduce": "all_reduce",
    "sharded": "all_reduce:sharded",
    "tensor": "tensor_parallel:2",
    "pipeline": "pipeline_parallel:2:1f1b:4",
}


def write_data(folder):
    """Images of noise, because the time of a step does not depend on them."""
    noise = random.Random(1)
    (folder / "images.idx").write_bytes(
        struct.pack(">IIII", 0x803, ROWS, 28, 28) + noise.randbytes(ROWS * 784))
    (folder / "labels.idx").write_bytes(
        struct.pack(">II", 0x801, ROWS) +
        bytes(noise.randrange(10) for _ in range(ROWS)))


def parameter_bytes(model):
    widths = MODELS[model]
    return 4 * sum((wide + 1) * out for wide, out in itertools.pairwise(widths))


def write_job(folder, cell, steps):
    widths = MODELS[cell.model]
    layers = []
    for i, (wide, out) in enumerate(itertools.pairwise(widths)):
        layers.append(f"    - linear: {{in: {wide}, out: {out}}}")
        if i + 2 < len(widths):
            layers.append("    - relu")
    path = folder / "job.yaml"
    path.write_text(JOB.format(
        name=cell.model, layers="\n".join(layers), steps=steps,
        strategy=STRATEGIES[cell.strategy], servers=cell.servers,
        workers=cell.workers))
    return path


def words(*command):
    return [str(word) for word in command]


class Grid:
    def __init__(self, options):
        self.bin = pathlib.Path(options.build).resolve() / "bin"
        self.options = options
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="plan-grid-"))
        write_data(self.folder)
        self.compute = {}  # measurement files by (model, rows)
        self.latency = None
        self.hosts_are_up = False

    def close(self):
        if self.hosts_are_up:
            self.hosts("down")
        shutil.rmtree(self.folder)

    # ---- hosts

    def hosts(self, *words):
        self.hosts_are_up = True
        subprocess.run([HERE / "slow_links/shaped_hosts.sh", *words, PREFIX], check=True)

    def on(self, host, *command, **options):
        return subprocess.Popen(
            words("ip", "netns", "exec", f"{PREFIX}{host}", *command),
            **options)

    def measure_latency(self):
        """Latency in one direction between two hosts, over an idle link."""
        far = self.on(FIRST_SERVER, self.bin / "tributary-worker",
                      "--serve-links", f"{PREFIX}{FIRST_SERVER}:7079",
                      "--insecure-groups",
                      stdout=subprocess.PIPE)
        far.stdout.readline()
        near = self.on(FIRST_WORKER, self.bin / "tributary-worker",
                       "--measure-links", f"{PREFIX}{FIRST_SERVER}:7079",
                       stdout=subprocess.PIPE)
        measured = json.loads(near.communicate(timeout=60)[0])
        far.kill()
        far.wait()
        return measured["latency"]

    def measure_compute(self, cell):
        """Measures how fast workers compute one worker's share of the batch, with
        one worker on each core at once."""
        rows = 256 // cell.workers
        if (cell.model, rows) not in self.compute:
            job = write_job(self.folder, cell._replace(
                strategy="all_reduce", servers=0, workers=1), 10)
            workers = [subprocess.Popen(
                [self.bin / "tributary-worker", "--measure-compute", job,
                 "--measure-rows", str(rows // 4), "--measure-rows",
                 str(rows)], stdout=subprocess.PIPE, text=True)
                for _ in range(os.cpu_count())]
            path = self.folder / f"compute-{cell.model}-{rows}.json"
            path.write_text("".join(w.communicate()[0] for w in workers))
            self.compute[cell.model, rows] = path
        return self.compute[cell.model, rows]

    # ---- one comparison

    def knowledge(self, cell):
        """The inputs of a prediction, as options."""
        return ["--measurement", self.measure_compute(cell),
                "--bandwidth", f"{cell.rate}Mbit",
                "--latency", f"{self.latency * 1e6:.1f}us", "--burst", BURST,
                "--shared-cores", os.cpu_count()]

    def predict(self, cell):
        knowledge = self.knowledge(cell)
        job = write_job(self.folder, cell, 10)
        done = subprocess.run(
            words(self.bin / "tributary", "plan", job, *knowledge, "--json"),
            check=True, capture_output=True, text=True)
        return json.loads(done.stdout)["own"]

    def steps(self, cells):
        """Number of steps for --seconds per run on average, within limits."""
        whole = sum(self.predict(cell)["step_seconds"] for cell in cells)
        return max(6, min(200, int(self.options.seconds * len(cells) / whole)))

    def tributary(self, command, cell, *options):
        """Runs the command on the first host, servers and workers on the others,
        and leaves its output in `run`."""
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        hosts = lambda first, count: ",".join(
            f"{PREFIX}{first + i}" for i in range(count))
        with (self.folder / "log").open("w") as log:
            process = self.on(
                COORDINATOR, self.bin / "tributary", command, *options,
                "--workers", cell.workers, "--run-dir", self.folder / "run",
                "--listen", f"{PREFIX}{COORDINATOR}:0",
                "--worker-hosts", hosts(FIRST_WORKER, cell.workers),
                "--server-hosts", hosts(FIRST_SERVER, SERVER_HOSTS),
                "--launch", "ip netns exec {host}", stdout=log, stderr=log)
            try:
                code = process.wait(timeout=900)
            except subprocess.TimeoutExpired:
                process.kill()  # the kernel kills its children
                process.wait()
                code = "a timeout"
        if code != 0:
            raise RuntimeError(f"{command} {cell}: {code}\n" +
                               (self.folder / "log").read_text()[-2000:])

    def compare(self, cells, steps):
        """Runs cells that differ only in strategy and servers. Returns the rows of
        compare.json by cell."""
        servers = sorted({c.servers for c in cells if c.servers})
        # The job's own strategy keeps its settings.
        own = cells[0]._replace(strategy="parameter_server", servers=1)
        knowledge = self.knowledge(own)
        self.tributary(
            "compare", own, write_job(self.folder, own, steps),
            "--strategies",
            ",".join(dict.fromkeys(NAMES[c.strategy] for c in cells)),
            *(["--servers", ",".join(map(str, servers))] if servers else []),
            *knowledge)
        compared = json.loads((self.folder / "run/compare.json").read_text())
        rows = {(row["strategy"], row["servers"]): row
                for row in compared["runs"]}
        return {cell: rows[NAMES[cell.strategy], cell.servers]
                for cell in cells}

    def record(self, cell, row):
        run = pathlib.Path(row["run_directory"])
        lines = [json.loads(line) for line in
                 (run / "metrics.jsonl").read_text().splitlines()]
        lines = lines[min(3, len(lines) // 4 + 1):]  # drops the warm-up steps
        seconds = [line["step_seconds"] for line in lines]
        prediction = json.loads((run / "prediction.json").read_text())
        return {
            "cell": cell._asdict(),
            "measured": statistics.median(seconds),
            "steps": len(seconds),
            "least": min(seconds),
            "most": max(seconds),
            "parts": {key: statistics.median(line[key] for line in lines)
                      for key in lines[0] if key.endswith("_seconds")},
            "predicted": prediction["step_seconds"],
            "prediction": prediction,
            "latency": self.latency,
            "compute": self.measure_compute(cell).read_text(),
        }

    def fill(self, cells, results):
        groups = collections.defaultdict(list)
        for cell in cells:
            groups[cell.rate, cell.workers, cell.model].append(cell)
        self.hosts("up", str(HOSTS), f"{cells[0].rate}mbit")
        shaped = cells[0].rate
        self.latency = self.measure_latency()
        for i, ((rate, workers, model), group) in enumerate(groups.items()):
            if shaped != rate:
                self.hosts("rate", f"{rate}mbit")
                shaped = rate
            began = time.time()
            rows = self.compare(group, self.steps(group))
            records = [self.record(cell, row) for cell, row in rows.items()]
            with open(results, "a", encoding="utf-8") as out:
                out.writelines(json.dumps(r) + "\n" for r in records)
            if self.options.pages:
                pages = pathlib.Path(self.options.pages)
                pages.mkdir(parents=True, exist_ok=True)
                shutil.copy(self.folder / "run/compare.html",
                            pages / f"{model}-{workers}w-{rate}.html")
            print(f"{i + 1}/{len(groups)} {model}, {workers} workers, {rate} "
                  f"Mbit/s ({time.time() - began:.1f} s)")
            for r in records:
                print(f"  {name(Cell(**r['cell']))}: "
                      f"{r['measured'] * 1e3:.1f} ms, predicted "
                      f"{r['predicted'] * 1e3:.1f}", flush=True)

    def predict_anew(self, records):
        """Repeats the predictions with the measurements in each record."""
        for record in records:
            cell = Cell(**record["cell"])
            self.latency = record["latency"]
            path = self.folder / "compute.json"
            path.write_text(record["compute"])
            self.compute = {(cell.model, 256 // cell.workers): path}
            record["prediction"] = self.predict(cell)
            record["predicted"] = record["prediction"]["step_seconds"]


def cells_of(options):
    numbers = lambda text: [int(n) for n in text.split(",")]
    for rate, workers, model in itertools.product(
            numbers(options.rates), numbers(options.workers),
            options.models.split(",")):
        for strategy in options.strategies.split(","):
            servers = (numbers(options.servers)
                       if strategy == "parameter_server" else [0])
            for count in servers:
                yield Cell(rate, workers, model, strategy, count)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("results")
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--rates", default="50,100,200,500,1000")
    parser.add_argument("--workers", default="2,4")
    parser.add_argument("--servers", default="1,2,4")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--strategies", default=",".join(STRATEGIES))
    parser.add_argument("--seconds", type=float, default=4,
                        help="that the steps of a run take on average")
    parser.add_argument("--pages", help="folder for comparisons' pages")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--predict", action="store_true")
    options = parser.parse_args()
    records = []
    if os.path.exists(options.results):
        with open(options.results, encoding="utf-8") as lines:
            records = [json.loads(line) for line in lines]
    grid = None
    try:
        if options.predict:
            grid = Grid(options)
            grid.predict_anew(records)
        elif not options.report:
            done = {Cell(**r["cell"]) for r in records}
            missing = [c for c in cells_of(options) if c not in done]
            if missing:
                grid = Grid(options)
                grid.fill(missing, options.results)
            with open(options.results, encoding="utf-8") as lines:
                records = [json.loads(line) for line in lines]
    finally:
        if grid:
            grid.close()
    report(records)
    return 0


if __name__ == "__main__":
    sys.exit(main())
