// SPDX-License-Identifier: Apache-2.0
#include "cli/compare/compared_metric.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

namespace tributary {
namespace {

// The report shows the first of these metrics that any run has.
constexpr const char* kMetrics[] = {"accuracy", "auc", "r2", "perplexity",
                                    "loss"};

}  // namespace

ComparedMetric MetricOf(const std::vector<RunData>& runs) {
  ComparedMetric metric;
  for (const char* name : kMetrics) {
    if (!metric.name.empty()) break;
    if (absl::c_any_of(runs, [name](const RunData& run) {
          return run.metrics.count(name) > 0;
        })) {
      metric.name = name;
    }
  }
  std::string folder;
  for (const RunData& run : runs) {
    if (run.evaluated_set.empty()) continue;
    if (folder.empty()) metric.set = run.evaluated_set;
    if (run.evaluated_set != metric.set) {
      metric.difference =
          absl::StrCat(folder, " was evaluated on its ", metric.set, " set, ",
                       run.folder, " on its ", run.evaluated_set, " set");
      metric.set.clear();
      return metric;
    }
    folder = run.folder;
  }
  return metric;
}

}  // namespace tributary
