#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the ways to use a trained model.

usage: bench/trained_models.py predict PROGRAM RUN INPUT [RUN INPUT]...
       bench/trained_models.py onnx [RUN]...

`predict` predicts each INPUT twice, with `PROGRAM predict` (the program
tributary) and with tributary.torch.load, and prints the largest difference of a
probability or number and how many labels differ. `onnx` exports every kind of
layer, every preset and the models of the RUNs with torch.onnx.export, and prints
the largest difference between onnxruntime and PyTorch, relative to the largest
output. Needs torch and for `onnx` onnx, onnxscript and onnxruntime; the package
tributary is that of python/.
"""

import csv
import gzip
import io
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))

from tributary.torch import load  # noqa: E402
from tributary.torch.layers import sequential  # noqa: E402

BATCH = 256


def content(path):
    raw = pathlib.Path(path).read_bytes()
    return gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw


# ---- predict

def batches_of_table(model, path):
    table = model.record["preprocessing"]["csv"]
    lines = io.StringIO(content(path).decode(), newline="")
    rows = csv.reader(lines, delimiter=table["delimiter"])
    header = next(rows) if table["header"] else None
    batch = []
    for row in rows:
        batch.append(dict(zip(header or range(len(row)), row)))
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def batches_of_images(model, path):
    raw = content(path)
    shape = [int.from_bytes(raw[4 + 4 * i:8 + 4 * i], "big") for i in range(raw[3])]
    images = np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(shape)
    yield from torch.from_numpy(images.copy()).split(BATCH)


def values_of_text(model, path):
    """The probabilities of the next token at each position. Samples follow each
    other; the last one ends with the text."""
    preprocess = model.preprocess
    ids = torch.tensor(preprocess.tokens(content(path)))
    length = preprocess.length
    whole = len(ids) // length * length
    parts = []
    for batch in ids[:whole].reshape(-1, length).split(32):
        parts.append(torch.softmax(model(batch), -1).reshape(-1, model_outputs(model)))
    if len(ids) > whole:
        last = torch.softmax(model(ids[-length:].unsqueeze(0)), -1)[0]
        parts.append(last[whole - len(ids):])
    return torch.cat(parts)


def model_outputs(model):
    return model(torch.zeros(1, 1, dtype=torch.long)).shape[-1]


@torch.no_grad()
def torch_values(model, path):
    source = model.preprocess.source
    if source == "text":
        return values_of_text(model, path).numpy()
    batches = batches_of_table if source == "csv" else batches_of_images
    model.preprocess.unknown = "zeros"
    parts = [model.predict(batch).values for batch in batches(model, path)]
    return torch.cat(parts).numpy()


def compare(program, run, path):
    model = load(run)
    with tempfile.TemporaryDirectory() as folder:
        output = f"{folder}/predictions.csv"
        subprocess.run([program, "predict", run, path, "--output", output,
                        "--allow-unknown"], check=True, stderr=subprocess.DEVNULL)
        with open(output, encoding="utf-8", newline="") as lines:
            rows = list(csv.reader(lines))
    names = rows[0]
    first = next((i for i, name in enumerate(names) if name.startswith("probability_")),
                 names.index("prediction"))
    ours = np.array([row[first:] for row in rows[1:]], dtype=np.float64)
    theirs = torch_values(model, path).astype(np.float64)
    assert ours.shape == theirs.shape, (ours.shape, theirs.shape)
    differ = int((ours.argmax(1) != theirs.argmax(1)).sum())
    print(f"{model.record['name']}: {len(ours)} rows, largest difference "
          f"{np.abs(ours - theirs).max():.2e}, {differ} labels differ")


# ---- onnx

IMAGE = (4, 8, 8)
SEQUENCE = (6, 12)


def layer_cases():
    """(name, layers, shape of a sample; None: token ids)."""
    yield "linear", [{"linear": {"in": 12, "out": 5}}], (12,)
    yield "linear of images", [{"linear": {"in": 256, "out": 5}}], IMAGE
    yield "layernorm", [{"layernorm": {"features": 12}}], SEQUENCE
    yield "rms_norm", [{"rms_norm": {"features": 12}}], SEQUENCE
    yield "batch_norm", [{"batch_norm": {"features": 4}}], IMAGE
    yield "batch_norm of features", [{"batch_norm": {"features": 12}}], (12,)
    yield "group_norm", [{"group_norm": {"groups": 2, "features": 4}}], IMAGE
    for kind in ("relu", "sigmoid", "tanh", "silu"):
        yield kind, [{kind: {}}], (12,)
    for approximate in ("none", "tanh"):
        yield f"gelu {approximate}", [{"gelu": {"approximate": approximate}}], (12,)
    yield "dropout", [{"dropout": {"p": 0.5}}], (12,)
    yield "flatten", [{"flatten": {}}], IMAGE
    yield "conv2d", [{"conv2d": {"in": 4, "out": 6, "kernel": [3, 2],
                                 "stride": [2, 1], "padding": [1, 0],
                                 "dilation": [1, 2], "groups": 2}}], IMAGE
    yield "conv2d without channels", [{"conv2d": {"in": 1, "out": 2,
                                                  "kernel": [3]}}], (8, 8)
    yield "max_pool", [{"max_pool": {"kernel": [3], "stride": [2],
                                     "padding": [1]}}], IMAGE
    yield "avg_pool", [{"avg_pool": {"kernel": [3], "stride": [2],
                                     "padding": [1]}}], IMAGE
    yield "avg_pool without padding", [
        {"avg_pool": {"kernel": [3], "stride": [2], "padding": [1],
                      "count_include_pad": False}}], IMAGE
    yield "global_avg_pool", [{"global_avg_pool": {}}], IMAGE
    embedding = {"embedding": {"tokens": 11, "dim": 12}}
    position = {"position_embedding": {"length": 6, "dim": 12}}
    yield "embedding", [embedding], None
    yield "position_embedding", [embedding, position], None
    yield "tied_linear", [embedding, {"tied_linear": {"to": "0.weight"}}], None
    for causal in (False, True):
        attention = {"dim": 12, "heads": 3, "causal": causal}
        yield (f"attention{' causal' if causal else ''}",
               [{"attention": attention}], SEQUENCE)
    yield "attention without qkv_bias", [
        {"attention": {"dim": 12, "heads": 3, "qkv_bias": False}}], SEQUENCE
    yield "residual", [{"residual": {
        "body": [{"linear": {"in": 12, "out": 5}}],
        "shortcut": [{"linear": {"in": 12, "out": 5}}]}}], (12,)


def preset_cases():
    yield "mlp", [{"linear": {"in": 12, "out": 16}}, {"gelu": {}},
                  {"linear": {"in": 16, "out": 3}}], (12,)
    yield "cnn", [
        {"conv2d": {"in": 4, "out": 8, "kernel": [3], "padding": [1]}}, {"relu": {}},
        {"max_pool": {"kernel": [2]}}, {"flatten": {}},
        {"linear": {"in": 128, "out": 16}}, {"relu": {}},
        {"linear": {"in": 16, "out": 3}}], IMAGE

    def convolution(inputs, out, stride=1, kernel=3):
        return [{"conv2d": {"in": inputs, "out": out, "kernel": [kernel],
                            "stride": [stride], "padding": [kernel // 2],
                            "bias": False}},
                {"batch_norm": {"features": out}}]

    yield "resnet", [
        *convolution(4, 8), {"relu": {}},
        {"residual": {"body": [*convolution(8, 8), {"relu": {}},
                               *convolution(8, 8)]}}, {"relu": {}},
        {"residual": {"body": [*convolution(8, 16, 2), {"relu": {}},
                               *convolution(16, 16)],
                      "shortcut": convolution(8, 16, 2, kernel=1)}}, {"relu": {}},
        {"global_avg_pool": {}}, {"linear": {"in": 16, "out": 3}}], IMAGE
    yield "gpt", [
        {"embedding": {"tokens": 11, "dim": 12}},
        {"position_embedding": {"length": 6, "dim": 12}},
        {"residual": {"body": [{"layernorm": {"features": 12}},
                               {"attention": {"dim": 12, "heads": 3,
                                              "causal": True}}]}},
        {"residual": {"body": [{"layernorm": {"features": 12}},
                               {"linear": {"in": 12, "out": 48}}, {"gelu": {}},
                               {"linear": {"in": 48, "out": 12}}]}},
        {"layernorm": {"features": 12}}, {"tied_linear": {"to": "0.weight"}}], None


def inputs_of(shape, rows=3, tokens=11, length=6):
    if shape is None:
        return torch.randint(tokens, (rows, length))
    return torch.randn(rows, *shape)


def onnx_difference(model, x):
    """Exports with a free number of rows, and compares for other rows."""
    import onnxruntime

    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.onnx"
        batch = torch.export.Dim("rows", min=2, max=1024)
        torch.onnx.export(model, (x,), path, input_names=["x"], dynamo=True,
                          dynamic_shapes=({0: batch},), verbose=False)
        session = onnxruntime.InferenceSession(path,
                                               providers=["CPUExecutionProvider"])
        more = torch.cat([x, x.flip(0)])
        (got,) = session.run(None, {session.get_inputs()[0].name: more.numpy()})
    expected = model(more).numpy()
    scale = max(1e-30, np.abs(expected).max())
    return float(np.abs(got - expected).max() / scale)


@torch.no_grad()
def onnx(runs):
    warnings.filterwarnings("ignore")
    worst = 0.0
    for cases in (layer_cases(), preset_cases()):
        for name, layers, shape in cases:
            torch.manual_seed(1)
            model = sequential(layers).eval()
            for tensor in model.state_dict().values():
                # Running variances are positive; a weight of 0 would hide faults.
                tensor.copy_(torch.rand_like(tensor) * 0.5 + 0.25)
            difference = onnx_difference(model, inputs_of(shape))
            worst = max(worst, difference)
            print(f"{name:28s} {difference:.2e}", flush=True)
    for run in runs:
        model = load(run)
        shape = tuple(model.record["preprocessing"]["feature_shape"])
        text = model.preprocess.length
        x = (inputs_of(None, tokens=len(model.record["preprocessing"]["text"]
                                        ["vocabulary"]), length=text)
             if text else inputs_of(shape))
        difference = onnx_difference(model.network, x)
        worst = max(worst, difference)
        print(f"{model.record['name']:28s} {difference:.2e}", flush=True)
    print(f"largest difference           {worst:.2e}")


def main():
    match sys.argv[1:]:
        case ["predict", program, *pairs] if pairs and len(pairs) % 2 == 0:
            for run, path in zip(pairs[::2], pairs[1::2]):
                compare(program, run, path)
        case ["onnx", *runs]:
            onnx(runs)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
