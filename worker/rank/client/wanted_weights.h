// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "common/base/mutation.h"
#include "common/base/sync_traits.h"
#include "common/plan/rank_progress.h"

namespace tributary {

// The weights that a pull asks for.
struct WantedWeights {
  enum class Kind {
    kAtLeast,   // once `number` updates are applied to each block
    kExactly,   // after `number` updates: the present or the previous weights
    kFinished,  // those that this rank gets at the end of its step `number`
  };
  Kind kind = Kind::kAtLeast;
  int64_t number = 0;
};

// Returns the weights from which a rank with this progress continues.
inline WantedWeights StartingWeights(ApplyMode mode,
                                     const RankProgress& progress) {
  switch (mode) {
    case ApplyMode::kBulk:
      // Some servers may already hold this step's gradient. The same weights
      // give the same gradient again, bit for bit.
      return {WantedWeights::Kind::kExactly, progress.steps};
    case ApplyMode::kSeparate:
      return {WantedWeights::Kind::kFinished, progress.steps};
    case ApplyMode::kBackup:
      break;
  }
  return {};
}

// Returns the steps that the rank has finished, or nullopt when they are known
// only after the pull of StartingWeights. With backup workers blocks advance
// independently: the oldest version pulled is a step for which every block
// still accepts or drops contributions. That pull does not wait for other
// ranks.
inline std::optional<int64_t> FinishedBeforePull(ApplyMode mode,
                                                 const RankProgress& progress) {
  if (mode == ApplyMode::kBackup) return std::nullopt;
  return progress.steps;
}

// Returns what a rank must pull after its step number `finished` because the
// other workers are ahead of it: the present weights, in addition to those that
// answered its push. Nullopt: nothing. The pull does not ask for the newest
// version, because a block that is behind it may need this rank's next push.
inline std::optional<WantedWeights> CatchUp(ApplyMode mode, int64_t finished,
                                            int64_t newest_version) {
  if (mode != ApplyMode::kBackup || newest_version <= finished) {
    return std::nullopt;
  }
  return WantedWeights{
      WantedWeights::Kind::kAtLeast,
      TRIBUTARY_MUTATED("catch-up-waits") ? newest_version : finished};
}

}  // namespace tributary
