#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares whole models on one device with PyTorch on the same device.

usage: bench/gpu_models.py write DIRECTORY [--tiny]
       bench/gpu_models.py measure DIRECTORY --worker tributary-worker
           [--models mlp,gpt2s] [--precisions float32,bfloat16] [--device cuda]
           [--seconds 60] [--all 540] [--tsv FILE]
           [--variants eager,compiled] [--baselines FILE]

`write` makes a job file and random data for each model; it needs Python alone.
`measure` asks `tributary-worker --measure-compute` for the milliseconds of
forward with the loss, backward and update, and bench/pytorch_gpu.py for those of
the same layers in PyTorch, if it is installed; then prints one table. A measurement
that does not end within --seconds is reported as such and left out. PyTorch's
compiler is not used when less than two minutes of --all are left. --variants are those
of bench/pytorch_gpu.py. Milliseconds that are in the file --baselines, which is of one
GPU and one version of PyTorch, are not measured again; new ones are added to it.
"""

import argparse
import array
import json
import os
import struct
import subprocess
import sys
import time


def linear(inputs, outputs, **more):
    return {"linear": {"in": inputs, "out": outputs, **more}}


def mlp(tiny):
    width = 64 if tiny else 1024
    return [linear(784, width), "relu", linear(width, width), "relu",
            linear(width, 10)]


def gpt2(tiny):
    layers, dim, heads, length, tokens = (
        (2, 64, 2, 32, 64) if tiny else (12, 768, 12, 1024, 50257))
    model = [{"embedding": {"tokens": tokens, "dim": dim, "std": 0.02}},
             {"position_embedding": {"length": length, "dim": dim, "std": 0.02}}]
    for _ in range(layers):
        model.append({"residual": {"body": [
            {"layernorm": {"features": dim}},
            {"attention": {"dim": dim, "heads": heads, "causal": True}}]}})
        model.append({"residual": {"body": [
            {"layernorm": {"features": dim}}, linear(dim, 4 * dim), "gelu",
            linear(4 * dim, dim)]}})
    return model + [{"layernorm": {"features": dim}},
                    {"tied_linear": {"to": "0.weight"}}]


def convolution(inputs, outputs, kernel, stride, relu=True):
    layers = [{"conv2d": {"in": inputs, "out": outputs, "kernel": kernel,
                          "stride": stride, "padding": kernel // 2,
                          "bias": False}},
              {"batch_norm": {"features": outputs}}]
    return layers + ["relu"] if relu else layers


def resnet20(tiny):
    """He et al. 2016, section 4.2, for images of 32 x 32."""
    widths, blocks = ([8, 16], 1) if tiny else ([16, 32, 64], 3)
    model, inputs = convolution(3, widths[0], 3, 1), widths[0]
    for stage, width in enumerate(widths):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            spec = {"body": convolution(inputs, width, 3, stride) +
                            convolution(width, width, 3, 1, relu=False)}
            if stride > 1 or inputs != width:
                spec["shortcut"] = convolution(inputs, width, 1, stride, False)
            model += [{"residual": spec}, "relu"]
            inputs = width
    return model + ["global_avg_pool", linear(inputs, 10)]


def resnet50(tiny):
    """He et al. 2016, table 1, strides in the 3 x 3 convolutions."""
    model = convolution(3, 64, 7, 2)
    model.append({"max_pool": {"kernel": 3, "stride": 2, "padding": 1}})
    inputs = 64
    stages = [(64, 1)] if tiny else [(64, 3), (128, 4), (256, 6), (512, 3)]
    for stage, (width, blocks) in enumerate(stages):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            spec = {"body": convolution(inputs, width, 1, 1) +
                            convolution(width, width, 3, stride) +
                            convolution(width, 4 * width, 1, 1, relu=False)}
            if block == 0:
                spec["shortcut"] = convolution(inputs, 4 * width, 1, stride,
                                               False)
            model += [{"residual": spec}, "relu"]
            inputs = 4 * width
    return model + ["global_avg_pool", linear(inputs, 1000)]


# layers, samples per step, shape of a sample (none: text), classes
MODELS = {
    "mlp": (mlp, 128, [784], 10),
    "gpt2s": (gpt2, 8, None, None),
    "resnet20": (resnet20, 128, [3, 32, 32], 10),
    "resnet50": (resnet50, 128, [3, 224, 224], 1000),
}


def write_npy(path, kind, shape, data):
    header = repr({"descr": kind, "fortran_order": False, "shape": tuple(shape)})
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)))
        file.write(header.encode() + data)


def write(directory, tiny):
    os.makedirs(directory, exist_ok=True)
    for name, (layers, rows, shape, classes) in MODELS.items():
        rows = max(2, rows // 16) if tiny else rows
        job = {"name": name, "model": {"sequential": layers(tiny)},
               "data": {"batch_size": rows, "shuffle": "none"},
               "training": {"steps": 30, "loss": "cross_entropy",
                            "optimizer": {"adamw": {"learning_rate": 1e-4}}},
               "cluster": {"servers": 1, "workers": 1}, "device": "auto"}
        if shape is None:
            length = 32 if tiny else 1024
            job["data"]["train"] = {"synthetic": {
                "kind": "markov_text", "rows": 8 * rows, "length": length}}
        else:
            if tiny and len(shape) > 1:
                shape = [3, 16, 16]
            count = rows
            for extent in shape:
                count *= extent
            features, labels = f"{name}_features.npy", f"{name}_labels.npy"
            write_npy(os.path.join(directory, features), "|u1", [rows] + shape,
                      os.urandom(count))
            write_npy(os.path.join(directory, labels), "<i8", [rows],
                      array.array("q", [i * 7 % classes
                                        for i in range(rows)]).tobytes())
            job["data"]["train"] = {"npy": {
                "features": os.path.join(os.path.abspath(directory), features),
                "labels": os.path.join(os.path.abspath(directory), labels),
                "normalize": {"mean": [127.5], "std": [73.9]}}}
        with open(os.path.join(directory, name + ".yaml"), "w",
                  encoding="utf-8") as file:
            json.dump(job, file, indent=1)  # JSON is YAML
    print(f"{len(MODELS)} job files in {directory}")


def run(command, seconds):
    """The last line of the output that is JSON, or the reason why there is none."""
    why = ""
    try:
        done = subprocess.run(command, capture_output=True, text=True,
                              timeout=max(1, seconds), check=False)
        out, words = done.stdout, (done.stderr or done.stdout).split("\n")
        words = [word for word in words if word.strip()]
        failed = words[-1] if words else f"exit code {done.returncode}"
    except subprocess.TimeoutExpired as late:
        out = (late.stdout or b"").decode()  # bytes even with text=True
        why = failed = f"not done in {seconds:.0f} s"
    for line in reversed(out.splitlines()):
        if line.startswith("{"):
            return json.loads(line), why
    return None, failed


def variants_of(options, name):
    """The variants to compare: a model without a vocabulary has nothing to pad."""
    found = {}
    for variant in options.variants.split(","):
        words = [word for word in variant.split("+")
                 if word != "padded" or name == "gpt2s"]
        found["+".join(words) or "eager"] = True
    return list(found)


class Rivals:
    """PyTorch's milliseconds, from the file of baselines or measured."""

    def __init__(self, options, end):
        self._options, self._end, self._known = options, end, {}
        if options.baselines and os.path.exists(options.baselines):
            with open(options.baselines, encoding="utf-8") as file:
                self._known = json.load(file)

    def times(self, name, path, precision):
        """Milliseconds by variant, and the reason if a variant is missing."""
        known = self._known.setdefault(f"{name} {precision}", {})
        left = self._end - time.monotonic()
        missing = [variant for variant in variants_of(self._options, name)
                   if variant not in known and
                   (left > 120 or not {"compiled", "graphs"} &
                    set(variant.split("+")))]
        if not missing:
            return known, ""
        here = os.path.dirname(os.path.abspath(__file__))
        found, why = run(
            [sys.executable, os.path.join(here, "pytorch_gpu.py"), path,
             "--precision", precision, "--device", self._options.device,
             "--variants", ",".join(missing)],
            min(self._options.seconds, left))
        found = found or {}
        why = found.pop("why", why)
        known.update(found)
        if self._options.baselines:
            with open(self._options.baselines, "w", encoding="utf-8") as file:
                json.dump(self._known, file, indent=1, sort_keys=True)
                file.write("\n")
        return known, why


def step_times(options, path, rows, precision):
    """Milliseconds of forward, backward and update, or why there are none."""
    mine, why = run(
        [options.worker, "--measure-compute", path, "--measure-rows", str(rows),
         "--set", f"device={options.device}", "--set",
         f"training.precision={precision}"], options.seconds)
    if mine is None:
        return None, why
    passes = mine["passes"][-1]
    return [1e3 * passes["forward_seconds"], 1e3 * passes["backward_seconds"],
            1e3 * mine["update_seconds"]], why


def measure(options):
    rivals = Rivals(options, time.monotonic() + options.all)
    tsv = open(options.tsv, "w", encoding="utf-8") if options.tsv else None
    print(f"{'model':10} {'precision':9} {'rows':>5} {'forward':>9} "
          f"{'backward':>9} {'update':>8} {'step ms':>9}  PyTorch ms (our step "
          "divided by it)", flush=True)
    failures = 0
    for name in options.models.split(","):
        path = os.path.join(options.directory, name + ".yaml")
        with open(path, encoding="utf-8") as file:
            rows = json.load(file)["data"]["batch_size"]
        for precision in options.precisions.split(","):
            times, why = step_times(options, path, rows, precision)
            if times is None:
                failures += 1
                print(f"{name:10} {precision:9} {rows:5} failed: {why}",
                      flush=True)
                continue
            step = sum(times)
            print(f"{name:10} {precision:9} {rows:5} {times[0]:9.2f} "
                  f"{times[1]:9.2f} {times[2]:8.2f} {step:9.2f} ", end="",
                  flush=True)
            found, why = rivals.times(name, path, precision)
            told = [f"{variant} {found[variant]:.2f} ({step / found[variant]:.2f})"
                    for variant in variants_of(options, name)
                    if variant in found]
            print(f" {', '.join(told)}{'; PyTorch: ' + why if why else ''}",
                  flush=True)
            if tsv:
                tsv.write("\t".join([name, precision, str(rows), f"{step:.3f}"] +
                                    told) + "\n")
                tsv.flush()
    return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("write")
    writing.add_argument("directory")
    writing.add_argument("--tiny", action="store_true", help="to try it out")
    measuring = commands.add_parser("measure")
    measuring.add_argument("directory")
    measuring.add_argument("--worker", default="tributary-worker")
    measuring.add_argument("--models", default=",".join(MODELS))
    measuring.add_argument("--precisions", default="float32,bfloat16")
    measuring.add_argument("--device", default="cuda")
    measuring.add_argument("--seconds", type=int, default=60)
    measuring.add_argument("--all", type=int, default=540)
    measuring.add_argument("--tsv", default="")
    measuring.add_argument("--variants", default="eager,compiled")
    measuring.add_argument("--baselines", default="")
    options = parser.parse_args()
    if options.command == "measure":
        return measure(options)
    write(options.directory, options.tiny)
    return 0


if __name__ == "__main__":
    sys.exit(main())
