// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/checkpoint/snapshot_collector.h"
#include "common/member/member.h"

namespace tributary {

// Makes the report that says whether this member's file of a checkpoint was
// written. plan_epoch: the plan under which it was written.
v1::CheckpointReport ReportOf(const WrittenSnapshot& written,
                              const std::vector<std::string>& state_names,
                              uint64_t plan_epoch);
// Makes the report that the checkpoint at the start of the plan cannot be read.
// No file is written for a plan's start step, so a report of this step is about
// the file that was read.
v1::CheckpointReport UnreadableReport(const absl::Status& why,
                                      const v1::Plan& plan);

// Logs the result of writing a file and reports it to the coordinator.
void ReportCheckpoint(const WrittenSnapshot& written,
                      const std::vector<std::string>& state_names,
                      uint64_t plan_epoch, Member* member);

// Reports to the coordinator that this member cannot read the checkpoint that
// the plan starts from, and waits for a plan that starts from another one. OK:
// there is one. Otherwise the job's end, as from Member::WaitForPlanAfter.
absl::Status ReportUnreadable(const absl::Status& why, const v1::Plan& plan,
                              Member* member);

}  // namespace tributary
