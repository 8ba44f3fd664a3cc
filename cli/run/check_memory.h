// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "common/host/memory/available_memory.h"
#include "tributary/v1/job.pb.h"

namespace tributary {

// The memory that the processes of a job, all on this machine, have yet to
// allocate.
struct MemoryNeed {
  std::vector<int64_t> parameters;  // elements of each
  // The ranks are programs of the user, which have their weights already.
  bool programs = false;
  // Weights and gradients of the ranks are in the memory of accelerators.
  bool on_accelerators = false;
};

// The bytes that weights, gradients and optimizer states take at least
// (docs/sizing.md). Activations, data and messages come on top.
uint64_t LeastMemory(const v1::JobSpec& job, const MemoryNeed& need);

// FailedPrecondition, with both figures, when more than `available` is needed.
// nullopt: it is not known, and nothing is refused.
absl::Status CheckMemory(const v1::JobSpec& job, const MemoryNeed& need,
                         const std::optional<AvailableMemory>& available);

// For the model of a job file, before anything starts, and for what a program
// has declared.
absl::Status CheckMemoryOfModel(const v1::JobSpec& job);
absl::Status CheckMemoryOfProgram(const v1::JobSpec& job,
                                  const std::vector<int64_t>& parameters);

}  // namespace tributary
