// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <optional>

#include "common/member/state/member_state.h"

namespace tributary {

inline constexpr int64_t kSecond = 1'000'000;

inline v1::RegisterResponse Place() {
  v1::RegisterResponse place;
  place.set_index(1);
  place.set_incarnation(7);
  return place;
}

inline MemberState MakeWorker() {
  return MemberState(v1::ROLE_WORKER, Place(), "10.0.0.1:7000",
                     /*lost_micros=*/30 * kSecond, /*now_micros=*/0);
}

inline v1::HeartbeatResponse Answer(v1::JobPhase phase,
                                    std::optional<int64_t> stop_step = {},
                                    uint32_t steps_taken = 0) {
  v1::HeartbeatResponse answer;
  answer.set_phase(phase);
  if (stop_step) answer.set_stop_step(*stop_step);
  answer.set_steps_taken(steps_taken);
  return answer;
}

inline v1::StepReport Report(int64_t step) {
  v1::StepReport report;
  report.set_step(step);
  return report;
}

}  // namespace tributary
