// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/job_rounds.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/failpoint.h"
#include "common/checkpoint/files/folder_name.h"
#include "common/host/steady_waits.h"
#include "common/status/cause.h"

namespace tributary {
namespace {

constexpr absl::Duration kRound = absl::Milliseconds(100);
// How long the end of a job waits for the last checkpoint's files.
constexpr int64_t kLastCheckpointMicros = 60'000'000;
// Pause between two attempts to write to a full disk.
constexpr absl::Duration kRoom = absl::Milliseconds(200);
constexpr absl::Duration kLook = absl::Milliseconds(5);

std::string FolderOf(const PendingManifest& pending) {
  return absl::StrCat(pending.directory, "/",
                      CheckpointFolderName(pending.manifest.step()));
}

}  // namespace

void JobRounds::Run() {
  while (!control_.closed()) {
    control_.output().AwaitWork(kRound);
    if (control_.deposed()) break;  // the files belong to another coordinator
    if (const auto lost = control_.output().TakeUnreadable()) {
      TakeOlderCheckpoint(*lost);
    }
    WriteManifests();
    v1::Plan plan;
    int64_t step = 0;
    if (control_.output().ReadyToSave(&plan, &step)) SaveWeights(plan, step);
  }
  files_.LeaveWholeCheckpoints(control_.output().CheckpointDirectoryAtEnd());
}

void JobRounds::TakeOlderCheckpoint(const UnreadableCheckpoint& lost) {
  const absl::StatusOr<JobFiles::OlderCheckpoint> older =
      files_.GoBackBefore(lost);
  if (!older.ok()) return control_.Fail(std::string(older.status().message()));
  control_.output().GoBack(lost, older->step, older->folder);
}

void JobRounds::WriteManifests() {
  // Deleted first: on a full disk, a failed checkpoint's files take the room of
  // the next one.
  for (const std::string& folder : control_.output().TakeFailedCheckpoints()) {
    files_.RemoveFailed(folder);
  }
  while (const std::optional<PendingManifest> pending =
             control_.output().NextManifest()) {
    const absl::Status status = files_.WriteManifest(*pending);
    TRIBUTARY_FAILPOINT("coordinator-manifest");
    if (!control_.output().ManifestWritten(*pending, FolderOf(*pending),
                                           status)) {
      // The job has gone back to before this step and will compute it again.
      files_.RevokeManifest(*pending);
      continue;
    }
    if (!status.ok() || control_.deposed()) continue;
    // Not before this point: by now the job's state names the checkpoint,
    // unless the state cannot be saved.
    files_.ManifestWritten(*pending, control_.saved());
  }
}

// If a server is lost during this, all members start over once more.
void JobRounds::SaveWeights(const v1::Plan& plan, int64_t step) {
  const int64_t now = options_.clock->NowMicros();
  if (ending_.plan_epoch != plan.epoch()) ending_ = {plan.epoch(), now};
  if (control_.output().CheckpointOpen() &&
      now < ending_.since_micros + kLastCheckpointMicros) {
    return SleepSteadily(kLook);
  }
  absl::StatusOr<FinalWeights> weights =
      files_.ReadWeights(plan, step, [this, &plan] {
        return control_.closed() || !control_.output().InForce(plan.epoch());
      });
  if (options_.ranks_have_weights &&
      absl::IsFailedPrecondition(weights.status()) &&
      now < ending_.since_micros +
                absl::ToInt64Microseconds(options_.loss_timeout)) {
    return SleepSteadily(kLook);  // the ranks are asked for the weights
  }
  if (control_.deposed() || (!weights.ok() && control_.closed())) return;
  TRIBUTARY_FAILPOINT("coordinator-weights-read");
  const absl::Status saved =
      weights.ok() ? HandOver(*weights, plan.epoch()) : weights.status();
  TRIBUTARY_FAILPOINT("coordinator-weights-saved");
  control_.output().Saved(plan.epoch(), saved);
}

// Repeats the hand-over while the disk is full, for a limited time, so that the
// weights are not lost.
absl::Status JobRounds::HandOver(const FinalWeights& weights,
                                 uint64_t plan_epoch) {
  const int64_t start = options_.clock->NowMicros();
  while (true) {
    const absl::Status status = files_.SaveWeights(weights);
    const absl::Duration spent =
        absl::Microseconds(options_.clock->NowMicros() - start);
    if (!absl::IsResourceExhausted(status) || spent >= options_.loss_timeout ||
        control_.closed() || !control_.output().InForce(plan_epoch)) {
      control_.SetWaits({});
      return status;
    }
    v1::Wait room = WaitFor(absl::StrCat(
        "waiting for room for the final weights: ", status.message()));
    room.set_cause(v1::CAUSE_FULL_DISK);
    control_.SetWaits(room);
    SleepSteadily(kRoom);
  }
}

}  // namespace tributary
