// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/session/adoptions.h"

#include <string>

#include "spdlog/spdlog.h"

namespace tributary {

void Adoptions::Adopt(const std::vector<uint32_t>& ranks) {
  absl::MutexLock lock(&mu_);
  for (uint32_t rank : ranks) {
    Adopted& adopted = adopted_[rank];
    if (adopted.thread && !adopted.ended) continue;
    // An ended rank has lost its lease, so start it again.
    if (adopted.thread) adopted.thread->join();
    spdlog::info("taking on rank {}", rank);
    adopted.ended = false;
    adopted.thread.emplace([this, rank] { Run(rank); });
  }
}

void Adoptions::Join() {
  std::vector<Thread> threads;
  {
    absl::MutexLock lock(&mu_);
    for (auto& [rank, adopted] : adopted_) {
      if (!adopted.thread) continue;
      threads.push_back(*std::move(adopted.thread));
      adopted.thread.reset();
    }
  }
  for (Thread& thread : threads) thread.join();
}

void Adoptions::Run(uint32_t rank) {
  const absl::Status status = work_(rank);
  if (!status.ok()) {
    spdlog::error("rank {}: {}", rank, std::string(status.message()));
  }
  absl::MutexLock lock(&mu_);
  adopted_[rank].ended = true;
}

}  // namespace tributary
