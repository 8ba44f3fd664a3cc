// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace tributary {

// Follows one metric over a job's evaluations: which evaluation was the best,
// and how many have come since. A plain object.
class BestEvaluation {
 public:
  // metric: a name in Evaluation::Metrics. Lower values of `loss` and
  // `perplexity` are better; of all other metrics, higher values are better.
  explicit BestEvaluation(std::string metric) : metric_(std::move(metric)) {}

  // Call it in the order of steps. Among equal values the first is the best. A
  // value that is missing or not finite is no improvement.
  void Add(int64_t step, const std::map<std::string, double>& metrics);

  // Continues from the step(), value() and since() of an earlier object.
  void Restore(std::optional<int64_t> step, double value, int64_t since) {
    step_ = step;
    value_ = value;
    since_ = since;
  }

  // The step of the best evaluation; nullopt: there is none yet.
  std::optional<int64_t> step() const { return step_; }
  double value() const { return value_; }  // of the best evaluation
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
