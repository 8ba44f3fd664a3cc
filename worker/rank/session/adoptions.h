// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/host/runtime.h"

namespace tributary {

// Runs other ranks in this process: those of lost workers, or all ranks of a
// job that runs in one process. Each runs as a worker of its own on its own
// thread, so that it computes the same as in a process of its own.
class Adoptions {
 public:
  // Runs a rank to its end; the status is its final result.
  using Work = std::function<absl::Status(uint32_t rank)>;

  explicit Adoptions(Work work) : work_(std::move(work)) {}
  ~Adoptions() { Join(); }

  // Starts these ranks. Ranks that are running already are not disturbed.
  void Adopt(const std::vector<uint32_t>& ranks);
  // Waits until all ranks have ended; each ends with its job.
  void Join();

 private:
  struct Adopted {
    std::optional<Thread> thread;
    bool ended = false;  // its thread needs no lock any more
  };

  void Run(uint32_t rank);

  const Work work_;
  absl::Mutex mu_;
  std::map<uint32_t, Adopted> adopted_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tributary
