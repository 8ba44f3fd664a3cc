#include "common/job/job_file.h"
#include "gtest/gtest.h"
#include "tests/unit/common/job/good_job.h"

namespace tributary {
namespace {

struct SpoiledLine {
  int line;
  const char* text;
  const char* error;
};

constexpr SpoiledLine kSpoiledLines[] = {
    {10, "  epochs: 2: 3", "job.yaml:10: not valid YAML: illegal map value"},
    {12, "  optimizer: {sgd: {learning_rate: 0.1}",
     "job.yaml:13: not valid YAML: end of map flow not found"},
    {12, "\toptimizer: sgd",
     "job.yaml:12: not valid YAML: illegal tab when looking for indentation"},
    {6, "data: &anchor",
     "job.yaml:6: anchors (&name) are not used in job files; write the value "
     "out"},
    {8, "  batch_size: *anchor",
     "job.yaml:8: not valid YAML: the referenced anchor is not defined"},
    {8, "  batch_size: !!int 16",
     R"(job.yaml:8: tags are not used in job files, got "tag:yaml.org,2002:int")"},
    {8, R"(  batch_size: "\q")",
     "job.yaml:8: not valid YAML: unknown escape character: q"},
    {12, "  optimizer: {sgd: {learning_rate: 0.1}}\n---\nname: second",
     "job.yaml:13: a second YAML document begins; a job file is one"},
    {1, "? [model]\n:", "job.yaml:1: a key must be a name"},
    {12, "  optimiser: {sgd: {learning_rate: 0.1}}",
     R"(job.yaml:12: unknown field "optimiser" in training; did you mean "optimizer"?)"},
    {1, "modle:",
     R"(job.yaml:1: unknown field "modle" in the job; did you mean "model"?)"},
    {9, "banana: 1\ntraining:",
     R"(job.yaml:9: unknown field "banana" in the job; the job knows name, model, data, training, strategy, cluster, seed, device, checkpoint)"},
    {12, "  optimizer: {sgdd: {learning_rate: 0.1}}",
     R"(job.yaml:12: unknown field "sgdd" in training.optimizer; did you mean "sgd"?)"},
    {4, "    - rleu",
     R"(job.yaml:4: unknown field "rleu" in model.sequential.1; did you mean "relu"?)"},
    {4, "    - {}",
     "job.yaml:4: model.sequential.1 wants one of linear, relu, gelu, sigmoid, "
     "tanh, silu, layernorm, dropout, flatten, conv2d, max_pool, avg_pool, "
     "global_avg_pool, embedding, position_embedding, attention, residual, "
     "tied_linear, batch_norm, rms_norm, group_norm"},
    {4, "    - dropout: 0.5",
     R"(job.yaml:4: model.sequential.1.dropout wants a mapping with p; got "0.5")"},
    {4, "    - relu: 3",
     R"(job.yaml:4: model.sequential.1.relu wants nothing in it, as in {}; got "3")"},
    {12, "  optimizer: adm",
     R"(job.yaml:12: unknown field "adm" in training.optimizer; did you mean "adam"?)"},
    {11, "  loss: crossentropy",
     R"(job.yaml:11: unknown field "crossentropy" in training.loss; did you mean "cross_entropy"?)"},
    {11, "  loss: mse\n  sync: bsp",
     R"(job.yaml:12: unknown field "sync" in training; training knows epochs, steps, loss, optimizer, learning_rate_schedule, gradient_accumulation, clip_norm, precision, nonfinite)"},
    {10, "  epochs: three",
     R"(job.yaml:10: training.epochs wants a whole number, got "three")"},
    {10, "  epochs: 2.5",
     R"(job.yaml:10: training.epochs wants a whole number, got "2.5")"},
    {10, R"(  epochs: "2")",
     R"(job.yaml:10: training.epochs wants a whole number, got the text "2")"},
    {10, "  epochs:",
     "job.yaml:10: training.epochs wants a whole number, got nothing"},
    {10, "  epochs: [2]",
     "job.yaml:10: training.epochs wants a whole number, got a list"},
    {10, "  epochs: 99999999999999999999",
     R"(job.yaml:10: training.epochs wants a whole number from -9223372036854775808 to 9223372036854775807, got "99999999999999999999")"},
    {12, "  optimizer: {sgd: {learning_rate: fast}}",
     R"(job.yaml:12: training.optimizer.sgd.learning_rate wants a number, got "fast")"},
    {12, "  optimizer: {sgd: {learning_rate: .nan}}",
     R"(job.yaml:12: training.optimizer.sgd.learning_rate wants a number, got ".nan")"},
    {12, "  optimizer: {sgd: {learning_rate: nan}}",
     R"(job.yaml:12: training.optimizer.sgd.learning_rate wants a number, got "nan")"},
    {12, "  optimizer: {sgd: {learning_rate: 1e300}}",
     R"(job.yaml:12: training.optimizer.sgd.learning_rate wants a number that float32 can hold, got "1e300")"},
    {12, "  optimizer: {sgd: {learning_rate: 0.1, nesterov: yes}}",
     R"(job.yaml:12: training.optimizer.sgd.nesterov wants true or false, got "yes")"},
    {1, "device: gpu\nmodel:",
     R"(job.yaml:1: device wants auto, cpu or cuda, got "gpu")"},
    {1, "device: cdua\nmodel:",
     R"(job.yaml:1: device wants auto, cpu or cuda, got "cdua")"},
    {1, "seed: -1\nmodel:",
     R"(job.yaml:1: seed wants a whole number of at least 0, got "-1")"},
    {1, "name: {a: b}\nmodel:", "job.yaml:1: name wants a text, got a mapping"},
    {1, "name: \"a\\nb\"\nmodel:",
     R"(job.yaml:1: name wants a text without control characters, got the text "a\nb")"},
    {1, "name: \"a\xff\"\nmodel:",
     R"(job.yaml:1: name wants a text in UTF-8, got the text "a\xff")"},
    {9, "strategy: all_reduce\ncluster: {on_worker_loss: shrink}\ntraining:",
     "job.yaml:10: cluster.on_worker_loss: shrink wants strategy "
     "parameter_server, got all_reduce"},
    {9, "strategy: all_reduce\ntraining:\n  nonfinite: reject",
     "job.yaml:11: training.nonfinite: reject wants strategy parameter_server, "
     "got all_reduce"},
    {9, "strategy: {parameter_server: {bucket_bytes: 4MB}}\ntraining:",
     R"(job.yaml:9: strategy.parameter_server.bucket_bytes wants a size such as 4MiB, got "4MB")"},
    {9, "strategy: {parameter_server: {wire: bfloat16}}\ntraining:",
     R"(job.yaml:9: strategy.parameter_server.wire wants float32, got "bfloat16")"},
    {9, "training: [1]\nother:",
     "job.yaml:9: training wants a mapping with epochs, steps, loss, "
     "optimizer, learning_rate_schedule, gradient_accumulation, clip_norm, "
     "precision, nonfinite; got a list"},
    {7, "  train: 5",
     R"(job.yaml:7: data.train wants a mapping with idx, csv, npy, synthetic, text; got "5")"},
    {8, "  batch_size: 16\n  shuffle: seed",
     "job.yaml:9: data.shuffle.seed wants a value, as in {seed: ...}"},
    {8, "  batch_size: 16\n  shuffle: {none: false}",
     "job.yaml:9: data.shuffle.none can only be true; to shuffle, write "
     "shuffle: {seed: 1}"},
    {2, "  sequential: {linear: 1}\n  x:",
     "job.yaml:2: model.sequential wants a list, got a mapping"},
    {8, "  batch_size: 16\n  batch_size: 32",
     "job.yaml:9: batch_size is given twice in data, first on line 8"},
    {8, "  batch_size: 16\n  global_batch_size: 32",
     "job.yaml:9: global_batch_size and batch_size exclude each other in data; "
     "keep one"},
    {10, "  epochs: 2\n  steps: 10",
     "job.yaml:11: steps and epochs exclude each other in training; keep one"},
    {12, "  optimizer: {sgd: {learning_rate: 0.1}, adam: {}}",
     "job.yaml:12: adam and sgd exclude each other in training.optimizer; keep "
     "one"},
    {4, "    - {relu: {}, tanh: {}}",
     "job.yaml:4: tanh and relu exclude each other in model.sequential.1; keep "
     "one"},
    {11, "", "job.yaml:9: loss is missing in training"},
    {12, "", "job.yaml:9: optimizer is missing in training"},
    {10, "", "job.yaml:9: training wants one of epochs, steps"},
    {8, "", "job.yaml:6: data wants one of batch_size, global_batch_size"},
    {7, "", "job.yaml:6: train is missing in data"},
    {12, "  optimizer: sgd",
     "job.yaml:12: learning_rate is missing in training.optimizer.sgd"},
    {3, "    - linear: {in: 20}",
     "job.yaml:3: out is missing in model.sequential.0.linear"},
    {7, "  train: {idx: {images: x}}",
     "job.yaml:7: labels is missing in data.train.idx"},
    {7, "  train: {}",
     "job.yaml:7: data.train wants one of idx, csv, npy, synthetic, text"},
    {3, "",
     "job.yaml:5: model.sequential.1.linear.in is 8, but data.train makes 20 "
     "features"},
    {10, "  epochs: 0",
     "job.yaml:10: training.epochs must be at least 1 and at most 1000000000, "
     "got 0"},
    {10, "  epochs: -3",
     "job.yaml:10: training.epochs must be at least 1 and at most 1000000000, "
     "got -3"},
    {8, "  batch_size: 0",
     "job.yaml:8: data.batch_size must be at least 1 and at most 16777216, got "
     "0"},
    {12, "  optimizer: {sgd: {learning_rate: 0}}",
     "job.yaml:12: training.optimizer.sgd.learning_rate must be above 0, got "
     "0"},
    {12, "  optimizer: {sgd: {learning_rate: 0.1, momentum: 1}}",
     "job.yaml:12: training.optimizer.sgd.momentum must be at least 0 and "
     "below 1, got 1"},
    {12, "  optimizer: {adam: {beta2: 1.5}}",
     "job.yaml:12: training.optimizer.adam.beta2 must be at least 0 and below "
     "1, got 1.5"},
    {4, "    - dropout: {p: 1}",
     "job.yaml:4: model.sequential.1.dropout.p must be at least 0 and below 1, "
     "got 1"},
    {3, "    - linear: {in: 0, out: 8}",
     "job.yaml:3: model.sequential.0.linear.in must be at least 1 and at most "
     "2147483647, got 0"},
    {3, "    - linear: {in: 4294967296, out: 8}",
     "job.yaml:3: model.sequential.0.linear.in must be at least 1 and at most "
     "2147483647, got 4294967296"},
    {9, "cluster: {servers: 0}\ntraining:",
     "job.yaml:9: cluster.servers must be at least 1 and at most 256, got 0"},
    {9, "cluster: {workers: 1025}\ntraining:",
     "job.yaml:9: cluster.workers must be at least 1 and at most 1024, got "
     "1025"},
    {9, "strategy: {parameter_server: {sync_timeout_seconds: 0}}\ntraining:",
     "job.yaml:9: strategy.parameter_server.sync_timeout_seconds must be above "
     "0 and at most 86400, got 0"},
    {9, "strategy: {parameter_server: {sync_timeout_seconds: 19}}\ntraining:",
     "job.yaml:9: strategy.parameter_server.sync_timeout_seconds must be at "
     "least twice cluster.lease_seconds, 10, got 19"},
    {9, "cluster: {lease_seconds: 61}\ntraining:",
     "job.yaml:9: strategy.parameter_server.sync_timeout_seconds must be at "
     "least twice cluster.lease_seconds, 61, got 120"},
    {9, "strategy: {all_reduce: {timeout_seconds: 5}}\ntraining:",
     "job.yaml:9: strategy.all_reduce.timeout_seconds must be at least twice "
     "cluster.lease_seconds, 10, got 5"},
    {9, "strategy: {parameter_server: {bucket_bytes: 2GiB}}\ntraining:",
     "job.yaml:9: strategy.parameter_server.bucket_bytes must be at least 1KiB "
     "and at most 1GiB, got 2GiB"},
    {12, "  optimizer: {sgd: {learning_rate: 0.1}}\n  gradient_accumulation: 0",
     "job.yaml:13: training.gradient_accumulation must be at least 1 and at "
     "most 65536, got 0"},
    {12, "  optimizer: {sgd: {learning_rate: 0.1}}\n  clip_norm: -1",
     "job.yaml:13: training.clip_norm must be at least 0, got -1"},
    {7,
     "  train: {synthetic: {kind: linear, rows: 1000, normalize: {std: [1, "
     "0]}}}",
     "job.yaml:7: data.train.synthetic.normalize.std.1 must be above 0, got 0"},
    {12,
     "  optimizer: {sgd: {learning_rate: 0.1}}\n  learning_rate_schedule: "
     "{multistep: {milestones: [0]}}",
     "job.yaml:13: training.learning_rate_schedule.multistep.milestones.0 must "
     "be at least 1 and at most 1000000000000000, got 0"},
    {5, "    - linear: {in: 9, out: 1}",
     "job.yaml:5: model.sequential.2.linear.in is 9, but "
     "model.sequential.0.linear.out makes 8 features"},
    {4, "    - layernorm: {features: 9}",
     "job.yaml:4: model.sequential.1.layernorm.features is 9, but "
     "model.sequential.0.linear.out makes 8 features"},
    {4, "    - group_norm: {groups: 3, features: 9}",
     "job.yaml:4: model.sequential.1.group_norm.features is 9, but "
     "model.sequential.0.linear.out makes 8 features"},
    {4, "    - group_norm: {groups: 3, features: 8}",
     "job.yaml:4: model.sequential.1.group_norm.groups must divide features, "
     "8, got 3"},
    {4, "    - group_norm: {features: 8}",
     "job.yaml:4: groups is missing in model.sequential.1.group_norm"},
    {4, "    - group_norm: {groups: 2, features: 8, epsilon: 0}",
     "job.yaml:4: model.sequential.1.group_norm.epsilon must be above 0, got "
     "0"},
    {4, "    - rms_norm: {features: 9}",
     "job.yaml:4: model.sequential.1.rms_norm.features is 9, but "
     "model.sequential.0.linear.out makes 8 features"},
    {4, "    - rms_norm: {features: 8, epsilon: 0}",
     "job.yaml:4: model.sequential.1.rms_norm.epsilon must be above 0, got 0"},
    {4, "    - rms_norm",
     "job.yaml:4: features is missing in model.sequential.1.rms_norm"},
    {5, "    - linear: {in: 8, out: 2}",
     "job.yaml:11: mse wants a last layer with 1 output; the model has 2"},
    {11, "  loss: bce_with_logits",
     "job.yaml:11: training.loss wants mse for the numbers that data.train "
     "makes"},
    {11, "  loss: cross_entropy",
     "job.yaml:11: cross_entropy wants a last layer with at least 2 outputs, "
     "one a class; the model has 1"},
    {3, "    - linear: {in: 16, out: 8}",
     "job.yaml:3: model.sequential.0.linear.in is 16, but data.train makes 20 "
     "features"},
    {12, "  optimizer: {sgd: {learning_rate: 0.1, nesterov: true}}",
     "job.yaml:12: training.optimizer.sgd.nesterov wants momentum above 0 and "
     "dampening 0"},
    {12, "  optimizer: {lamb: {clip_min: 2, clip_max: 1}}",
     "job.yaml:12: training.optimizer.lamb.clip_max must be at least clip_min"},
    {12,
     "  optimizer: adam\n  learning_rate_schedule: {warmup_cosine: {warmup: "
     "10, total: 10}}",
     "job.yaml:13: training.learning_rate_schedule.warmup_cosine.warmup must "
     "be below total, 10, got 10"},
    {12,
     "  optimizer: adam\n  learning_rate_schedule: {cosine: {warmup_steps: 10, "
     "t_max: 10}}",
     "job.yaml:13: training.learning_rate_schedule.cosine.warmup_steps must be "
     "below t_max, 10, got 10"},
    {12,
     "  optimizer: adam\n  learning_rate_schedule: {warmup_constant: {warmup: "
     "10, total: 10}}",
     "job.yaml:13: training.learning_rate_schedule.warmup_constant.total has "
     "no meaning; training.learning_rate_schedule.warmup_constant takes warmup "
     "alone"},
    {12,
     "  optimizer: adam\n  learning_rate_schedule: {multistep: {milestones: "
     "[5, 5]}}",
     "job.yaml:13: training.learning_rate_schedule.multistep.milestones.1 must "
     "be above the one before, 5, got 5"},
    {8, "  global_batch_size: 3\ncluster: {workers: 4}",
     "job.yaml:8: data.global_batch_size must be at least the number of "
     "workers, 4, got 3"},
    {8, "  batch_size: 16\n  test: {npy: {features: a, labels: b}}",
     "job.yaml:9: data.test wants the kind of data.train, synthetic, got npy"},
    {8, "  batch_size: 16\n  test: {synthetic: {kind: ctr, rows: 5}}",
     "job.yaml:9: data.test.synthetic.kind differs from data.train's"},
    {7, "  train: {synthetic: {kind: markov_text, rows: 10}}",
     "job.yaml:3: model.sequential.0.linear.in is 20, but data.train makes 32 "
     "features"},
    {7,
     "  train: {synthetic: {kind: linear, rows: 10, normalize: {standardize: "
     "true, mean: 1}}}",
     "job.yaml:7: data.train.synthetic.normalize takes either standardize or "
     "mean and std"},
    {7,
     "  train: {synthetic: {kind: linear, rows: 10, normalize: {mean: [1, 2], "
     "std: [1, 2, 3]}}}",
     "job.yaml:7: data.train.synthetic.normalize has 2 values in mean and 3 in "
     "std"},
    {7, "  train: {csv: {path: a.csv, header: false, columns: {label: age}}}",
     R"(job.yaml:7: data.train.csv.columns.label wants a number from 0 in a file without header, got "age")"},
    {7,
     "  train: {csv: {path: a.csv, header: false, columns: {label: 3, numeric: "
     "[5-2]}}}",
     R"(job.yaml:7: data.train.csv.columns.numeric.0 wants a number from 0 or a range such as 0-63 in a file without header, got "5-2")"},
    {7, "  train: {csv: {path: a.csv, columns: {label: age, numeric: age}}}",
     R"(job.yaml:7: data.train.csv.columns.numeric.0 names column "age", which is named before)"},
    {7,
     R"(  train: {csv: {path: a.csv, delimiter: ";;", columns: {label: age}}})",
     R"(job.yaml:7: data.train.csv.delimiter wants one character, got ";;")"},
    {4, "    - batch_norm: {features: 9}",
     "job.yaml:4: model.sequential.1.batch_norm.features is 9, but "
     "model.sequential.0.linear.out makes 8 features"},
    {3, "    - batch_norm: {features: 9}",
     "job.yaml:3: model.sequential.0.batch_norm.features is 9, but data.train "
     "makes 20 features"},
    {3, "    - relu",
     "job.yaml:5: model.sequential.2.linear.in is 8, but data.train makes 20 "
     "features"},
    {7, "  train: {synthetic: {kind: ctr, rows: 10}}",
     "job.yaml:3: model.sequential.0.linear.in is 20, but data.train makes 21 "
     "features"},
};

// A good language model without a file, of which tests spoil one thing.
constexpr char kTokensJob[] = R"(model:
  sequential:
    - embedding: {tokens: 16, dim: 8}
    - position_embedding: {length: 4, dim: 8}
    - residual:
        body: [{layernorm: {features: 8}}, {attention: {dim: 8, heads: 2, causal: true}}]
    - tied_linear: {to: 0.weight}
data:
  train: {synthetic: {kind: markov_text, rows: 100, length: 4}}
  batch_size: 16
training:
  epochs: 2
  loss: cross_entropy
  optimizer: adam
)";

struct SpoilingOverride {
  const char* text;
  const char* error;
};

constexpr SpoilingOverride kSpoilingOverrides[] = {
    {"model.sequential=[]",
     "--set model.sequential=[]: model.sequential is empty"},
    {"data.train.synthetic.rows=0",
     "--set data.train.synthetic.rows=0: data.train.synthetic.rows must be at "
     "least 1 and at most 1000000000000000, got 0"},
    {"model=",
     "--set model=: model wants one of sequential, mlp, cnn, gpt, resnet"},
    {"training.optimizer={adagrad: {epsilon: -1}}",
     "--set training.optimizer={adagrad: {epsilon: -1}}: "
     "training.optimizer.adagrad.epsilon must be at least 0, got -1"},
    {"training.optimizer={rmsprop: {alpha: 1}}",
     "--set training.optimizer={rmsprop: {alpha: 1}}: "
     "training.optimizer.rmsprop.alpha must be at least 0 and below 1, got 1"},
    {"data.train.idx.images=",
     "--set data.train.idx.images=: data.train.idx.images wants a text, got "
     "nothing"},
    {"training.learning_rate_schedule={step: {gamma: 2}}",
     "--set training.learning_rate_schedule={step: {gamma: 2}}: step_size is "
     "missing in training.learning_rate_schedule.step"},
    {"training.learning_rate_schedule={linear: {start_factor: 0}}",
     "--set training.learning_rate_schedule={linear: {start_factor: 0}}: "
     "training.learning_rate_schedule.linear.start_factor must be above 0 and "
     "at most 1, got 0"},
    {"training.steps",
     "--set training.steps: wants key=value, as in training.steps=100"},
    {"training.optimiser.adam=1",
     R"(--set training.optimiser.adam=1: unknown field "optimiser" in training; did you mean "optimizer"?)"},
    {"training.epochs=0",
     "--set training.epochs=0: training.epochs must be at least 1 and at most "
     "1000000000, got 0"},
    {"training.epochs.x=1",
     R"(--set training.epochs.x=1: training.epochs is a whole number and has no field "x")"},
    {"model.sequential.9.relu={}",
     R"(--set model.sequential.9.relu={}: model.sequential has 3 entries counted from 0, got "9")"},
    {"model.sequential.x.relu={}",
     R"(--set model.sequential.x.relu={}: model.sequential has 3 entries counted from 0, got "x")"},
    {"model.sequential.2.linear.in=9",
     "--set model.sequential.2.linear.in=9: model.sequential.2.linear.in is 9, "
     "but model.sequential.0.linear.out makes 8 features"},
    {"training.optimizer=sgd",
     "--set training.optimizer=sgd: learning_rate is missing in "
     "training.optimizer.sgd"},
    {"training.optimizer=[1",
     "--set training.optimizer=[1: not valid YAML: end of sequence flow not "
     "found"},
    {"=3",
     R"(--set =3: unknown field "" in the job; the job knows name, model, data, training, strategy, cluster, seed, device, checkpoint)"},
    {"", "--set : wants key=value, as in training.steps=100"},
    {"training..epochs=3",
     R"(--set training..epochs=3: unknown field "" in training; training knows epochs, steps, loss, optimizer, learning_rate_schedule, gradient_accumulation, clip_norm, precision, nonfinite)"},
    {"training.learning_rate_schedule=cosin",
     R"(--set training.learning_rate_schedule=cosin: unknown field "cosin" in training.learning_rate_schedule; did you mean "cosine"?)"},
    {"strategy.parameter_server.sync={bsp: {backup_workers: 1}}",
     "--set strategy.parameter_server.sync={bsp: {backup_workers: 1}}: "
     "strategy.parameter_server.sync.bsp.backup_workers must be below the "
     "number of workers, 1, got 1"},
    {"strategy=all_redce",
     R"(--set strategy=all_redce: unknown field "all_redce" in strategy; did you mean "all_reduce"?)"},
    {"strategy={all_reduce: {bucket_bytes: 12}}",
     "--set strategy={all_reduce: {bucket_bytes: 12}}: "
     "strategy.all_reduce.bucket_bytes must be at least 1KiB and at most 1GiB, "
     "got 12"},
    {"strategy={all_reduce: {backend: mpi}}",
     R"(--set strategy={all_reduce: {backend: mpi}}: strategy.all_reduce.backend wants auto, gloo or nccl, got "mpi")"},
    {"cluster={servers: 0}",
     "--set cluster={servers: 0}: cluster.servers must be at least 1 and at "
     "most 256, got 0"},
    {"strategy.parameter_server.sync={ssp: {stalenes: 2}}",
     "--set strategy.parameter_server.sync={ssp: {stalenes: 2}}: unknown field "
     "\"stalenes\" in strategy.parameter_server.sync.ssp; did you mean "
     "\"staleness\"?"},
    {"strategy.parameter_server.sync=local_sgd",
     "--set strategy.parameter_server.sync=local_sgd: period is missing in "
     "strategy.parameter_server.sync.local_sgd"},
    {"checkpoint.every_steps=0",
     "--set checkpoint.every_steps=0: checkpoint.every_steps must be at least "
     "1 and at most 1000000000000000, got 0"},
    {"cluster.on_worker_loss=wiat",
     "--set cluster.on_worker_loss=wiat: cluster.on_worker_loss wants wait, "
     "shrink or fail, got \"wiat\""},
    {"cluster.workers=two",
     R"(--set cluster.workers=two: cluster.workers wants a whole number, got "two")"},
    {"data.train.npy.features=x.npy",
     "--set data.train.npy.features=x.npy: labels is missing in "
     "data.train.npy"},
};

// Of kTokensJob.
constexpr SpoilingOverride kSpoiledLayers[] = {
    {"model.sequential.1={embedding: {tokens: 16, dim: 8}}",
     "--set model.sequential.1={embedding: {tokens: 16, dim: 8}}: "
     "model.sequential.1.embedding must be the first layer: it takes token "
     "ids"},
    {"model.sequential.0.embedding.tokens=16777217",
     "--set model.sequential.0.embedding.tokens=16777217: "
     "model.sequential.0.embedding.tokens must be at least 1 and at most "
     "16777216, got 16777217"},
    {"model.sequential.1.position_embedding.dim=9",
     "--set model.sequential.1.position_embedding.dim=9: "
     "model.sequential.1.position_embedding.dim is 9, but "
     "model.sequential.0.embedding.dim makes 8 features"},
    {"model.sequential.2.residual.body.1.attention.heads=3",
     "--set model.sequential.2.residual.body.1.attention.heads=3: "
     "model.sequential.2.residual.body.1.attention.heads must divide dim, 8, "
     "got 3"},
    {"model.sequential.2.residual.body.1={linear: {in: 8, out: 7}}",
     "job.yaml:5: model.sequential.2.residual.body makes 7 features, but its "
     "input has 8"},
    {"model.sequential.2.residual.shortcut=[{linear: {in: 8, out: 6}}]",
     "job.yaml:5: model.sequential.2.residual.body makes 8 features, but the "
     "shortcut makes 6"},
    {"model.sequential.2.residual.shortcut=[{tied_linear: {to: 0.weight}}]",
     "--set model.sequential.2.residual.shortcut=[{tied_linear: {to: "
     "0.weight}}]: model.sequential.2.residual.shortcut.0.tied_linear stands "
     "in a residual; it must be a layer of the model itself"},
    {"model.sequential.3={batch_norm: {features: 8}}",
     "--set model.sequential.3={batch_norm: {features: 8}}: "
     "model.sequential.3.batch_norm takes images or plain features, here come "
     "sequences of tokens; layernorm takes them"},
    {"model.sequential=[{conv2d: {in: 1, out: 4, kernel: 1}}, {batch_norm: "
     "{features: 8}}]",
     "--set model.sequential=[{conv2d: {in: 1, out: 4, kernel: 1}}, "
     "{batch_norm: {features: 8}}]: model.sequential.1.batch_norm.features is "
     "8, but model.sequential.0.conv2d.out makes 4 channels"},
    {"model.sequential.3={group_norm: {groups: 2, features: 8}}",
     "--set model.sequential.3={group_norm: {groups: 2, features: 8}}: "
     "model.sequential.3.group_norm takes images or plain features, here come "
     "sequences of tokens; layernorm takes them"},
    {"model.sequential=[{conv2d: {in: 1, out: 4, kernel: 1}}, {group_norm: "
     "{groups: 2, features: 8}}]",
     "--set model.sequential=[{conv2d: {in: 1, out: 4, kernel: 1}}, "
     "{group_norm: {groups: 2, features: 8}}]: "
     "model.sequential.1.group_norm.features is 8, but "
     "model.sequential.0.conv2d.out makes 4 channels"},
    {"model.sequential.3={batch_norm: {features: 8, epsilon: 0}}",
     "--set model.sequential.3={batch_norm: {features: 8, epsilon: 0}}: "
     "model.sequential.3.batch_norm.epsilon must be above 0, got 0"},
    {"model.sequential.3={batch_norm: {features: 8, momentum: 0}}",
     "--set model.sequential.3={batch_norm: {features: 8, momentum: 0}}: "
     "model.sequential.3.batch_norm.momentum must be above 0 and at most 1, "
     "got 0"},
    {"model={resnet: {classes: 10, depth: 19}}",
     "--set model={resnet: {classes: 10, depth: 19}}: model.resnet.depth must "
     "be 8 or more by a multiple of 6, two convolutions for each block of 3 "
     "stages; got 19"},
    {"model={resnet: {classes: 10, depth: 2, channels: [8]}}",
     "--set model={resnet: {classes: 10, depth: 2, channels: [8]}}: "
     "model.resnet.depth must be at least 4 and at most 10000, got 2"},
    {"model={resnet: {}}",
     "--set model={resnet: {}}: classes is missing in model.resnet"},
    {"training.precision=float16",
     "--set training.precision=float16: training.precision wants float32 or "
     "bfloat16, got \"float16\""},
    {"model.sequential.2={tied_linear: {to: 0.weight}}",
     "job.yaml:7: model.sequential.3.tied_linear is tied to 0.weight, as a "
     "layer before it; one may be"},
    {"model.sequential.3.tied_linear.to=1.weight",
     "--set model.sequential.3.tied_linear.to=1.weight: "
     "model.sequential.3.tied_linear.to wants the weight of an embedding, "
     "which is the first layer: \"0.weight\"; got \"1.weight\""},
    {"model.sequential.3={conv2d: {in: 4, out: 6, kernel: 3, groups: 4}}",
     "--set model.sequential.3={conv2d: {in: 4, out: 6, kernel: 3, groups: "
     "4}}: model.sequential.3.conv2d.groups must divide in and out, 4 and 6, "
     "got 4"},
    {"model.sequential.3={conv2d: {in: 4, out: 6, kernel: [1, 2, 3]}}",
     "--set model.sequential.3={conv2d: {in: 4, out: 6, kernel: [1, 2, 3]}}: "
     "model.sequential.3.conv2d.kernel wants one number or [height, width], "
     "got 3 numbers"},
    {"model.sequential.3={conv2d: {in: 4, out: 6, kernel: 0}}",
     "--set model.sequential.3={conv2d: {in: 4, out: 6, kernel: 0}}: "
     "model.sequential.3.conv2d.kernel.0 must be at least 1 and at most "
     "65536, got 0"},
    {"model.sequential.3={max_pool: {kernel: 2, padding: 2}}",
     "--set model.sequential.3={max_pool: {kernel: 2, padding: 2}}: "
     "model.sequential.3.max_pool.padding must be at most half the kernel, 1, "
     "got 2"},
    {"model.gpt={layers: 1, dim: 8, heads: 2, length: 4, vocabulary: 16}",
     "--set model.gpt={layers: 1, dim: 8, heads: 2, length: 4, vocabulary: "
     "16}: gpt and sequential exclude each other in model; keep one"},
    {"model={gpt: {layers: 1, dim: 9, heads: 2, length: 4, vocabulary: 16}}",
     "--set model={gpt: {layers: 1, dim: 9, heads: 2, length: 4, vocabulary: "
     "16}}: model.gpt.heads must divide dim, 9, got 2"},
    {"model={gpt: {layers: 1, dim: 8, heads: 2, vocabulary: 16}}",
     "--set model={gpt: {layers: 1, dim: 8, heads: 2, vocabulary: 16}}: length "
     "is missing in model.gpt"},
    {"model={cnn: {image: 4, channels: [8, 8, 8], classes: 2}}",
     "--set model={cnn: {image: 4, channels: [8, 8, 8], classes: 2}}: "
     "model.cnn.channels has 3 entries, each of which halves the image; "
     "nothing is left of model.cnn.image"},
    {"model={mlp: {in: 8, hidden: [0], out: 2}}",
     "--set model={mlp: {in: 8, hidden: [0], out: 2}}: model.mlp.hidden.0 must "
     "be at least 1 and at most 2147483647, got 0"},
    {"model={mlp: {in: 8, hidden: [4], out: 16}}",
     "--set model={mlp: {in: 8, hidden: [4], out: 16}}: model.sequential.0 "
     "must be an embedding: data.train makes tokens"},
    {"data.train.synthetic.kind=ctr",
     "job.yaml:9: data.train.synthetic.length belongs to markov_text"},
    {"data.train={text: {path: a.txt, length: 4, begin: 0.9, end: 0.5}}",
     "--set data.train={text: {path: a.txt, length: 4, begin: 0.9, end: "
     "0.5}}: data.train.text.end must be above begin, 0.9, got 0.5"},
    {"data.train={text: {path: a.txt}}",
     "--set data.train={text: {path: a.txt}}: length is missing in "
     "data.train.text"},
};

TEST(JobErrorTest, TheGoodJobIsGood) {
  EXPECT_TRUE(ParseJob(JobWith(0, ""), "job.yaml").ok());
}

TEST(JobErrorTest, EverySpoiledLineHasItsSentence) {
  for (const SpoiledLine& spoiled : kSpoiledLines) {
    const auto job = ParseJob(JobWith(spoiled.line, spoiled.text), "job.yaml");
    EXPECT_EQ(job.status().message(), spoiled.error) << spoiled.text;
    EXPECT_EQ(job.status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(JobErrorTest, EverySpoilingOverrideHasItsSentence) {
  for (const SpoilingOverride& spoiling : kSpoilingOverrides) {
    const auto job = ParseJob(JobWith(0, ""), "job.yaml", {spoiling.text});
    EXPECT_EQ(job.status().message(), spoiling.error) << spoiling.text;
    EXPECT_EQ(job.status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(JobErrorTest, TheGoodLanguageModelIsGood) {
  const auto job = ParseJob(kTokensJob, "job.yaml");
  EXPECT_TRUE(job.ok()) << job.status();
}

TEST(JobErrorTest, EverySpoiledLayerHasItsSentence) {
  for (const SpoilingOverride& spoiling : kSpoiledLayers) {
    const auto job = ParseJob(kTokensJob, "job.yaml", {spoiling.text});
    EXPECT_EQ(job.status().message(), spoiling.error) << spoiling.text;
    EXPECT_EQ(job.status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(JobErrorTest, TextWantsALossOfClasses) {
  const auto job = ParseJob(JobWith(0, ""), "job.yaml",
                            {"data.train.synthetic.kind=markov_text",
                             "model.sequential.0.linear.in=32"});
  EXPECT_EQ(job.status().message(),
            "job.yaml:11: training.loss wants cross_entropy for the tokens "
            "that data.train makes");
}

TEST(JobErrorTest, WhatAnOverrideReplacedIsForgotten) {
  // sgd is chosen anew, without the rate that the file gave it; and the labels
  // of the first override went with their source.
  const auto job = ParseJob(
      JobWith(0, ""), "job.yaml",
      {"training.optimizer=adam", "training.optimizer.sgd.momentum=0.5"});
  EXPECT_EQ(job.status().message(),
            "--set training.optimizer.sgd.momentum=0.5: learning_rate is "
            "missing in training.optimizer.sgd");
  const auto data = ParseJob(JobWith(0, ""), "job.yaml",
                             {"data.train.npy.labels=y", "data.train.idx={}",
                              "data.train.npy.features=x"});
  EXPECT_EQ(data.status().message(),
            "--set data.train.npy.features=x: labels is missing in "
            "data.train.npy");
}

TEST(JobErrorTest, ALaterOverrideHealsAnEarlierFault) {
  EXPECT_TRUE(ParseJob(JobWith(10, "  epochs: 0"), "job.yaml",
                       {"training.epochs=0", "training.epochs=1"})
                  .ok());
}

}  // namespace
}  // namespace tributary
