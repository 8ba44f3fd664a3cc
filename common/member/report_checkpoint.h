#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/checkpoint/checkpointer.h"
#include "common/member/member.h"

namespace tributary {

// Logs the result of writing this member's file of a checkpoint under that
// plan, and reports it to the coordinator.
void ReportCheckpoint(const Checkpointer::Written& written,
                      const std::vector<std::string>& state_names,
                      uint64_t plan_epoch, Member* member);

// Reports to the coordinator that this member cannot read the checkpoint that
// the plan starts from, and waits for a plan that starts from another one. OK:
// there is one. Otherwise the job's end, as from Member::WaitForPlanAfter.
absl::Status ReportUnreadable(const absl::Status& why, const v1::Plan& plan,
                              Member* member);

}  // namespace tributary
