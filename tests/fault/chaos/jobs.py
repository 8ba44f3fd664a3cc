# SPDX-License-Identifier: Apache-2.0
"""What trials train: the job file, the strategies and the optimizers."""

import collections

ROWS = 1250
BATCH = 20  # of each replica and micro-batch
ACCUMULATE = 2

JOB = """name: chaos
model:
  sequential:
    - linear: {{in: 16, out: 96}}
    - tanh
    - dropout: {{p: 0.1}}
    - linear: {{in: 96, out: 1}}
data:
  train: {{synthetic: {{kind: mlp_teacher, rows: {rows}}}}}
  test: {{synthetic: {{kind: mlp_teacher, rows: 200, first_row: 1000000}}}}
  {batch}
training:
  epochs: {epochs}
  loss: mse
  gradient_accumulation: {accumulate}
  optimizer: {optimizer}
strategy: {block}
{blocks}cluster: {{servers: {servers}, workers: {workers}, lease_seconds: {lease},
  on_worker_loss: {on_loss}, max_restarts: 20}}
"""

# block, servers, workers, group of strategies that end with the same bits ("" for
# one whose bits depend on timing).
Strategy = collections.namedtuple("Strategy", "block servers workers bits")
STRATEGIES = {
    "ps1": Strategy("{parameter_server: {}}", 1, 2, "data"),
    "ps2": Strategy("{parameter_server: {}}", 2, 2, "data"),
    "ps3": Strategy("{parameter_server: {}}", 3, 2, "data"),
    "all_reduce": Strategy("{all_reduce: {}}", 0, 2, "data"),
    "sharded": Strategy("{all_reduce: {sharded: true}}", 0, 2, "data"),
    "data_parallel": Strategy("data_parallel", 0, 2, "data"),
    "ps_tp2": Strategy("{parameter_server: {}, tensor_parallel: 2}", 2, 4, "ps_tp"),
    "ar_tp2": Strategy("{all_reduce: {}, tensor_parallel: 2}", 0, 4, "tp"),
    "ps_pp2": Strategy(
        "{parameter_server: {}, pipeline_parallel: {stages: 2}}", 2, 4, "pp"
    ),
    "ar_pp2": Strategy("{all_reduce: {}, pipeline_parallel: {stages: 2}}", 0, 4, "pp"),
    "delayed": Strategy(
        "{parameter_server: {sync: {bsp: {delay: 1}}}}", 2, 2, "delayed"
    ),
    "top_k": Strategy(
        "{parameter_server: {wire: top_k, top_k_fraction: 0.05}}", 2, 2, "top_k"
    ),
    "async": Strategy("{parameter_server: {sync: async}}", 2, 2, ""),
    "ssp": Strategy("{parameter_server: {sync: {ssp: {staleness: 3}}}}", 2, 2, ""),
    "local_sgd": Strategy(
        "{parameter_server: {sync: {local_sgd: {period: 4}}}}", 2, 2, "local"
    ),
    "backup": Strategy(
        "{parameter_server: {sync: {bsp: {backup_workers: 1}}}}", 2, 3, ""
    ),
}

SGD = "{sgd: {learning_rate: 0.05, momentum: 0.9}}"
SLOW_SGD = "{sgd: {learning_rate: 0.01}}"
ADAM = "{adam: {learning_rate: 0.003}}"
# Momentum diverges with stale or delayed gradients, and the state of a worker's local
# optimizer is lost with the worker (docs/consistency.md).
OPTIMIZERS_OF = {
    "": [SLOW_SGD, ADAM],
    "top_k": [SLOW_SGD, ADAM],
    "delayed": [SLOW_SGD, ADAM],
    "local": ["{sgd: {learning_rate: 0.05}}"],
}
OPTIMIZERS = [SGD, ADAM]


def replicas(strategy):
    """How many workers, or groups of workers, have samples of their own."""
    return 2 if strategy.workers == 4 else strategy.workers


def steps_per_epoch(ranks):
    return -(-ROWS // (BATCH * ACCUMULATE * ranks))


def with_field(block, part, field):
    """The strategy's block with a further field in one of its parts."""
    return block.replace(f"{part}: {{", f"{part}: {{{field}, ").replace(", }", "}")


def strategy_block(trial):
    """`strategy` in the job file."""
    block = with_field(
        trial.strategy.block, "parameter_server", f"transport: {trial.transport}"
    )
    if trial.timeout:
        block = with_field(block, "all_reduce", f"timeout_seconds: {trial.timeout}")
    return block


def text(trial):
    """The job file of a trial."""
    strategy = trial.strategy
    blocks = ""
    if trial.every:
        blocks += f"checkpoint: {{every_steps: {trial.every}}}\n"
    if trial.evaluate:
        blocks += f"evaluation: {{every_steps: {trial.evaluate}, keep_best: true}}\n"
    batch = f"batch_size: {BATCH}"
    if trial.global_batch:
        batch = f"global_batch_size: {BATCH * replicas(strategy)}"
    return JOB.format(
        rows=ROWS,
        batch=batch,
        epochs=trial.epochs,
        accumulate=ACCUMULATE,
        optimizer=trial.optimizer,
        block=strategy_block(trial),
        blocks=blocks,
        servers=strategy.servers,
        workers=strategy.workers,
        lease=trial.lease,
        on_loss=trial.on_loss,
    )
