// SPDX-License-Identifier: Apache-2.0
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
     "job.yaml:12: not valid YAML: illegal tab when looking for indentation; "
     "the line begins with a tab, and YAML wants spaces"},
    {6, "data: &anchor",
     "job.yaml:6: anchors (&name) are not used in job files; write the value "
     "out"},
    {8, "  batch_size: *anchor",
     "job.yaml:8: not valid YAML: the referenced anchor is not defined; "
     "write a text that begins with * or & in quotes"},
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
     R"(job.yaml:9: unknown field "banana" in the job; the job knows name, model, data, training, strategy, cluster, seed, device, checkpoint, trace, program, evaluation)"},
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
     R"(job.yaml:12: unknown field "sync" in training; training knows epochs, steps, loss, optimizer, learning_rate_schedule, gradient_accumulation, clip_norm, precision, nonfinite, parameter_groups, divergence)"},
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
     R"(job.yaml:1: device wants auto, cpu or cuda, got "gpu"; did you mean cuda?)"},
    {1, "device: cdua\nmodel:",
     R"(job.yaml:1: device wants auto, cpu or cuda, got "cdua"; did you mean cuda?)"},
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
    {9, "strategy: {parameter_server: {weights_wire: float16}}\ntraining:",
     "job.yaml:9: strategy.parameter_server.weights_wire wants float32 or "
     "bfloat16, got float16"},
    {9, "strategy: {parameter_server: {wire: bfloat8}}\ntraining:",
     R"(job.yaml:9: strategy.parameter_server.wire wants float32, bfloat16, float16, int8, top_k or one_bit, got "bfloat8"; did you mean bfloat16?)"},
    {9, "training: [1]\nother:",
     "job.yaml:9: training wants a mapping with epochs, steps, loss, "
     "optimizer, learning_rate_schedule, gradient_accumulation, clip_norm, "
     "precision, nonfinite, parameter_groups, divergence; got a list"},
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
    // These values are used as float32.
    {12, "  optimizer: {sgd: {learning_rate: 1e-50}}",
     "job.yaml:12: training.optimizer.sgd.learning_rate must be above 0, got "
     "1e-50, which is 0 in float32"},
    {12, "  optimizer: {adam: {beta2: 0.99999999}}",
     "job.yaml:12: training.optimizer.adam.beta2 must be at least 0 and below "
     "1, got 0.99999999, which is 1 in float32"},
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
     "and at most 64MiB, got 2GiB"},
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
    {7,
     "  train: {csv: {path: a.csv, header: false, columns: {label: 3, ignore: "
     "['']}}}",
     R"(job.yaml:7: data.train.csv.columns.ignore.0 wants a number from 0 or a range such as 0-63 in a file without header, got "")"},
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

}  // namespace
}  // namespace tributary
