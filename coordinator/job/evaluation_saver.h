// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "coordinator/core/evaluation/evaluations.h"

namespace tributary {

// Saves every complete evaluation once, in order, for a later coordinator of
// the job. If saving fails, Update tries again every 200 ms; the job does not
// wait for it. A plain object: its owner locks.
class EvaluationSaver {
 public:
  // OK: the evaluations are on disk. After an error the callee keeps them, and
  // the next call retries without passing them again.
  using Save =
      std::function<absl::Status(const std::vector<EvaluationRecord>&)>;

  // `save` may be null: nothing is saved.
  EvaluationSaver(Save save, const Clock* clock)
      : save_(std::move(save)), clock_(clock) {}

  // Marks this evaluation as already saved.
  void Restore(const EvaluationRecord& evaluation) { NoteSaved(evaluation); }
  void Add(EvaluationRecord evaluation) {
    fresh_.push_back(std::move(evaluation));
  }
  // Saves the new evaluations. Adds messages about failures to `notices`.
  void Update(std::vector<std::string>* notices);

  // The newest saved evaluation on this set; nullopt: there is none.
  std::optional<int64_t> SavedStep(const std::string& set) const;

 private:
  void NoteSaved(const EvaluationRecord& evaluation) {
    saved_[evaluation.set] = evaluation.step;
  }

  const Save save_;
  const Clock* const clock_;
  std::vector<EvaluationRecord> fresh_;    // not handed over yet
  std::vector<EvaluationRecord> waiting_;  // handed over, but not on disk
  int64_t tried_micros_ = 0;
  std::map<std::string, int64_t> saved_;  // step, by set
};

}  // namespace tributary
