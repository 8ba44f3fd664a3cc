// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/client/message_delay.h"

#include <memory>
#include <random>

#include "absl/synchronization/mutex.h"

namespace tributary {

std::function<int64_t()> MakeMessageDelay(int64_t max_ms, uint64_t seed) {
  if (max_ms == 0) return nullptr;
  struct Source {
    absl::Mutex mu;
    std::mt19937_64 random ABSL_GUARDED_BY(mu);
  };
  auto source = std::make_shared<Source>();
  {
    absl::MutexLock lock(&source->mu);
    source->random.seed(seed);
  }
  return [source, max_ms] {
    absl::MutexLock lock(&source->mu);
    return std::uniform_int_distribution<int64_t>(
        0, max_ms * 1000)(source->random);
  };
}

}  // namespace tributary
