// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/compare/run_data.h"

namespace tributary {

// The metric by which runs are compared.
struct ComparedMetric {
  std::string name;        // "accuracy"; empty: no run was evaluated
  std::string set;         // "test" or "validation"; empty: runs differ in it
  std::string difference;  // a note about this difference of sets
};

ComparedMetric MetricOf(const std::vector<RunData>& runs);

}  // namespace tributary
