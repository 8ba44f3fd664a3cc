// SPDX-License-Identifier: Apache-2.0
#include "server/service/shard_memory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/optimizer/optimizer.h"

namespace tributary {

MemoryClaim ClaimOf(int shard, const PartitionPlan& partition,
                    const ShardTraining& training) {
  const int states = training.groups.empty()
                         ? Optimizer(training.optimizer).states_per_weight()
                         : 0;
  return {
      .who = absl::StrCat("server ", shard),
      .bytes = static_cast<uint64_t>(partition.shard_elements(shard)) *
               static_cast<uint64_t>(1 + std::max(1, training.kept_versions) +
                                     states) *
               sizeof(float),
      .purpose = "the weights of its shard and the optimizer's state",
      .remedy =
          "use more servers, a smaller model or a machine with more memory"};
}

}  // namespace tributary
