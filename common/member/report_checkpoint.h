// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/checkpoint/snapshot_collector.h"
#include "common/member/member.h"

namespace tributary {

// The report of the result of writing this member's file of a checkpoint under
// that plan.
v1::CheckpointReport ReportOf(const WrittenSnapshot& written,
                              const std::vector<std::string>& state_names,
                              uint64_t plan_epoch);
// The report that the checkpoint which the plan starts from cannot be read. No
// file is written for a plan's start step, so a report of this step is about
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
