// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/evaluation_saver.h"

#include "absl/strings/str_cat.h"

namespace tributary {
namespace {

constexpr int64_t kTryAgainMicros = 200'000;

}  // namespace

void EvaluationSaver::Update(std::vector<std::string>* notices) {
  const int64_t now = clock_->NowMicros();
  const bool failed = !waiting_.empty();
  const bool again = failed && now >= tried_micros_ + kTryAgainMicros;
  if (fresh_.empty() && !again) return;
  const std::vector<EvaluationRecord> fresh = std::exchange(fresh_, {});
  const absl::Status status = save_ ? save_(fresh) : absl::OkStatus();
  waiting_.insert(waiting_.end(), fresh.begin(), fresh.end());
  tried_micros_ = now;
  if (!status.ok()) {
    if (!failed) {
      notices->push_back(absl::StrCat(
          "the coordinator cannot save an evaluation, and tries again: ",
          status.message()));
    }
    return;
  }
  if (failed) notices->push_back("evaluations are saved again");
  for (const EvaluationRecord& evaluation : waiting_) NoteSaved(evaluation);
  waiting_.clear();
}

std::optional<int64_t> EvaluationSaver::SavedStep(
    const std::string& set) const {
  const auto found = saved_.find(set);
  if (found == saved_.end()) return std::nullopt;
  return found->second;
}

}  // namespace tributary
