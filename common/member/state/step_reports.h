// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>

#include "common/base/limits.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// The steps that a worker reports under one plan: those that the coordinator
// has not taken yet, and those that its successor may need again. A plain
// object.
class StepReports {
 public:
  // Steps in one heartbeat: far below gRPC's limit of 4 MiB per message.
  static constexpr size_t kPerHeartbeat = 4096;
  // Taken steps to keep. If the coordinator dies before it has recorded them,
  // its successor gets them again.
  static constexpr size_t kMaxKept = 4096;

  void Add(const v1::StepReport& report) { pending_.push_back(report); }
  // So many reports wait that no step may begin.
  bool full() const { return pending_.size() >= kMaxWaitingReports; }
  // The waiting reports fill a heartbeat. False after a heartbeat of which
  // nothing was taken: sending it again at once would only spin.
  bool urgent() const { return !stalled_ && pending_.size() >= kPerHeartbeat; }
  bool stalled() const { return stalled_; }

  // Adds the next reports to a heartbeat. True when it has all waiting reports.
  bool AddTo(v1::HeartbeatRequest* request) const {
    const size_t batch = std::min(pending_.size(), kPerHeartbeat);
    for (size_t i = 0; i < batch; ++i) *request->add_steps() = pending_[i];
    return batch == pending_.size();
  }
  // The coordinator has taken the first `taken` steps of this heartbeat of the
  // plan. Returns true when it has taken all steps of the heartbeat.
  bool Settle(const v1::HeartbeatRequest& request, uint32_t taken) {
    const size_t count = std::min<size_t>(
        {taken, static_cast<size_t>(request.steps_size()), pending_.size()});
    for (size_t i = 0; i < count; ++i) {
      kept_.push_back(std::move(pending_.front()));
      pending_.pop_front();
      if (kept_.size() > kMaxKept) kept_.pop_front();
    }
    stalled_ = count == 0 && request.steps_size() > 0;
    return static_cast<int>(count) == request.steps_size();
  }
  // Another coordinator has taken over: it gets the kept steps again.
  void SendAgain() {
    pending_.insert(pending_.begin(), kept_.begin(), kept_.end());
    kept_.clear();
  }
  // Drops all steps, because another plan computes them again.
  void Drop() { *this = {}; }
  void ForgetStall() { stalled_ = false; }

 private:
  std::deque<v1::StepReport> pending_;  // not yet taken
  std::deque<v1::StepReport> kept_;     // taken
  bool stalled_ = false;                // none of the sent steps was taken
};

}  // namespace tributary
