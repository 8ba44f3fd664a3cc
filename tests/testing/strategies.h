// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tributary::testing {

// A way to train one job, as blocks of a job file.
struct Strategy {
  std::string label;
  std::string block;  // value of `strategy:`
  int servers = 0;
  int model_size = 1;  // workers that hold one replica together

  std::string Yaml(int workers) const {
    return absl::StrCat("strategy: ", block, "\ncluster: {servers: ", servers,
                        ", workers: ", workers, "}\n");
  }
};

inline const Strategy& ParameterServerStrategy() {
  static const Strategy strategy = {"parameter_server",
                                    "{parameter_server: {sync: bsp}}", 2};
  return strategy;
}

// Computes gradients at weights that are one step late.
inline const Strategy& DelayedStrategy() {
  static const Strategy strategy = {
      "delayed", "{parameter_server: {sync: {bsp: {delay: 1}}}}", 2};
  return strategy;
}

// Strategies without servers whose workers hold whole models.
inline std::vector<Strategy> CollectiveStrategies() {
  return {{"all_reduce", "all_reduce"},
          {"sharded", "{all_reduce: {sharded: true}}"},
          {"data_parallel", "data_parallel"}};
}

// Strategies that partition the model.
inline std::vector<Strategy> ModelParallelStrategies() {
  return {
      {"tensor2", "{tensor_parallel: 2}", 2, 2},
      {"tensor2_all_reduce", "{all_reduce: {}, tensor_parallel: 2}", 0, 2},
      {"pipeline2_gpipe",
       "{pipeline_parallel: {stages: 2, micro_batches: 2, schedule: gpipe}}", 2,
       2},
      {"pipeline2_1f1b",
       "{all_reduce: {}, pipeline_parallel: {stages: 2, micro_batches: 2}}", 0,
       2}};
}

}  // namespace tributary::testing
