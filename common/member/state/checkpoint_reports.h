// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>

#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// A snapshot that the coordinator wants of a server now, because all workers
// wait after this step of its plan or have finished.
struct WantedCut {
  int64_t step = 0;   // 0: none
  bool best = false;  // no later snapshot may take its place
};

// A member's reports about checkpoint files, written or failed, in the order of
// steps, until the coordinator has taken them. A plain object.
class CheckpointReports {
 public:
  // Limit while the coordinator cannot be reached.
  static constexpr size_t kMaxPending = 64;

  // Queues a report. When too many wait, drops the oldest failure, or else the
  // oldest file that is not that of the best weights; the coordinator learns of
  // that from later reports.
  void Add(const v1::CheckpointReport& report) {
    if (pending_.size() >= kMaxPending) {
      const auto failure = std::find_if(
          pending_.begin(), pending_.end(),
          [](const v1::CheckpointReport& old) { return !old.has_file(); });
      pending_.erase(
          failure == pending_.end()
              ? std::find_if(pending_.begin(), pending_.end(),
                             [this](const v1::CheckpointReport& old) {
                               return old.step() != best_step_;
                             })
              : failure);
    }
    pending_.push_back(report);
    untold_ = true;
    newest_ = {report.plan_epoch(), report.step()};
  }
  // The step of the best weights so far.
  void SetBest(int64_t step) { best_step_ = step; }
  bool urgent() const { return untold_; }

  void AddTo(v1::HeartbeatRequest* request) {
    untold_ = false;
    for (const v1::CheckpointReport& report : pending_) {
      *request->add_checkpoints() = report;
    }
    if (newest_.plan_epoch == request->plan_epoch()) {
      request->set_checkpointed_step(newest_.step);
    }
  }
  // The coordinator has taken the first `taken` reports of this heartbeat. Some
  // of them may have been dropped since.
  void Settle(const v1::HeartbeatRequest& request, uint32_t taken) {
    const int count = static_cast<int>(std::min<int64_t>(
        taken, static_cast<int64_t>(request.checkpoints_size())));
    for (int i = 0; i < count && !pending_.empty(); ++i) {
      const v1::CheckpointReport& told = request.checkpoints(i);
      if (pending_.front().step() == told.step() &&
          pending_.front().plan_epoch() == told.plan_epoch()) {
        pending_.pop_front();
      }
    }
  }

 private:
  struct Newest {
    uint64_t plan_epoch = 0;
    int64_t step = 0;
  };

  std::deque<v1::CheckpointReport> pending_;
  bool untold_ = false;
  int64_t best_step_ = 0;  // 0: none
  Newest newest_;          // report that was added
};

}  // namespace tributary
