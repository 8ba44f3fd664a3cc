// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace tributary {

// Follows one metric over a job's evaluations: which was the best, and how many
// have come since. A plain object.
class BestEvaluation {
 public:
  // metric: a name in Evaluation::Metrics. Of `loss` and `perplexity` lower
  // values are better, of all others higher ones.
  explicit BestEvaluation(std::string metric) : metric_(std::move(metric)) {}

  // In the order of steps. Of equal values the first is the best. A value that
  // is missing or not finite is no improvement.
  void Add(int64_t step, const std::map<std::string, double>& metrics);

  // Continues after these.
  void Restore(std::optional<int64_t> step, double value, int64_t since) {
    step_ = step;
    value_ = value;
    since_ = since;
  }

  // The step of the best; nullopt: there is none yet.
  std::optional<int64_t> step() const { return step_; }
  double value() const { return value_; }  // of the best
  // Evaluations after the best one.
  int64_t since() const { return since_; }
  const std::string& metric() const { return metric_; }

 private:
  bool IsBetter(double value) const;

  const std::string metric_;
  std::optional<int64_t> step_;
  double value_ = 0;
  int64_t since_ = 0;
};

}  // namespace tributary
