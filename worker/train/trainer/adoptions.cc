// SPDX-License-Identifier: Apache-2.0
#include "worker/train/trainer/adoptions.h"

#include <string>

#include "spdlog/spdlog.h"

namespace tributary {

void Adoptions::Adopt(const std::vector<uint32_t>& ranks) {
  absl::MutexLock lock(&mu_);
  for (uint32_t rank : ranks) {
    Adopted& adopted = adopted_[rank];
    if (adopted.thread.joinable() && !adopted.ended) continue;
    // An ended rank has lost its lease, so start it again.
    if (adopted.thread.joinable()) adopted.thread.join();
    spdlog::info("taking on rank {}", rank);
    adopted.ended = false;
    adopted.thread = std::thread([this, rank] { Run(rank); });
  }
}

void Adoptions::Join() {
  std::map<uint32_t, std::thread> threads;
  {
    absl::MutexLock lock(&mu_);
    for (auto& [rank, adopted] : adopted_) {
      threads[rank] = std::move(adopted.thread);
    }
  }
  for (auto& [rank, thread] : threads) {
    if (thread.joinable()) thread.join();
  }
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
