#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares two builds by the bits that they train: same_bits.py BEFORE AFTER

BEFORE and AFTER are folders with the programs, such as build/release/bin. Every job below
runs with both. The sha256 of the weights must be the same, so that a change of structure
changes no result. Some runs are also resumed, by both, from a checkpoint that BEFORE
wrote. One run's daemons of BEFORE are all killed; those of AFTER finish it from the state
file of the coordinator. Prints a table; the exit code is 1 when a line differs.

  --only NAME   the jobs whose name contains NAME
"""

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples")
LIMIT_SECONDS = 120

ALL_REDUCE = "strategy={all_reduce: {}}"
SHARDED = "strategy={all_reduce: {sharded: true}}"
NO_SERVERS = "cluster={servers: 0, workers: 2}"
DIGITS = ["training.epochs=4"]
LETTERS = ["training.epochs=1"]
REGRESSION = ["training.steps=200"]
FASHION = ["training.epochs=1"]
GPT = ["training.steps=12", "cluster={servers: 2, workers: 2}",
       "data.test.text.end=0.92", "training.learning_rate_schedule=constant"]


def servers(count, workers=2):
    return f"cluster={{servers: {count}, workers: {workers}}}"


def optimizer(text):
    return "training.optimizer=" + text


def model(text):
    return "model=" + text


def sync(text):
    return f"strategy={{parameter_server: {{sync: {text}}}}}"


CNN = model("{cnn: {image: 28, channels: [4, 8], hidden: 32, classes: 10, dropout: 0.2}}")
RESNET = model("{resnet: {depth: 8, channels: [4, 8, 8], classes: 10}}")
MLP = model("{mlp: {in: 64, hidden: [48, 32], out: 10, activation: silu, dropout: 0.1}}")
# Every kind of layer that no preset has.
KINDS = model("{sequential: [conv2d: {in: 1, out: 6, kernel: 3, groups: 1, bias: false},"
              " batch_norm: {features: 6}, sigmoid, avg_pool: {kernel: 2},"
              " conv2d: {in: 6, out: 6, kernel: 3, dilation: 2, groups: 3},"
              " residual: {body: [conv2d: {in: 6, out: 6, kernel: 1}, tanh]},"
              " max_pool: {kernel: 2, padding: 1}, global_avg_pool,"
              " layernorm: {features: 6}, linear: {in: 6, out: 10}]}")

# name: (job file, settings)
JOBS = {
    "1 server, adam": ("digits", DIGITS + [servers(1)]),
    "2 servers, adam": ("digits", DIGITS + [servers(2)]),
    "3 servers, adam": ("digits", DIGITS + [servers(3)]),
    "3 workers, adamw, clipping": ("letters", LETTERS + [
        servers(2, 3), "training.learning_rate_schedule.cosine.warmup_steps=10"]),
    "sgd, nesterov, cosine": ("regression", REGRESSION),
    "sgd, dampening": ("digits", DIGITS + [optimizer(
        "{sgd: {learning_rate: 0.1, momentum: 0.9, dampening: 0.1, weight_decay: 1e-3}}")]),
    "adam, amsgrad": ("digits", DIGITS + [optimizer("{adam: {amsgrad: true}}")]),
    "adagrad": ("digits", DIGITS + [optimizer("{adagrad: {learning_rate_decay: 0.01}}")]),
    "rmsprop": ("digits", DIGITS + [servers(2), optimizer(
        "{rmsprop: {momentum: 0.5, centered: true}}")]),
    "lamb, 2 servers": ("digits", DIGITS + [servers(2), optimizer(
        "{lamb: {weight_decay: 0.01, clip_max: 10}}"), "training.clip_norm=1"]),
    "lamb, all_reduce": ("digits", DIGITS + [NO_SERVERS, ALL_REDUCE, optimizer(
        "{lamb: {weight_decay: 0.01, clip_max: 10}}"), "training.clip_norm=1"]),
    "ftrl": ("adult", ["training.epochs=1", optimizer("{ftrl: {l1: 0.1, l2: 0.1}}")]),
    "all_reduce": ("letters", LETTERS + [NO_SERVERS, ALL_REDUCE]),
    "sharded": ("letters", LETTERS + [NO_SERVERS, SHARDED]),
    "data_parallel": ("letters", LETTERS + [NO_SERVERS, "strategy={data_parallel: {}}"]),
    "local_sgd": ("digits", DIGITS + [
        sync("{local_sgd: {period: 4}}"), optimizer("{sgd: {learning_rate: 0.05}}")]),
    "local_sgd, adam inside": ("digits", DIGITS + [sync("{local_sgd: {period: 4}}")]),
    "ssp, 1 worker": ("digits", DIGITS + [
        sync("{ssp: {staleness: 2}}"), servers(2, 1)]),
    "async, 1 worker": ("digits", DIGITS + [sync("async"), servers(2, 1)]),
    "accumulation, bfloat16": ("letters", LETTERS + [
        "training.learning_rate_schedule.cosine.warmup_steps=10",
        "training.gradient_accumulation=2", "training.precision=bfloat16"]),
    "mlp": ("digits", DIGITS + [MLP]),
    "cnn": ("fashion-mnist-small", FASHION + [CNN]),
    "resnet": ("fashion-mnist-small", FASHION + [RESNET]),
    "resnet, all_reduce": ("fashion-mnist-small", FASHION + [
        RESNET, NO_SERVERS, ALL_REDUCE]),
    "every other layer": ("fashion-mnist-small", FASHION + [KINDS]),
    "gpt": ("shakespeare-gpt", GPT),
    "gpt, tensor_parallel 2": ("shakespeare-gpt", GPT + [
        "strategy={tensor_parallel: 2}"]),
    "gpt, all_reduce, tensor_parallel 2": ("shakespeare-gpt", GPT + [
        "strategy={all_reduce: {}, tensor_parallel: 2}", NO_SERVERS]),
    "gpt, stages 2": ("shakespeare-gpt", GPT + [
        "strategy={pipeline_parallel: {stages: 2, micro_batches: 4}}"]),
    "gpt, all_reduce, stages 2, gpipe": ("shakespeare-gpt", GPT + [
        "strategy={all_reduce: {}, pipeline_parallel: {stages: 2, schedule: gpipe}}",
        NO_SERVERS]),
    "letters, tensor_parallel 2": ("letters", LETTERS + ["strategy={tensor_parallel: 2}"]),
    "cnn, stages 2": ("fashion-mnist-small", FASHION + [
        CNN, "strategy={pipeline_parallel: {stages: 2}}"]),
}

# Jobs that both continue from a checkpoint of BEFORE.
RESUMED = ["2 servers, adam", "lamb, 2 servers", "all_reduce", "sharded",
           "local_sgd, adam inside", "resnet", "gpt, stages 2",
           "letters, tensor_parallel 2"]


def train(programs, run, *words):
    result = subprocess.run([os.path.join(programs, "tributary"), "train", *words, "--run-dir", run],
                            capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    if result.returncode != 0:
        return "failed: " + (result.stderr + result.stdout).strip()[-300:]
    with open(os.path.join(run, "summary.json"), encoding="utf-8") as file:
        return json.load(file)["weights_sha256"]


def words_of(name, more=()):
    job, settings = JOBS[name]
    words = [os.path.join(EXAMPLES, job + ".yaml")]
    for setting in [*settings, *more]:
        words += ["--set", setting]
    return words


def checkpoints(run):
    folder = os.path.join(run, "checkpoints")
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder))
            if re.fullmatch(r"step-\d+", name)]


# A job slow enough to be killed between two checkpoints.
TAKEN_OVER = ["training.epochs=20", "checkpoint={every_steps: 4, keep: 100}"]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def daemons(programs, run, address):
    """Starts the coordinator, a server and two workers of a run."""
    words = []
    for setting in [*TAKEN_OVER, servers(1)]:
        words += ["--set", setting]
    commands = [["tributary-coordinator", "--listen", address, "--run-dir", run, "--job",
                 os.path.join(EXAMPLES, "digits.yaml"), *words],
                ["tributary-server", "--coordinator", address,
                 "--listen", f"127.0.0.1:{free_port()}"],
                ["tributary-worker", "--coordinator", address],
                ["tributary-worker", "--coordinator", address, "--slow-down", "20"]]
    with open(os.path.join(os.path.dirname(run), "daemons.log"), "a", encoding="utf-8") as log:
        return [subprocess.Popen([os.path.join(programs, command[0]), *command[1:]],
                                 stdout=log, stderr=log) for command in commands]


def lines(path):
    try:
        with open(path, encoding="utf-8") as file:
            return sum(1 for _ in file)
    except FileNotFoundError:
        return 0


def taken_over(first, second, folder):
    """The sha256 of a run whose daemons of `first` are killed in the middle."""
    run = os.path.join(folder, "run")
    os.makedirs(folder)
    address = f"127.0.0.1:{free_port()}"
    running = daemons(first, run, address)
    deadline = time.monotonic() + LIMIT_SECONDS
    while lines(os.path.join(run, "metrics.jsonl")) < 30 and time.monotonic() < deadline:
        time.sleep(0.01)
    alive = all(process.poll() is None for process in running)
    for process in running:
        process.kill()
        process.wait()
    state = os.path.join(run, "coordinator.state")
    if not alive or not os.path.exists(state):
        return "failed: " + ("no state file" if alive else "a daemon ended too early")
    running = daemons(second, run, address)
    try:
        if running[0].wait(LIMIT_SECONDS) != 0:
            return "failed: see " + folder
    except subprocess.TimeoutExpired:
        return "failed: the run does not end"
    finally:
        for process in running:
            process.kill()
            process.wait()
    with open(os.path.join(run, "summary.json"), encoding="utf-8") as file:
        summary = json.load(file)
    if summary["lost"]["rollbacks"] == 0:
        return "failed: nothing was taken over"
    return summary["weights_sha256"]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    different = []

    def line(name, before, after, seconds):
        same = before == after and not before.startswith("failed")
        print(f"| {name} | {before[:16]} | {'same' if same else after[:16]} | {seconds:.1f} |", flush=True)
        if not same:
            different.append(name)
            print(f"{name}\n  before: {before}\n  after: {after}", file=sys.stderr)

    print("| job | sha256 before | after | seconds |\n| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for i, name in enumerate(n for n in JOBS if options.only in n):
            begin = time.monotonic()
            runs = [os.path.join(folder, f"{i}-{which}") for which in ("before", "after")]
            more = ["checkpoint={every_steps: 4, keep: 100}"] if name in RESUMED else []
            whole = train(options.before, runs[0], *words_of(name, more))
            line(name, whole, train(options.after, runs[1], *words_of(name, more)),
                 time.monotonic() - begin)
            if not more or whole.startswith("failed"):
                continue
            begin = time.monotonic()
            found = checkpoints(runs[0])
            again = [train(programs, os.path.join(folder, f"{i}-{which}-again"),
                           "--resume", found[len(found) // 2])
                     for programs, which in ((options.before, "before"), (options.after, "after"))]
            line(name + ", resumed", *again, time.monotonic() - begin)
        name = "coordinator taken over"
        if options.only in name:
            begin = time.monotonic()
            whole = train(options.before, os.path.join(folder, "whole"),
                          os.path.join(EXAMPLES, "digits.yaml"),
                          *[word for setting in [*TAKEN_OVER, servers(1)]
                            for word in ("--set", setting)])
            line(name, whole, taken_over(options.before, options.after,
                                         os.path.join(folder, "taken-over")),
                 time.monotonic() - begin)
    print(f"{len(different)} differ" if different else "all the same")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
