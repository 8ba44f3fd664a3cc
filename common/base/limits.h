// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace tributary {

// Limits that several parts of the code check.

// Upper bound of steps and versions in messages. Below it they can be added
// without overflow and are exact as doubles.
inline constexpr int64_t kMaxStep = int64_t{1} << 53;

// The total steps of a job whose program decides when the job ends.
inline constexpr int64_t kOpenEnd = kMaxStep - 1;

// The total steps to show: 0 when the end is open.
constexpr int64_t KnownSteps(int64_t total_steps) {
  return total_steps == kOpenEnd ? 0 : total_steps;
}

// Upper bound of a total of samples that a message announces. Up to it, numbers
// of samples and their sums are exact as doubles.
inline constexpr uint64_t kMaxTotalSamples = uint64_t{1} << 53;

// Limit of a rank's waiting step reports. A worker with this many unsent
// reports does not begin its next step. The coordinator leaves reports for a
// later heartbeat while this many reports wait to be merged, or this many
// records wait to be taken.
inline constexpr size_t kMaxWaitingReports = 65536;

// Limit of the workers of a job.
inline constexpr int kMaxRanks = 1024;

// Limit of the states that an optimizer has for each parameter.
inline constexpr int kMaxStates = 16;

// Limit of strategy.parameter_server.bucket_bytes. With one server a block of
// this size is one message.
inline constexpr uint64_t kMaxBucketBytes = uint64_t{64} << 20;

// The largest head that the attention kernels compute.
inline constexpr int64_t kMaxHeadDim = 256;

// Limit of the preprocessing that a worker sends for model.json.
inline constexpr size_t kMaxPreprocessingBytes = size_t{4} << 20;

}  // namespace tributary
