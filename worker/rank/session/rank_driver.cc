// SPDX-License-Identifier: Apache-2.0
#include "worker/rank/session/rank_driver.h"

#include <string>

#include "common/member/report_checkpoint.h"
#include "common/status/status_macros.h"
#include "spdlog/spdlog.h"

namespace tributary {

absl::StatusOr<bool> RankDriver::Follow() {
  while (true) {
    RankLife::Act act = RankLife::Act::kWait;
    member_.Follow([&](MemberState& state, int64_t now_micros) {
      act = life_.Next(&state, now_micros);
      return act != RankLife::Act::kWait || !rank_.Cancelled().ok();
    });
    TRIBUTARY_RETURN_IF_ERROR(rank_.Cancelled());
    switch (act) {
      case RankLife::Act::kDeclareModel:
        life_.Declared(rank_.Declare());
        break;
      case RankLife::Act::kGetPlan:
        TakePlan();
        break;
      case RankLife::Act::kTrain:
        return true;
      case RankLife::Act::kReportUnreadable:
        life_.Replanned(ReportUnreadable(life_.status(), plan_, &member_));
        break;
      case RankLife::Act::kGiveWeights:
        GiveWeightsAgain();
        break;
      case RankLife::Act::kWait:
        break;
      case RankLife::Act::kFail:
        member_.Fail(life_.status());
        [[fallthrough]];
      case RankLife::Act::kCancel:
      case RankLife::Act::kEnd:
        rank_.EndPlan();
        return false;
    }
  }
}

void RankDriver::TakePlan() {
  if (life_.epoch() > 0) {
    spdlog::info("plan epoch {} is over: {}", life_.epoch(),
                 std::string(life_.status().message()));
  }
  rank_.EndPlan();
  const absl::StatusOr<v1::Plan> plan = GetPlan();
  if (plan.ok()) plan_ = *plan;
  life_.Planned(plan.status(), plan_.epoch());
}

absl::StatusOr<v1::Plan> RankDriver::GetPlan() {
  while (true) {
    absl::StatusOr<v1::Plan> plan =
        member_.GetPlan(life_.epoch() + 1, options_.plan_wait);
    if (options_.plan_wait == absl::InfiniteDuration() ||
        !absl::IsDeadlineExceeded(plan.status())) {
      return plan;
    }
    TRIBUTARY_RETURN_IF_ERROR(rank_.Cancelled());
  }
}

void RankDriver::GiveWeightsAgain() {
  spdlog::info("the coordinator needs the final weights again");
  // After an error the coordinator's next answer asks for the weights again.
  if (const absl::Status given = rank_.GiveWeights(); !given.ok()) {
    spdlog::warn("the final weights could not be given: {}",
                 std::string(given.message()));
  }
}

void RankDriver::Trained(const absl::Status& status) {
  if (!status.ok()) rank_.EndPlan();
  life_.Trained(status);
}

}  // namespace tributary
