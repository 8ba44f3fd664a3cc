# SPDX-License-Identifier: Apache-2.0
"""The seeds that are messages: frames, the coordinator's state and calls.

Each function yields a fuzz target, the name of a seed and its bytes.
"""

import struct

from seed_bytes import crc32c, floats, message, octal, part

# ---- frames: the kind of message, bytes a slice, the message

ADDRESS = "address {job_id: 77 plan_epoch: 1 shard: 1 block: 3}"


def frames():
    payload = floats(1, -2, 3.5, 0)
    nan = floats(1, float("nan"), float("inf"))
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
        yield ("frame_fuzz", name,
               bytes([kind, slice_bytes]) + message(kinds[kind], text))
    # Two payloads: the last counts. A field that nobody knows. No payload.
    twice = message("PushPullRequest", f'rank: 1 payload: "{octal(nan)}"')
    yield ("frame_fuzz", "payload-twice", bytes([0, 2]) + twice + twice)
    yield ("frame_fuzz", "unknown-fields", bytes([0, 0]) + twice +
           b"\x92\x03\x03abc" + b"\x98\x03\x07" + b"\xa5\x03\1\2\3\4")
    # Protobuf reads tags and lengths of at most five bytes.
    yield ("frame_fuzz", "long-tag", bytes([0, 0]) +
           b"\xfa\x80\x80\x80\x80\x80\x00\x02ab")
    yield ("frame_fuzz", "long-length", bytes([0, 0]) +
           b"\x7a\x82\x80\x80\x80\x80\x80\x00ab")
    yield ("frame_fuzz", "payload-in-front", bytes([0, 4]) + b"\x7a\x04\0\0\0@" +
           message("PushPullRequest", push))


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
    yield ("coordinator_state_fuzz", "running", b"\1" + running)
    yield ("coordinator_state_fuzz", "file",
           b"\0" + struct.pack("<I", crc32c(running)) + running)
    for name, more in [("lost-server", "wants_new_plan: true"),
                       ("stopping", "phase: JOB_PHASE_STOPPING stop_requested: true"),
                       ("term", 'term: 3 started_micros: 1700000000000000 '
                        'evaluations {step: 10 epoch: 1 samples: 8 '
                        'metrics {key: "r2" value: 0.5}} '
                        'evaluations {step: 20 epoch: 2}'),
                       ("shrink", "job {cluster {on_worker_loss: WORKER_LOSS_SHRINK}}")]:
        yield ("coordinator_state_fuzz", name, b"\1" + running +
               message("CoordinatorState", more))
    yield ("coordinator_state_fuzz", "waiting", b"\1" + message(
        "CoordinatorState", 'job_id: 5 phase: JOB_PHASE_WAITING '
        'job {name: "small" cluster {servers: 1 workers: 1}}'))


# ---- calls to the services: two choices, then a kind, a length and a message
# of each; kinds as in handlers_fuzz.cc

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
    """Calls of two ranks to a server; rank 0 sends each contribution twice."""
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
        sums = octal(struct.pack("<2d", 0.5, 0.25))
        calls += call(6, "StatisticsResponse", f'payload: "{sums}"')
        calls += bytes([7]) + part(b"")
    return calls


def life(servers, finish, asks=False):
    """Calls of a job of two workers, and of one who asks for a checkpoint."""
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
        if asks:
            calls += coordinator(7, "TakeCheckpointRequest", f"after: {step} wait_ms: 1")
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


def handlers():
    for name, choice, job, calls in [
            ("bsp", 0, 0, training([8], 3) + life(2, True) + go_on(4)),
            ("bsp-two-servers", 4, 2, training([3], 2) + life(2, False) + go_on(1)),
            ("backup", 1, 4, training([8], 2) + life(2, False) + go_on(16) + go_on(8)),
            ("ssp-clip", 2, 1, training([8], 3) + life(0, True) + go_on(4)),
            ("async", 3, 0, training([8], 3) + life(2, False) + go_on(48) + go_on(2)),
            ("lamb", 8, 1, training([8], 2) + life(0, False) + go_on(8)),
            ("clip", 16, 5, training([8], 5) + life(0, False) + go_on(17)),
            ("skip", 32, 6, training([8], 2) + push(0, 2, 0, [float("nan")] * 8) +
             push(1, 2, 0, [1] * 8) + life(2, True)),
            ("asked", 0, 0, life(2, True, asks=True) + go_on(4))]:
        yield ("handlers_fuzz", name, bytes([choice, job]) + calls)
