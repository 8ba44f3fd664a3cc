#include "common/member/report_checkpoint.h"

#include "spdlog/spdlog.h"

namespace tributary {

void ReportCheckpoint(const Checkpointer::Written& written,
                      const std::vector<std::string>& state_names,
                      uint64_t plan_epoch, Member* member) {
  v1::CheckpointReport report;
  report.set_step(written.step);
  report.set_plan_epoch(plan_epoch);
  if (written.file.ok()) {
    *report.mutable_file() = *written.file;
    for (const std::string& name : state_names) report.add_state_names(name);
    spdlog::info(
        "checkpoint of step {}: {} bytes in {:.1f} ms, training paused for "
        "{:.1f} ms",
        written.step, written.file->bytes(), 1e3 * written.write_seconds,
        1e3 * written.pause_seconds);
  } else {
    report.set_error(std::string(written.file.status().message()));
    spdlog::error("checkpoint of step {}: {}", written.step, report.error());
  }
  report.set_pause_seconds(written.pause_seconds);
  report.set_write_seconds(written.write_seconds);
  member->ReportCheckpoint(report);
}

absl::Status ReportUnreadable(const absl::Status& why, const v1::Plan& plan,
                              Member* member) {
  // No file is written for a plan's start step, so a report of this step is
  // about the file that was read.
  v1::CheckpointReport report;
  report.set_step(plan.start_step());
  report.set_plan_epoch(plan.epoch());
  report.set_error(std::string(why.message()));
  spdlog::error("the checkpoint of step {} cannot be read: {}", report.step(),
                report.error());
  member->ReportCheckpoint(report);
  member->SetWaitingFor("a plan that begins with another checkpoint");
  absl::Status news;
  do {
    news = member->WaitForPlanAfter(plan.epoch(), absl::Minutes(1));
  } while (absl::IsDeadlineExceeded(news));  // the heartbeats have a deadline
  return news;
}

}  // namespace tributary
