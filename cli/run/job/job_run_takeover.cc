// SPDX-License-Identifier: Apache-2.0
// How JobRun continues the job of an earlier coordinator.
#include <algorithm>
#include <ctime>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/run/job/job_run.h"
#include "common/job/same_job.h"
#include "common/plan/model_cut.h"
#include "common/plan/plan_codec.h"
#include "common/status/status_macros.h"
#include "spdlog/spdlog.h"

namespace tributary {

absl::StatusOr<std::optional<v1::CoordinatorState>> JobRun::FindEarlier() {
  if (!options_.folder.take_over || options_.folder.run_dir.empty() ||
      absl::IsNotFound(
          RunDirectory::ReadState(options_.folder.run_dir).status())) {
    return std::nullopt;
  }
  // Takes the lock first: the earlier coordinator may still be running and
  // writing.
  TRIBUTARY_ASSIGN_OR_RETURN(std::unique_ptr<RunLock> lock,
                             RunLock::Take(options_.folder.run_dir));
  absl::StatusOr<v1::CoordinatorState> state =
      RunDirectory::ReadState(options_.folder.run_dir);
  if (absl::IsNotFound(state.status())) return std::nullopt;
  TRIBUTARY_RETURN_IF_ERROR(state.status());
  const bool over = state->phase() == v1::JOB_PHASE_DONE ||
                    state->phase() == v1::JOB_PHASE_FAILED;
  if (over && RunDirectory::HasSummary(options_.folder.run_dir)) {
    return std::nullopt;  // the directory is not empty, so it is refused later
  }
  if (const std::string other = OtherJob(state->job(), options_.job);
      !other.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "run directory ", options_.folder.run_dir,
        " holds another job that has not ended, \"", state->job().name(),
        "\": ", other, "; give its job, or another --run-dir"));
  }
  TRIBUTARY_RETURN_IF_ERROR(
      recorder_.Reopen(std::move(lock), start_wall_seconds_));
  return *std::move(state);
}

absl::Status JobRun::Continue(const v1::CoordinatorState& earlier) {
  screen_.Restore(directory().recorded().samples);
  if (earlier.started_micros() > 0) {
    const double started = 1e-6 * static_cast<double>(earlier.started_micros());
    const double ago = std::max(0.0, start_wall_seconds_ - started);
    start_wall_seconds_ = started;
    start_micros_ -= static_cast<int64_t>(1e6 * ago);
  }
  return recorder_.Continue(earlier);
}

void JobRun::TellTakeover() {
  spdlog::warn("going on with a job whose coordinator has ended at step {}",
               recorder_.last_step());
  for (const std::string& damage : directory().damage()) {
    spdlog::warn("{}", damage);
    console().Note(damage);
  }
}

}  // namespace tributary
