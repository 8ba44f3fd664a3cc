#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tributary::testing {

// A way to train one job, as blocks of a job file.
struct Strategy {
  std::string label;
  std::string block;  // of `strategy:`
  int servers = 0;

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

// Those without servers.
inline std::vector<Strategy> CollectiveStrategies() {
  return {{"all_reduce", "all_reduce"},
          {"sharded", "{all_reduce: {sharded: true}}"},
          {"data_parallel", "data_parallel"}};
}

}  // namespace tributary::testing
