// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "common/host/memory/available_memory.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// The memory that the processes of a job, all on this machine, still have to
// allocate.
struct MemoryNeed {
  std::vector<int64_t> parameters;  // elements of each parameter
  // The ranks are programs of the user, which have their weights already.
  bool programs = false;
  // Weights and gradients of the ranks are in the memory of accelerators.
  bool on_accelerators = false;
};

// The least number of bytes that weights, gradients and optimizer states take
// (docs/sizing.md). Activations, data and messages come on top.
uint64_t LeastMemory(const v1::JobSpec& job, const MemoryNeed& need);

// FailedPrecondition, with both figures, when the job needs more than
// `available`. If that is nullopt (unknown), nothing is refused.
absl::Status CheckMemory(const v1::JobSpec& job, const MemoryNeed& need,
                         const std::optional<AvailableMemory>& available);

// Apply CheckMemory to the model of a job file, before anything starts, and to
// the parameters that a program has declared.
absl::Status CheckMemoryOfModel(const v1::JobSpec& job);
absl::Status CheckMemoryOfProgram(const v1::JobSpec& job,
                                  const std::vector<int64_t>& parameters);

}  // namespace tributary
