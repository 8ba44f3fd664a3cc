#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace tributary {

// How servers apply contributions (docs/consistency.md).
enum class ApplyMode {
  kBulk,      // all workers' together: no worker falls behind
  kBackup,    // the first workers' together: a late worker skips steps
  kSeparate,  // each on its own
};

// Which weights a pull asks for.
struct WantedWeights {
  enum class Kind {
    kAtLeast,   // once `number` updates are applied to each block
    kExactly,   // after `number` updates: the present or the previous weights
    kFinished,  // those that this rank gets at the end of its step `number`
  };
  Kind kind = Kind::kAtLeast;
  int64_t number = 0;
};

// How far a rank's contributions have come, including those of an earlier
// process of the rank, and where the rank starts because of that. Pure.
struct RankClock {
  // A call for it is made again after this pause, under RetryPolicy.
  static constexpr absl::Duration kCallTimeout = absl::Seconds(2);
  static constexpr absl::Duration kPause = absl::Milliseconds(20);

  bool initialized = true;    // every block has weights
  int64_t steps = INT64_MAX;  // sent to every block
  int64_t begun = 0;          // sent to some block

  // Adds another server's part.
  void Add(const RankClock& server) {
    initialized &= server.initialized;
    steps = std::min(steps, server.steps);
    begun = std::max(begun, server.begun);
  }

  // The weights from which the rank continues.
  WantedWeights Start(ApplyMode mode) const {
    switch (mode) {
      case ApplyMode::kBulk:
        // Some servers may already hold this step's gradient. Computed again
        // from the same weights it has the same bits.
        return {WantedWeights::Kind::kExactly, steps};
      case ApplyMode::kSeparate:
        return {WantedWeights::Kind::kFinished, steps};
      case ApplyMode::kBackup:
        break;
    }
    return {};
  }
  // The steps that the rank has finished, if that is known before the pull.
  // With backup workers blocks advance independently: the oldest version pulled
  // is a step for which every block still accepts or drops contributions. That
  // pull does not wait for other ranks.
  std::optional<int64_t> FinishedBeforePull(ApplyMode mode) const {
    if (mode == ApplyMode::kBackup) return std::nullopt;
    return steps;
  }
};

// The weights that a rank needs after its step number `finished`, besides those
// that answered its push, when the other workers are ahead of it.
inline std::optional<WantedWeights> CatchUp(ApplyMode mode, int64_t finished,
                                            int64_t newest_version) {
  if (mode != ApplyMode::kBackup || newest_version <= finished) {
    return std::nullopt;
  }
  return WantedWeights{WantedWeights::Kind::kAtLeast, newest_version};
}

}  // namespace tributary
