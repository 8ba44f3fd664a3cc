// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/parameter_spec.h"
#include "common/plan/partition_plan.h"
#include "tests/simulation/job/scenario.h"
#include "tests/testing/contribution_tags.h"
#include "tests/testing/reference_run.h"
#include "worker/rank/client/error_feedback.h"

namespace tributary::simulation {

using Tensors = testing::ReferenceRun::Tensors;

// The model of a simulated job: a few tiny tensors whose gradient is a
// deterministic function of rank, step and weights. In synchronous jobs this
// determines the weights after each step (reference()). In other jobs each
// tensor starts with tags (ContributionTags), followed by elements whose
// gradient depends on the weights, so that a replacement worker sends different
// bytes.
class Model {
 public:
  explicit Model(const Scenario& scenario);

  const ParameterSpecs& parameters() const { return parameters_; }
  // The partition for this number of servers: each tensor is a block of its
  // own.
  PartitionPlan Cut(int servers) const;

  Tensors Initial() const;
  void Gradient(uint32_t rank, int64_t step, const Tensors& weights,
                Tensors* gradient) const;
  uint64_t Samples(uint32_t rank, int64_t step) const;
  uint64_t AllSamples(int64_t step) const;  // of all ranks
  double LearningRate(int64_t step) const;
  bool tagged() const { return tags_.has_value(); }
  const testing::ContributionTags& tags() const { return *tags_; }
  testing::ReferenceRun& reference() { return *reference_; }

 private:
  // Replaces a gradient by the values that servers decode, in a job with
  // residuals.
  void SendEncoded(uint32_t rank, Tensors* gradient);

  const Scenario& scenario_;
  ParameterSpecs parameters_;
  std::vector<ErrorFeedback> feedback_;  // of each rank in the reference
  std::optional<testing::ContributionTags> tags_;
  std::unique_ptr<testing::ReferenceRun> reference_;
};

}  // namespace tributary::simulation
