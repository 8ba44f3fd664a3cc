// SPDX-License-Identifier: Apache-2.0
#include "common/member/report_checkpoint.h"

#include "common/status/cause.h"
#include "spdlog/spdlog.h"

namespace tributary {

v1::CheckpointReport ReportOf(const WrittenSnapshot& written,
                              const std::vector<std::string>& state_names,
                              uint64_t plan_epoch) {
  v1::CheckpointReport report;
  report.set_step(written.step);
  report.set_plan_epoch(plan_epoch);
  if (written.file.ok()) {
    *report.mutable_file() = *written.file;
    for (const std::string& name : state_names) report.add_state_names(name);
  } else {
    report.set_error(std::string(written.file.status().message()));
    report.set_error_cause(CauseOf(written.file.status()));
  }
  report.set_pause_seconds(written.pause_seconds);
  report.set_write_seconds(written.write_seconds);
  return report;
}

v1::CheckpointReport UnreadableReport(const absl::Status& why,
                                      const v1::Plan& plan) {
  v1::CheckpointReport report;
  report.set_step(plan.start_step());
  report.set_plan_epoch(plan.epoch());
  report.set_error(std::string(why.message()));
  return report;
}

void ReportCheckpoint(const WrittenSnapshot& written,
                      const std::vector<std::string>& state_names,
                      uint64_t plan_epoch, Member* member) {
  if (written.file.ok()) {
    spdlog::info(
        "checkpoint of step {}: {} bytes in {:.1f} ms, training paused for "
        "{:.1f} ms",
        written.step, written.file->bytes(), 1e3 * written.write_seconds,
        1e3 * written.pause_seconds);
  } else {
    spdlog::error("checkpoint of step {}: {}", written.step,
                  std::string(written.file.status().message()));
  }
  member->ReportCheckpoint(ReportOf(written, state_names, plan_epoch));
}

absl::Status ReportUnreadable(const absl::Status& why, const v1::Plan& plan,
                              Member* member) {
  spdlog::error("the checkpoint of step {} cannot be read: {}",
                plan.start_step(), std::string(why.message()));
  member->ReportCheckpoint(UnreadableReport(why, plan));
  member->display().SetWaitingFor(
      WaitFor("a plan that begins with another checkpoint"));
  absl::Status news;
  do {
    news = member->WaitForPlanAfter(plan.epoch(), absl::Minutes(1));
  } while (absl::IsDeadlineExceeded(news));  // the heartbeats have a deadline
  return news;
}

}  // namespace tributary
