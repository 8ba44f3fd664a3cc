// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/cost/cost_inputs.h"
#include "common/job/job_file.h"
#include "common/layers/model_costs.h"
#include "gtest/gtest.h"
#include "tests/testing/paths.h"

namespace tributary {

// Parses the lines of a job file's model block, each after two blanks. Only
// that block matters here: the data are any file.
inline v1::ModelSpec ModelOf(const std::string& model) {
  const std::string file = testing::SourceFile("README.md");
  const absl::StatusOr<v1::JobSpec> job =
      ParseJob(absl::StrCat("model:\n", model,
                            "\ndata:\n  train: {npy: {features: ", file,
                            ", labels: ", file, R"(}}
  batch_size: 1
training: {steps: 1, loss: cross_entropy, optimizer: {sgd: {learning_rate: 1}}}
)"),
               "job.yaml");
  EXPECT_TRUE(job.ok()) << job.status();
  return job.ok() ? job->model() : v1::ModelSpec();
}

inline ModelCosts CostsOf(const std::string& model, const Shape& sample) {
  absl::StatusOr<ModelCosts> costs = CostsOfModel(ModelOf(model), sample);
  EXPECT_TRUE(costs.ok()) << costs.status();
  return costs.ok() ? *std::move(costs) : ModelCosts();
}

// Layers of one parameter each, 1 FLOP forward and 2 backward for a sample,
// outputs of one element.
inline ModelCosts SimpleModel(const std::vector<int64_t>& parameters) {
  ModelCosts model;
  for (size_t i = 0; i < parameters.size(); ++i) {
    LayerCost layer;
    layer.kind = "conv2d";  // none that tensor parallelism cuts
    layer.input_shape = layer.output_shape = {1};
    layer.first_parameter = static_cast<int>(i);
    layer.num_parameters = 1;
    layer.parameter_elements = parameters[i];
    layer.forward_flops = 1;
    layer.backward_flops = 2;
    layer.kept_elements = 1;
    model.layers.push_back(layer);
    model.parameter_sizes.push_back(parameters[i]);
  }
  return model;
}

// `workers` workers of the simple model, with one sample each; what is not set
// is infinitely fast.
inline CostInputs SimpleInputs(const ModelCosts& model, Exchange exchange,
                               int workers) {
  CostInputs inputs;
  inputs.model = &model;
  inputs.strategy.exchange = exchange;
  inputs.strategy.bucket_bytes = 64 << 20;
  inputs.strategy.workers = workers;
  inputs.global_rows = workers;
  return inputs;
}

}  // namespace tributary
