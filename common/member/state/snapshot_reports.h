// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "common/member/state/checkpoint_reports.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// The snapshot that the coordinator wants of a server, and the last one that
// the server has told of. A plain object.
class SnapshotReports {
 public:
  void Want(WantedCut wanted) { wanted_ = wanted; }
  WantedCut wanted() const { return wanted_; }
  // This server has the snapshot of `step`, or cannot have it.
  void Report(int64_t step) {
    last_ = step;
    told_ = false;
  }
  // A plan begins, for which no snapshot is wanted yet.
  void BeginPlan() {
    wanted_ = {};
    last_ = 0;
  }
  bool urgent() const { return !told_; }
  void AddTo(v1::HeartbeatRequest* request) {
    request->set_cut_step(last_);
    told_ = true;
  }

 private:
  WantedCut wanted_;
  int64_t last_ = 0;  // step; 0: none under this plan
  bool told_ = true;
};

// Records that a worker's group cannot continue under a plan. A plain object.
class GroupBreak {
 public:
  void Set(uint64_t plan_epoch, std::string why) {
    plan_epoch_ = plan_epoch;
    why_ = std::move(why);
    told_ = false;
  }
  bool urgent() const { return !told_; }
  void AddTo(v1::HeartbeatRequest* request) {
    told_ = true;
    if (plan_epoch_ == 0 || plan_epoch_ != request->plan_epoch()) return;
    request->set_broken_group_epoch(plan_epoch_);
    request->set_broken_group(why_);
  }

 private:
  uint64_t plan_epoch_ = 0;  // 0: no group has broken
  std::string why_;
  bool told_ = true;
};

}  // namespace tributary
