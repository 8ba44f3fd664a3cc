#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a run's final weights without any code of Tributary and checks them.

usage: bench/read_weights.py RUN_DIRECTORY [LOGITS.npy]

Evaluates the test set (IDX files) in PyTorch, float32, and in numpy, float64,
and compares the accuracy with the run's own in summary.json, and the
logits with those that run_logits (bench/run_logits.cc) wrote. Needs
Debian's python3-torch and python3-yaml.
"""

import gzip
import json
import math
import pathlib
import sys

import numpy
import torch
import yaml


def read_safetensors(path):
    """Reads eight bytes of length, a JSON header, then the tensors' bytes."""
    raw = pathlib.Path(path).read_bytes()
    end = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:end])
    header.pop("__metadata__", None)
    return {name: numpy.frombuffer(raw[end + t["data_offsets"][0]:
                                       end + t["data_offsets"][1]],
                                   "<f4").reshape(t["shape"])
            for name, t in header.items()}


def read_idx(path):
    raw = (gzip.open(path) if str(path).endswith(".gz") else open(path, "rb")).read()
    shape = [int.from_bytes(raw[4 + 4 * i:8 + 4 * i], "big") for i in range(raw[3])]
    return numpy.frombuffer(raw, numpy.uint8, offset=4 + 4 * raw[3]).reshape(shape)


def kind_and_spec(layer):
    """One layer of the job file: `relu`, or `linear: {in: 784, out: 10}`."""
    if isinstance(layer, str):
        return layer, {}
    (kind, spec), = layer.items()
    return kind, spec or {}


def torch_model(layers, weights):
    modules = []
    for kind, spec in map(kind_and_spec, layers):
        modules.append({
            "linear": lambda: torch.nn.Linear(spec["in"], spec["out"],
                                              bias=spec.get("bias", True)),
            "layernorm": lambda: torch.nn.LayerNorm(
                spec["features"], eps=spec.get("epsilon", 1e-5)),
            "relu": torch.nn.ReLU,
            "gelu": lambda: torch.nn.GELU(spec.get("approximate", "none")),
            "sigmoid": torch.nn.Sigmoid,
            "tanh": torch.nn.Tanh,
            "silu": torch.nn.SiLU,
            "dropout": torch.nn.Dropout,
            "flatten": torch.nn.Flatten,
        }[kind]())
    model = torch.nn.Sequential(*modules)
    model.load_state_dict({n: torch.from_numpy(t.copy())
                           for n, t in weights.items()})
    return model.eval()


def numpy_forward(layers, weights, x):
    """The same in float64, for models of linear and relu layers."""
    x = x.astype(numpy.float64)
    for i, (kind, _) in enumerate(map(kind_and_spec, layers)):
        if kind == "linear":
            x = x @ weights[f"{i}.weight"].astype(numpy.float64).T
            if f"{i}.bias" in weights:
                x = x + weights[f"{i}.bias"]
        elif kind == "relu":
            x = numpy.maximum(x, 0)
        elif kind not in ("flatten", "dropout"):
            return None
    return x


def normalized(x, spec):
    if not spec or not spec.get("mean"):
        return x
    return ((x - numpy.array(spec["mean"])) /
            numpy.array(spec["std"])).astype(numpy.float32)


def main():
    run = pathlib.Path(sys.argv[1])
    job = yaml.safe_load((run / "job.yaml").read_text())
    layers = job["model"]["sequential"]
    weights = read_safetensors(run / "weights.safetensors")
    source = job["data"]["test"]["idx"]
    images = read_idx(source["images"])
    images = images.reshape(len(images), -1).astype(numpy.float32) / 255
    images = normalized(images, source.get("normalize"))
    labels = read_idx(source["labels"])

    with torch.no_grad():
        logits = torch_model(layers, weights)(torch.from_numpy(images)).numpy()
    accuracy = float((logits.argmax(1) == labels).mean())
    own = json.loads((run / "summary.json").read_text())["test"]["accuracy"]
    print(f"parameters      {sum(math.prod(w.shape) for w in weights.values())}")
    print(f"test accuracy   PyTorch {accuracy:.4f}, Tributary {own:.4f}")
    reference = numpy_forward(layers, weights, images)
    if reference is not None:
        print("logits          largest distance to a float64 forward pass "
              f"{numpy.abs(logits - reference).max():.2e}")
    agree = abs(accuracy - own) < 0.5 / len(labels)
    if len(sys.argv) > 2:
        distance = numpy.abs(logits - numpy.load(sys.argv[2])).max()
        print(f"                largest distance to Tributary's {distance:.2e}")
        agree = agree and distance < 1e-5 * max(1, numpy.abs(logits).max())
    sys.exit(0 if agree else 1)


if __name__ == "__main__":
    main()
