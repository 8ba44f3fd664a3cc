// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tributary/v1/job.pb.h"

namespace tributary {

// A key of the job file that two resolved jobs give different values.
struct JobDifference {
  std::string key;  // "training.optimizer.adam.learning_rate"
  std::string a;    // as the job file has it; empty: not set
  std::string b;
  // Whether the weights may depend on it. Not on names, checkpoints,
  // evaluations, servers, buckets or time limits (docs/consistency.md).
  bool matters = true;
  // It names files; whether the samples differ is another question.
  bool names_data = false;
};

// In the order of the keys. Sources of validation and test data are left
// out: they do not train.
std::vector<JobDifference> JobDifferences(const v1::JobSpec& a,
                                          const v1::JobSpec& b);

}  // namespace tributary
