# SPDX-License-Identifier: Apache-2.0
"""The seeds that are files: job files, checkpoints, data sets and safetensors.

Each function yields a fuzz target, the name of a seed and its bytes.
"""

import gzip
import json
import struct

from seed_bytes import crc32c, floats, message, part

# ---- job files

JOB = """name: small
model:
  sequential:
    - linear: {in: 20, out: 8}
    - relu
    - layernorm: {features: 8}
    - dropout: {p: 0.1}
    - linear: {in: 8, out: 1, bias: false}
data:
  train: {synthetic: {kind: linear, rows: 1000}}
  batch_size: 16
  shuffle: {seed: 7}
training:
  epochs: 2
  loss: mse
  optimizer: {adam: {learning_rate: 1e-3}}
  learning_rate_schedule: {cosine: {t_max: 100}}
  clip_norm: 1.0
  nonfinite: skip
strategy:
  parameter_server: {sync: {bsp: {}}, bucket_bytes: 4MiB}
cluster: {servers: 2, workers: 2}
checkpoint: {every_steps: 10, keep: 3}
seed: 3
"""


def jobs():
    yield ("job_fuzz", "job", JOB.encode())
    for name, old, new in [
            ("ssp", "sync: {bsp: {}}", "sync: {ssp: {staleness: 2}}"),
            ("async", "sync: {bsp: {}}", "sync: async"),
            ("backup", "sync: {bsp: {}}", "sync: {bsp: {backup_workers: 1}}"),
            ("local-sgd", "sync: {bsp: {}}", "sync: {local_sgd: {period: 4}}"),
            ("ftrl", "adam: {learning_rate: 1e-3}", "ftrl: {alpha: 0.1, l1: 1}"),
            ("lamb", "adam: {learning_rate: 1e-3}",
             "lamb: {learning_rate: .5e-2, weight_decay: 0.01}"),
            ("wrong-width", "linear: {in: 20, out: 8}", "linear: {in: 21, out: 8}"),
            ("quoted", "name: small", 'name: "sm\\u00e4ll \\"one\\""'),
            ("no-shuffle", "shuffle: {seed: 7}", "shuffle: none"),
            ("steps", "epochs: 2", "steps: 100"),
            ("normalize", "rows: 1000}", "rows: 1000, normalize: {mean: 0.5, std: 2}}"),
            ("missing-file", "synthetic: {kind: linear, rows: 1000}",
             "csv: {path: /nowhere/a.csv, columns: {label: y}}")]:
        assert old in JOB, old
        yield ("job_fuzz", name, JOB.replace(old, new).encode())
    yield ("job_fuzz", "overrides", JOB.encode() + b"\0training.epochs=3"
           b"\0training.optimizer={sgd: {learning_rate: 0.1, momentum: .9}}"
           b"\0cluster.workers=4")


# ---- a program's job: a letter and a job file, then settings behind NUL bytes

PROGRAM = """name: mine
training: {optimizer: {sgd: {learning_rate: 0.5}}, clip_norm: 1}
strategy: {parameter_server: {sync: {ssp: {staleness: 2}}}}
cluster: {servers: 2, workers: 3}
checkpoint: {every_steps: 5}
"""


def submitted_jobs():
    for name, text, settings in [
            ("empty", "", ["training.optimizer=sgd"]),
            ("agrees", PROGRAM, ["training.optimizer={sgd: {learning_rate: 0.5}}"]),
            ("contradicts", PROGRAM, ["training.optimizer={adam: {}}", "seed=7"]),
            ("other-sync", PROGRAM, ["strategy.parameter_server.sync=async"]),
            ("groups", "", [
                "training.optimizer={adamw: {learning_rate: 3e-4}}",
                "training.parameter_groups=[{parameters: ['*.bias'], "
                "learning_rate: 0.1}, {parameters: [w], frozen: true}]"]),
            ("with-model", "model: {gpt: {layers: 2}}", ["seed=1"]),
            ("unknown-field", PROGRAM, ["training.optimiser=sgd"])]:
        for letter in "jr":
            yield ("submit_job_fuzz", f"{name}-{letter}", b"\0".join(
                part.encode() for part in [letter + text, *settings]))


# ---- checkpoints: a mode (bit 0 manifest, 1 to 2 how whole), the file

PARAMETERS = """
parameters {name: "0.weight" shape: 2 shape: 3}
parameters {name: "0.bias" shape: 2}
state_names: "momentum"
"""
MANIFEST = """name: "small" job_id: 7 step: 20 epoch: 3 total_steps: 40
steps_per_epoch: 10 created_micros: 1700000000000000
job {name: "small"} workers {steps: 20} workers {steps: 20}
files {name: "shard-000-of-002.ckpt" bytes: 180 crc32c: 305419896}
files {name: "shard-001-of-002.ckpt" bytes: 96 crc32c: 2271560481}
""" + PARAMETERS
SHARD = "job_id: 7 step: 20 shard: 0 num_shards: 1" + PARAMETERS + """
blocks {slices {parameter: 1 begin: 0 end: 2}}
blocks {slices {parameter: 0 begin: 0 end: 4}
        slices {parameter: 0 begin: 4 end: 6}}
"""
# As versions before lineages wrote them, and as they are written now.
MANIFEST_NOW = MANIFEST.replace(
    ".ckpt", "-0000000000000007-e0002.ckpt") + "lineage: 5 plan_epoch: 2"
SHARD_NOW = SHARD + "lineage: 5 plan_epoch: 2"


def content(kind, front, data):
    return struct.pack("<QIIQQ", 0x54504B4342495254, kind, 1, len(front),
                       len(data)) + front + data


def page(data):
    """A file of one page, as common/checkpoint/files/page_format.h has it."""
    crc = crc32c(data, crc32c(struct.pack("<q", 0)))
    crc = (crc >> 15 | crc << 17 & 0xFFFFFFFF) + 0xA282EAD8 & 0xFFFFFFFF
    return data + struct.pack("<I", crc)


def checkpoints():
    data = floats(*range(16))
    for name, kind, text, behind in [("manifest", 1, MANIFEST, b""),
                                     ("shard", 2, SHARD, data),
                                     ("manifest-now", 1, MANIFEST_NOW, b""),
                                     ("shard-now", 2, SHARD_NOW, data)]:
        front = message(
            "CheckpointManifest" if kind == 1 else "CheckpointShard", text)
        flag = kind & 1
        whole = page(content(kind, front, behind))
        yield ("checkpoint_fuzz", name, bytes([flag]) + whole)
        yield ("checkpoint_fuzz", name + "-cut", bytes([flag]) + whole[:-7])
        yield ("checkpoint_fuzz", name + "-content",
               bytes([flag | 2]) + content(kind, front, behind))
        yield ("checkpoint_fuzz", name + "-message",
               bytes([flag | 4]) + part(front) + behind)


# ---- data: the kind of target, rows, the file or files

def idx(shape, data):
    return struct.pack(f">BBBB{len(shape)}I", 0, 0, 8, len(shape),
                       *shape) + data


def npy(descr, shape, data, version=1):
    text = (f"{{'descr': '{descr}', 'fortran_order': False, "
            f"'shape': {shape}, }}").encode()
    size = 8 + (2 if version == 1 else 4)
    text += b" " * (-(size + len(text) + 1) % 16) + b"\n"
    return (b"\x93NUMPY" + bytes([version, 0]) +
            struct.pack("<H" if version == 1 else "<I", len(text)) + text + data)


def data_sets():
    images = idx((4, 2, 3), bytes(range(24)))
    labels = idx((4,), bytes([0, 1, 1, 0]))
    zipped = gzip.compress(images, mtime=0)
    two = gzip.compress(images[:20], mtime=0) + gzip.compress(images[20:], mtime=0)
    for name, mode, rows, a, b in [
            ("plain", 0, 0, images, labels), ("rows", 1, 1 | 2 << 3, images, labels),
            ("zipped", 2, 2, zipped, gzip.compress(labels, mtime=0)),
            ("members", 0, 0, two, labels), ("short", 0, 0, images[:-5], labels)]:
        yield ("idx_fuzz", name, bytes([mode, rows]) + part(a) + b)

    f4 = npy("<f4", (3, 2), floats(1, 2, 3, 4, 5, 6))
    f8 = npy("<f8", (3, 1, 2), struct.pack("<6d", 1, 2, 3, 4, 5, 1e300), 2)
    u1 = npy("|u1", (3, 2), bytes(range(6)), 3)
    i8 = npy("<i8", (3,), struct.pack("<3q", 0, 1, 1))
    i4 = npy("<i4", (3, 1), struct.pack("<3i", 0, 1, 1))
    wide = npy("<f4", (3, 2), floats(1, 2, 3, 4, 5, 6))
    i2 = npy("<i2", (3, 2), struct.pack("<6h", 1, -2, 3, 4, 5, 32767))
    u8 = npy("<u8", (3,), struct.pack("<3Q", 0, 1, 2**64 - 1))
    b1 = npy("|b1", (3,), bytes([0, 1, 1]))
    for name, mode, rows, a, b in [
            ("f4", 0, 0, f4, i8), ("f8", 1, 1, f8, i4), ("u1", 2, 2, u1, wide),
            ("i2", 1, 0, i2, b1), ("u8", 2, 0, b1, u8),
            ("zipped", 0, 1 | 1 << 3, gzip.compress(f4, mtime=0), i8)]:
        yield ("npy_fuzz", name, bytes([mode, rows]) + part(a) + b)

    header, semicolon, mean, median, skip = 4, 8, 16, 32, 48
    doubt, classes = 64, 128
    holes = b"age,job,pay\n39,NA,1\n?,clerk,0\n50, ,1\n,clerk,0\n"
    adult = (b'age,job,hours,pay\n39,"State, gov",40,<=50K\n'
             b'50,"self ""emp""",13,>50K\n38,?,40,<=50K\n')
    for name, mode, rows, columns, text in [
            ("numbers", 0, 0, b"0", b"1,0.5,-2e3\n0,1,.25\n"),
            ("words", header | 1, 0, b"pay;age;job;hours", adult),
            ("range", header, 1 | 1 << 3, b"pay;0,2;1", adult),
            ("crlf", header | semicolon | 2, 0, b"y",
             b"\xef\xbb\xbfx;y\r\n1;2\r\n\r\n3;4"),
            ("columns", 0, 0, b"2;0-1", b"1,2,0\n3,4,1\n"),
            ("mean", header | mean, 0, b"pay;age;job", holes),
            ("median", header | median, 1, b"pay;age;job", holes),
            ("skip", header | skip, 0, b"pay;age", holes),
            ("doubt", header | doubt, 0, b"2", b"1,2,3\n4,5,6\n"),
            ("header-value", header | doubt, 0, b"1;;0", b"smith,no\nsmith,yes\n"),
            ("classes", header | classes, 0, b"y", b"x,y\n1,NA\n2,yes\n3,0\n"),
            ("names", header, 0, b"y;0-1", b",0,1,y\n7,1,2,0\n8,3,4,1\n"),
            ("returns", 0, 0, b"0", b"1,2\r3,4\r"),
            ("utf16", 0, 0, b"0", "1,2\n3,4\n".encode("utf-16-le")),
            ("zipped", 0, 0, b"0", gzip.compress(b"1,2\n0,3\n", mtime=0))]:
        yield ("csv_fuzz", name, bytes([mode, rows]) + part(columns) + text)


# ---- safetensors

def safetensors():
    def file(header, data):
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        return struct.pack("<Q", len(text)) + text + data

    def tensor(shape, begin, end, dtype="F32"):
        return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}

    for name, header, data in [
            ("two", {"0.weight": tensor([2, 3], 0, 24),
                     "0.bias": tensor([2], 24, 32)}, floats(*range(8))),
            ("metadata", {"__metadata__": {"format": "pt"},
                          "a": tensor([], 0, 4)}, floats(1)),
            ("empty-tensor", {"a": tensor([0, 7], 0, 0)}, b""),
            ("nothing", {}, b""),
            ("hole", {"a": tensor([1], 0, 4), "b": tensor([1], 8, 12)},
             floats(1, 2, 3)),
            ("halves", {"a": tensor([3], 0, 6, "F16"), "b": tensor([], 6, 8, "BF16")},
             bytes.fromhex("003c00c50100803f")),
            ("counter", {"a": tensor([1], 0, 4), "n": tensor([], 4, 12, "I64")},
             floats(1) + bytes(8)),
            ("other-types", {"a": tensor([1], 0, 4), "f": tensor([3, 2], 4, 7, "F4"),
                             "c": tensor([1], 7, 15, "C64")},
             floats(1) + bytes(11))]:
        yield ("safetensors_fuzz", name, file(header, data))
