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
  // Whether the weights may depend on the key. They do not depend on names,
  // checkpoints, evaluations, servers, buckets or time limits
  // (docs/consistency.md).
  bool matters = true;
  // True if the key names files, whose samples may still be the same.
  bool names_data = false;
};

// Returns the differences in the order of the keys. Leaves out sources of
// validation and test data, because they do not affect the training.
std::vector<JobDifference> JobDifferences(const v1::JobSpec& a,
                                          const v1::JobSpec& b);

}  // namespace tributary
