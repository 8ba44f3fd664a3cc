// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "common/base/parameter_spec.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/plan/partition_plan.h"

namespace tributary {

// FailedPrecondition, naming the first difference, unless a checkpoint with the
// parameters `held` has the whole parameters of `wanted`: names, shapes, order.
// Both are lists of a plan or of a whole model.
absl::Status CheckHolds(const ParameterSpecs& held,
                        const ParameterSpecs& wanted);

// Presents a checkpoint as a plan's parameters: it can be read under any
// strategy, number of servers or mesh of workers, not only under those that
// wrote it. Thread-safe.
class PlannedCheckpoint {
 public:
  // FailedPrecondition, naming the first difference, unless the checkpoint has
  // these whole parameters (names, shapes, order) and these states.
  static absl::StatusOr<std::unique_ptr<PlannedCheckpoint>> Create(
      std::shared_ptr<const CheckpointReader> reader, ParameterSpecs planned,
      absl::Span<const std::string> state_names);

  int64_t skipped_steps() const { return reader_->skipped_steps(); }

  // Assembles a block of a PartitionPlan over the plan's parameters. weights:
  // block.size elements; state: as many for each of the states.
  // FailedPrecondition: the block or the number of states does not belong to
  // this plan; other errors as CheckpointReader.
  absl::Status ReadBlock(const Block& block, float* weights,
                         absl::Span<float* const> state) const;

  // Reads elements of a planned parameter, as CheckpointReader::ReadRange.
  absl::Status ReadRange(int tensor, int parameter, int64_t begin,
                         absl::Span<float> values) const;

 private:
  // The source of a planned parameter's elements.
  struct Source {
    int same = -1;  // the checkpoint's parameter with the same shape and slice
    // Otherwise the checkpoint's parameters [first, last), which form the
    // whole.
    int first = 0;
    int last = 0;
  };

  PlannedCheckpoint(std::shared_ptr<const CheckpointReader> reader,
                    ParameterSpecs planned)
      : reader_(std::move(reader)), planned_(std::move(planned)) {}

  void FindSources();
  absl::Status CutAnew(int tensor, int parameter,
                       std::vector<float>* elements) const;

  const std::shared_ptr<const CheckpointReader> reader_;
  const ParameterSpecs planned_;
  std::vector<Source> sources_;  // [planned parameter]

  // The tensors of the parameter that was resliced last, because reads of one
  // parameter follow each other.
  mutable absl::Mutex mu_;
  mutable int recent_ ABSL_GUARDED_BY(mu_) = -1;
  mutable std::vector<std::vector<float>> tensors_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tributary
