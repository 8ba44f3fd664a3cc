#!/usr/bin/env python3
"""Writes the seeds of the fuzz targets: small, whole files of every kind.

usage: tests/fuzz/make_corpus.py [OUT]     (tests/fuzz/corpus)

Needs protoc. Files named found-* are inputs that once broke something; they
are kept, and not made here.
"""

import gzip
import json
import os
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
OUT = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "corpus")


def save(target, name, data):
    folder = os.path.join(OUT, target)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data)


def part(data):
    """As Input::Part in fuzz.h."""
    return struct.pack("<H", len(data)) + data


def message(kind, text, file=None):
    """The bytes of a message given in protobuf's text format."""
    file = file or {"Ch": "checkpoint", "Co": "coordinator_state"}.get(
        kind[:2], "parameter_service")
    return subprocess.run(
        ["protoc", "-I", os.path.join(ROOT, "proto"),
         f"--encode=tributary.v1.{kind}", f"tributary/v1/{file}.proto"],
        input=text.encode(), stdout=subprocess.PIPE, check=True).stdout


def crc32c(data, crc=0):
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


# ---- frames: the kind of message, bytes a slice, the message

ADDRESS = "address {job_id: 77 plan_epoch: 1 shard: 1 block: 3}"


def frames():
    payload = floats(1, -2, 3.5, 0)
    nan = floats(1, float("nan"), float("inf"))
    octal = lambda data: "".join(f"\\{byte:03o}" for byte in data)
    crc = crc32c(payload)
    push = (f'{ADDRESS} rank: 1 incarnation: 2 step: 9 samples: 64 '
            f'wait_ms: 1000 base_version: 9 crc32c: {crc} ')
    for name, kind, slice_bytes, text in [
            ("push", 0, 0, push + f'payload: "{octal(payload)}"'),
            ("push-in-slices", 0, 3, push + f'payload: "{octal(payload)}"'),
            ("push-nan", 0, 7, push + f'payload: "{octal(nan)}"'),
            ("push-without-samples", 0, 0,
             f"{ADDRESS} incarnation: 18446744073709551615 step: -1"),
            ("push-answer", 1, 5,
             f'version: 10 crc32c: {crc} payload: "{octal(payload)}"'),
            ("initialize", 2, 0,
             f'{ADDRESS} crc32c: {crc} payload: "{octal(payload)}"'),
            ("pull", 3, 0, f"{ADDRESS} min_version: 4 wait_ms: 60000 exact: true"),
            ("pull-answer", 4, 1,
             f'version: 3 crc32c: {crc} payload: "{octal(payload)}"'),
            ("statistics", 5, 0,
             "job_id: 77 plan_epoch: 1 shard: 1 step: 3 phase: TRUST_RATIO")]:
        kinds = ["PushPullRequest", "PushPullResponse", "InitializeRequest",
                 "PullRequest", "PullResponse", "StatisticsRequest"]
        save("frame_fuzz", name,
             bytes([kind, slice_bytes]) + message(kinds[kind], text))
    # Two payloads: the last counts. A field that nobody knows. No payload.
    twice = message("PushPullRequest", f'rank: 1 payload: "{octal(nan)}"')
    save("frame_fuzz", "payload-twice", bytes([0, 2]) + twice + twice)
    save("frame_fuzz", "unknown-fields", bytes([0, 0]) + twice +
         b"\x92\x03\x03abc" + b"\x98\x03\x07" + b"\xa5\x03\1\2\3\4")
    # Protobuf reads tags and lengths of at most five bytes.
    save("frame_fuzz", "long-tag", bytes([0, 0]) +
         b"\xfa\x80\x80\x80\x80\x80\x00\x02ab")
    save("frame_fuzz", "long-length", bytes([0, 0]) +
         b"\x7a\x82\x80\x80\x80\x80\x80\x00ab")
    save("frame_fuzz", "payload-in-front", bytes([0, 4]) + b"\x7a\x04\0\0\0@" +
         message("PushPullRequest", push))


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
    save("job_fuzz", "job", JOB.encode())
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
        save("job_fuzz", name, JOB.replace(old, new).encode())
    save("job_fuzz", "overrides", JOB.encode() + b"\0training.epochs=3"
         b"\0training.optimizer={sgd: {learning_rate: 0.1, momentum: .9}}"
         b"\0cluster.workers=4")


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
    """A file of one page, as common/checkpoint/page_format.h has it."""
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
        save("checkpoint_fuzz", name, bytes([flag]) + whole)
        save("checkpoint_fuzz", name + "-cut", bytes([flag]) + whole[:-7])
        save("checkpoint_fuzz", name + "-content",
             bytes([flag | 2]) + content(kind, front, behind))
        save("checkpoint_fuzz", name + "-message",
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
        save("idx_fuzz", name, bytes([mode, rows]) + part(a) + b)

    f4 = npy("<f4", (3, 2), floats(1, 2, 3, 4, 5, 6))
    f8 = npy("<f8", (3, 1, 2), struct.pack("<6d", 1, 2, 3, 4, 5, 1e300), 2)
    u1 = npy("|u1", (3, 2), bytes(range(6)), 3)
    i8 = npy("<i8", (3,), struct.pack("<3q", 0, 1, 1))
    i4 = npy("<i4", (3, 1), struct.pack("<3i", 0, 1, 1))
    wide = npy("<f4", (3, 2), floats(1, 2, 3, 4, 5, 6))
    for name, mode, rows, a, b in [
            ("f4", 0, 0, f4, i8), ("f8", 1, 1, f8, i4), ("u1", 2, 2, u1, wide),
            ("zipped", 0, 1 | 1 << 3, gzip.compress(f4, mtime=0), i8)]:
        save("npy_fuzz", name, bytes([mode, rows]) + part(a) + b)

    header, semicolon = 4, 8
    adult = (b'age,job,hours,pay\n39,"State, gov",40,<=50K\n'
             b'50,"self ""emp""",13,>50K\n38,?,40,<=50K\n')
    for name, mode, rows, columns, text in [
            ("numbers", 0, 0, b"0", b"1,0.5,-2e3\n0,1,.25\n"),
            ("words", header | 1, 0, b"pay;age;job;hours", adult),
            ("range", header, 1 | 1 << 3, b"pay;0,2;1", adult),
            ("crlf", header | semicolon | 2, 0, b"y",
             b"\xef\xbb\xbfx;y\r\n1;2\r\n\r\n3;4"),
            ("columns", 0, 0, b"2;0-1", b"1,2,0\n3,4,1\n"),
            ("zipped", 0, 0, b"0", gzip.compress(b"1,2\n0,3\n", mtime=0))]:
        save("csv_fuzz", name, bytes([mode, rows]) + part(columns) + text)


# ---- safetensors

def safetensors():
    def file(header, data):
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        return struct.pack("<Q", len(text)) + text + data

    def tensor(shape, begin, end):
        return {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}

    for name, header, data in [
            ("two", {"0.weight": tensor([2, 3], 0, 24),
                     "0.bias": tensor([2], 24, 32)}, floats(*range(8))),
            ("metadata", {"__metadata__": {"format": "pt"},
                          "a": tensor([], 0, 4)}, floats(1)),
            ("empty-tensor", {"a": tensor([0, 7], 0, 0)}, b""),
            ("nothing", {}, b""),
            ("hole", {"a": tensor([1], 0, 4), "b": tensor([1], 8, 12)},
             floats(1, 2, 3))]:
        save("safetensors_fuzz", name, file(header, data))


# ---- the coordinator's state: a checksum that fits is made, then the message

def states():
    text = """job_id: 5 phase: JOB_PHASE_RUNNING
    job {name: "small" cluster {servers: 1 workers: 2}}
    declaration {parameters {name: "w" shape: 3} total_steps: 40
                 steps_per_epoch: 10 incarnation: 2}
    plan {job_id: 5 epoch: 1 parameters {name: "w" shape: 3}
          servers: "127.0.0.1:7001" bucket_bytes: 4194304 num_workers: 2
          total_steps: 40 checkpoint_directory: "/runs/a/checkpoints"}
    last_incarnation: 3 restore_step: 20 restore_from: "/runs/a/step-20"
    places {holder {role: ROLE_SERVER instance: "s" address: "127.0.0.1:7001"
                    host: "one" pid: 11} incarnation: 1 alive: true}
    places {holder {role: ROLE_WORKER instance: "a" host: "one" pid: 12}
            incarnation: 2 alive: true}
    places {holder {role: ROLE_WORKER instance: "b" host: "two" pid: 13}
            index: 1 incarnation: 3 losses: 1}
    """
    running = message("CoordinatorState", text)
    save("coordinator_state_fuzz", "running", b"\1" + running)
    save("coordinator_state_fuzz", "file",
         b"\0" + struct.pack("<I", crc32c(running)) + running)
    for name, more in [("lost-server", "wants_new_plan: true"),
                       ("stopping", "phase: JOB_PHASE_STOPPING stop_requested: true"),
                       ("term", 'term: 3 started_micros: 1700000000000000 '
                        'evaluations {step: 10 epoch: 1 samples: 8 '
                        'metrics {key: "r2" value: 0.5}} '
                        'evaluations {step: 20 epoch: 2}'),
                       ("shrink", "job {cluster {on_worker_loss: WORKER_LOSS_SHRINK}}")]:
        save("coordinator_state_fuzz", name, b"\1" + running +
             message("CoordinatorState", more))
    save("coordinator_state_fuzz", "waiting", b"\1" + message(
        "CoordinatorState", 'job_id: 5 phase: JOB_PHASE_WAITING '
        'job {name: "small" cluster {servers: 1 workers: 1}}'))


# ---- calls to the services: two choices, then a kind, a length and a message
# of each; kinds as in handlers_fuzz.cc

def handlers():
    octal = lambda data: "".join(f"\\{byte:03o}" for byte in data)

    def call(kind, of, text="", file=None):
        return bytes([kind]) + part(message(of, text, file))

    def go_on(what):
        return bytes([15]) + part(bytes([what]))

    def coordinator(kind, of, text):
        return call(kind, of, text, "coordinator_service")

    def at(block):
        return f"address {{job_id: 77 plan_epoch: 1 block: {block}}}"

    def push(rank, step, block, values, more=""):
        return call(1, "PushPullRequest",
                    f'{at(block)} rank: {rank} incarnation: {rank + 1} step: {step} '
                    f'samples: 4 base_version: {step} {more} '
                    f'payload: "{octal(floats(*values))}"')

    def training(blocks, steps):
        calls = b""
        for block, size in enumerate(blocks):
            weights = octal(floats(*[0.5] * size))
            calls += call(4, "InitializeRequest", f'{at(block)} payload: "{weights}"')
            calls += call(3, "ClockRequest", f"{at(block)} rank: 1 incarnation: 2")
        for step in range(steps):
            for block, size in enumerate(blocks):
                for rank in (0, 1):
                    calls += push(rank, step, block, [0.1 * (rank + 1)] * size)
                calls += push(0, step, block, [0.1] * size)  # again
                calls += call(2, "PullRequest", f"{at(block)} min_version: {step} exact: true")
                calls += call(2, "PullRequest", f"{at(block)} finished_steps: {step + 1}")
            calls += call(5, "StatisticsRequest",
                          f"job_id: 77 plan_epoch: 1 step: {step} phase: GRADIENT_NORM")
            calls += call(6, "StatisticsResponse", "values: 0.5 values: 0.25")
            calls += bytes([7]) + part(b"")
        return calls

    def life(servers, finish):
        calls = b""
        for i in range(servers):
            calls += coordinator(8, "RegisterRequest", f'role: ROLE_SERVER instance: "s{i}" '
                                 f'address: "127.0.0.1:{7000 + i}" host: "one" pid: {10 + i}')
        for i in range(2):
            calls += coordinator(8, "RegisterRequest", f'role: ROLE_WORKER instance: "w{i}" '
                                 f'host: "one" pid: {20 + i}')
        for i in range(2):
            calls += coordinator(9, "DeclareModelRequest",
                                 f'rank: {i} incarnation: {servers + i + 1} total_steps: 4 '
                                 'steps_per_epoch: 2 parameters {name: "0.weight" shape: 2 shape: 3} '
                                 'parameters {name: "0.bias" shape: 2}')
        calls += coordinator(10, "GetPlanRequest", "min_epoch: 1")
        for i in range(2):
            calls += coordinator(13, "ExchangeRequest", f'rank: {i} incarnation: {servers + i + 1} '
                                 'plan_epoch: 1 group: "data" ranks: 0 ranks: 1 payload: "address"')
        for step in range(1, 5):
            for i in range(2):
                done = "finished: true" if step == 4 and finish else ""
                calls += coordinator(11, "HeartbeatRequest",
                                     f"role: ROLE_WORKER index: {i} incarnation: {servers + i + 1} "
                                     f"job_id: 77 plan_epoch: 1 begun_step: {step} {done} "
                                     f"steps {{step: {step} epoch: {(step + 1) // 2} loss_sum: 2 "
                                     "samples: 4 spans {activity: STEP_ACTIVITY_WAIT end_micros: 9}}")
            for i in range(servers or 2):
                role = "ROLE_SERVER" if servers else "ROLE_WORKER"
                calls += coordinator(11, "HeartbeatRequest",
                                     f"role: {role} index: {i} incarnation: {i + 1} job_id: 77 "
                                     f"plan_epoch: 1 checkpoints {{step: {step} plan_epoch: 1 "
                                     f'file {{name: "shard-00{i}-of-002.ckpt" bytes: 9}}}}')
            calls += go_on(0)
        for i in range(2):
            calls += coordinator(12, "ReportEvaluationRequest",
                                 f"rank: {i} incarnation: {servers + i + 1} step: 4 epoch: 2 part "
                                 '{samples: 2 values: 2 loss_sum: 1 scores: 0.5 scores: 1 targets: "\\000\\001"}')
        for parameter, size in ((0, 6), (1, 2)):
            calls += coordinator(14, "PutWeightsRequest",
                                 f"incarnation: {servers + 1} plan_epoch: 1 step: 4 parameter: {parameter} "
                                 f'payload: "{octal(floats(*[1] * size))}" '
                                 f"crc32c: {crc32c(floats(*[1] * size))}")
        return calls

    for name, choice, job, calls in [
            ("bsp", 0, 0, training([8], 3) + life(2, True) + go_on(4)),
            ("bsp-two-servers", 4, 2, training([3], 2) + life(2, False) + go_on(1)),
            ("backup", 1, 4, training([8], 2) + life(2, False) + go_on(16) + go_on(8)),
            ("ssp-clip", 2, 1, training([8], 3) + life(0, True) + go_on(4)),
            ("async", 3, 0, training([8], 3) + life(2, False) + go_on(48) + go_on(2)),
            ("lamb", 8, 1, training([8], 2) + life(0, False) + go_on(8)),
            ("clip", 16, 5, training([8], 5) + life(0, False) + go_on(17)),
            ("skip", 32, 6, training([8], 2) + push(0, 2, 0, [float("nan")] * 8) +
             push(1, 2, 0, [1] * 8) + life(2, True))]:
        save("handlers_fuzz", name, bytes([choice, job]) + calls)


frames()
jobs()
checkpoints()
data_sets()
safetensors()
states()
handlers()
