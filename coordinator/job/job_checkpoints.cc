// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/job_checkpoints.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/failpoint.h"
#include "common/base/limits.h"
#include "common/base/mutation.h"
#include "common/checkpoint/files/folder_name.h"
#include "common/job/job_course.h"
#include "common/job/job_options.h"
#include "coordinator/core/input_meaning.h"
#include "coordinator/job/checkpoint_holders.h"

namespace tributary {
namespace {

// Limit per heartbeat; the sender repeats the others.
constexpr int kMaxCheckpointReports = 64;

}  // namespace

void JobCheckpoints::BeginPlan() {
  const v1::JobSpec& job = state_.options().job;
  ledger_.Begin(state_.plans().restore_step(),
                CheckpointHolders(job, *state_.plan()));
}

bool JobCheckpoints::IsOfPlan(const v1::CheckpointReport& report) const {
  return state_.plan() != nullptr &&
         (report.plan_epoch() == state_.plan()->epoch() ||
          TRIBUTARY_MUTATED("old-report-counts"));
}

bool JobCheckpoints::IsUnreadable(const v1::CheckpointReport& report) const {
  return !report.has_file() && report.step() == state_.plan()->start_step() &&
         !state_.plan()->restore_from().empty();
}

bool JobCheckpoints::HasGoneBack() const {
  return state_.plans().restore_step() != state_.plan()->start_step();
}

uint32_t JobCheckpoints::Take(const v1::HeartbeatRequest& request, bool saved,
                              int64_t best_step) {
  ledger_.SetBest(best_step);
  const int count = std::min(request.checkpoints_size(), kMaxCheckpointReports);
  const CheckpointWriter writer{request.role(), request.index()};
  for (int i = 0; i < count; ++i) {
    const v1::CheckpointReport& report = request.checkpoints(i);
    if (!IsOfPlan(report)) continue;
    if (!IsUnreadable(report)) {
      ledger_.Add(writer, report);
      TRIBUTARY_FAILPOINT("coordinator-checkpoint-report");
    } else if (!HasGoneBack()) {
      const v1::Plan& plan = *state_.plan();
      unreadable_ = {
          .plan_epoch = plan.epoch(),
          .step = plan.start_step(),
          .folder = plan.restore_from(),
          .directory = plan.checkpoint_directory(),
          .why = absl::StrCat(
              writer.Name(), ": ",
              report.error().substr(0, CheckpointLedger::kMaxTextBytes))};
    }
  }
  if (state_.InForce(request.plan_epoch())) {
    ledger_.Pass(writer, request.checkpointed_step());
  }
  uint32_t decided = 0;
  for (int i = 0; saved && i < count; ++i, ++decided) {
    const v1::CheckpointReport& report = request.checkpoints(i);
    if (!IsOfPlan(report)) continue;
    if (ledger_.Undecided(report.step())) break;
    if (IsUnreadable(report) && !HasGoneBack()) break;
  }
  return decided;
}

std::optional<PendingManifest> JobCheckpoints::NextManifest() {
  const std::optional<CheckpointLedger::Complete> next = ledger_.Next();
  if (!next || state_.plan() == nullptr) return std::nullopt;
  const v1::Plan& plan = *state_.plan();
  const v1::JobSpec& job = state_.options().job;
  PendingManifest pending;
  pending.directory = plan.checkpoint_directory();
  pending.plan_epoch = plan.epoch();
  v1::CheckpointManifest& manifest = pending.manifest;
  manifest.set_name(job.name());
  manifest.set_job_id(plan.job_id());
  manifest.set_lineage(plan.lineage());
  manifest.set_plan_epoch(plan.epoch());
  *manifest.mutable_job() = job;
  manifest.set_step(next->step);
  manifest.set_epoch(state_.plans().course().EpochOf(next->step));
  manifest.set_total_steps(KnownSteps(state_.plans().total_steps()));
  manifest.set_steps_per_epoch(state_.plans().declaration().steps_per_epoch());
  if (state_.plans().declaration().course_size() > 0) {
    CourseToProto(state_.plans().course().UpTo(next->step),
                  manifest.mutable_course());
  }
  manifest.set_data_checksum(state_.plans().declaration().data_checksum());
  if (state_.plans().declaration().has_preprocessing()) {
    *manifest.mutable_inputs() =
        MeaningOf(state_.plans().declaration().preprocessing());
  }
  *manifest.mutable_parameters() = plan.parameters();
  for (const std::string& name : next->state_names) {
    manifest.add_state_names(name);
  }
  for (int rank = 0; rank < plan.num_workers(); ++rank) {
    manifest.add_workers()->set_steps(next->step);
  }
  manifest.set_created_micros(
      std::chrono::duration_cast<std::chrono::microseconds>(
          std::chrono::system_clock::now().time_since_epoch())
          .count());
  for (const v1::CheckpointFile& file : next->files) {
    *manifest.add_files() = file;
  }
  for (const v1::CheckpointFile& file : next->residuals) {
    *manifest.add_residuals() = file;
  }
  if (TRIBUTARY_MUTATED("restore-point-before-manifest")) {
    state_.plans().SetRestorePoint(
        next->step, absl::StrCat(plan.checkpoint_directory(), "/",
                                 CheckpointFolderName(next->step)));
  }
  return pending;
}

bool JobCheckpoints::Written(const PendingManifest& pending,
                             const std::string& folder,
                             const absl::Status& status, int64_t now_micros) {
  if (state_.plan()->epoch() != pending.plan_epoch) return false;
  const int64_t step = pending.manifest.step();
  ledger_.Settle(step, status, now_micros);
  if (status.ok()) {
    seconds_.Observe(ledger_.write_seconds());
    state_.plans().SetRestorePoint(step, folder);
  }
  return true;
}

std::vector<std::string> JobCheckpoints::TakeFailed() {
  std::vector<std::string> folders;
  for (int64_t step : ledger_.TakeFailed()) {
    if (state_.plan() == nullptr) continue;
    folders.push_back(absl::StrCat(state_.plan()->checkpoint_directory(), "/",
                                   CheckpointFolderName(step)));
  }
  return folders;
}

std::optional<UnreadableCheckpoint> JobCheckpoints::TakeUnreadable() {
  std::optional<UnreadableCheckpoint> lost =
      std::exchange(unreadable_, std::nullopt);
  // If the plan has already ended for another reason (a lost member or a broken
  // group), the next plan starts from the same checkpoint, and its members
  // report the error again.
  if (lost &&
      (state_.life().over() || state_.plan()->epoch() != lost->plan_epoch)) {
    return std::nullopt;
  }
  return lost;
}

void JobCheckpoints::GoBack(const UnreadableCheckpoint& lost, int64_t step,
                            const std::string& folder) {
  if (state_.plan()->epoch() != lost.plan_epoch) return;
  state_.GoBack(step, folder,
                absl::StrCat("the checkpoint of step ", lost.step,
                             " cannot be read, ", lost.why));
}

bool JobCheckpoints::WritesAtEnd() const {
  return state_.plan() != nullptr &&
         !state_.plan()->checkpoint_directory().empty() &&
         LeavesCheckpointAtEnd(state_.options().job,
                               state_.plan()->start_step(),
                               state_.steps().final_step());
}

bool JobCheckpoints::Awaits(int64_t last_step, int64_t best_step) const {
  if (state_.plan() == nullptr) return false;
  if (WritesAtEnd() && ledger_.Awaits(state_.steps().final_step())) return true;
  if (ledger_.Awaits(best_step)) return true;
  const int64_t every = state_.options().job.checkpoint().every_steps();
  return every > 0 && ledger_.AwaitsAny(last_step, every);
}

}  // namespace tributary
