#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/checkpoint/checkpointer.h"
#include "common/member/member.h"

namespace tributary {

// Tells the log and the coordinator what became of this member's file of a
// checkpoint under that plan.
void ReportCheckpoint(const Checkpointer::Written& written,
                      const std::vector<std::string>& state_names,
                      uint64_t plan_epoch, Member* member);

// Tells the coordinator that this member cannot read the checkpoint that the
// plan begins with, and waits for a plan that begins with another. OK: there is
// one. Else the job's end, as Member::WaitForPlanAfter has it.
absl::Status ReportUnreadable(const absl::Status& why, const v1::Plan& plan,
                              Member* member);

}  // namespace tributary
