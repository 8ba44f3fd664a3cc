// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <utility>

#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// A worker's part in checkpoints that somebody asks for: while the coordinator
// holds the workers, no step begins after the checkpoint's step, or none at all
// while that step is not settled. A plain object.
class CheckpointHold {
 public:
  // `of_plan`: the answer belongs to the plan that the worker is in. The hold
  // of another answer is valid, too, but its checkpoint step is not.
  void Follow(const v1::HeartbeatResponse& answer, bool of_plan) {
    hold_ = answer.hold();
    step_ = of_plan ? answer.checkpoint_step() : 0;
    if (step_ <= newest_step_) return;
    newest_step_ = step_;
    owed_.push_back(step_);
  }
  // Starts another plan. Its checkpoint's step is unknown until the next
  // answer.
  void BeginPlan() {
    step_ = newest_step_ = stands_at_ = 0;
    owed_.clear();
  }

  bool HoldsBack(int64_t step) const { return hold_ > 0 && step > step_; }
  // The coordinator has to know the begun step to settle the checkpoint's step.
  bool unsettled() const { return hold_ > 0 && step_ == 0; }
  // The worker begins no step after this one now.
  void StandAfter(int64_t finished_step) {
    if (hold_ == 0 || step_ == 0 || finished_step < step_) return;
    if (std::exchange(stands_at_, step_) != step_) told_stands_at_ = false;
  }
  // Returns whether this worker owes a file of the checkpoint of `step`. From
  // then on it no longer owes the file.
  bool TakeOwed(int64_t step) {
    bool owes = false;
    while (!owed_.empty() && owed_.front() <= step) {
      owes = owed_.front() == step;
      owed_.pop_front();
    }
    return owes;
  }

  // `waits`: the begun step is known, so the worker waits while unsettled().
  bool Urgent(bool waits) const {
    return (waits && unsettled() && told_hold_ != hold_) || !told_stands_at_;
  }
  void AddTo(v1::HeartbeatRequest* request, bool waits) {
    request->set_held(waits && unsettled() ? hold_ : 0);
    request->set_stands_at(stands_at_);
    told_stands_at_ = true;
  }
  void Settle(const v1::HeartbeatRequest& request) {
    told_hold_ = request.held();
  }

 private:
  uint64_t hold_ = 0;        // HeartbeatResponse.hold
  int64_t step_ = 0;         // its checkpoint_step
  uint64_t told_hold_ = 0;   // the last hold under which it told that it waits
  int64_t newest_step_ = 0;  // the highest received under this plan
  int64_t stands_at_ = 0;    // the last checkpoint step that it has finished
  bool told_stands_at_ = true;
  std::deque<int64_t> owed_;  // in increasing order
};

}  // namespace tributary
