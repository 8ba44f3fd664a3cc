// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/telemetry/histogram.h"
#include "coordinator/core/checkpoint_ledger.h"
#include "coordinator/core/job_state.h"
#include "tributary/v1/checkpoint.pb.h"

namespace tributary {

// A checkpoint whose files are complete; only the manifest is missing.
struct PendingManifest {
  std::string directory;
  v1::CheckpointManifest manifest;
  uint64_t plan_epoch = 0;  // the plan that its step was computed under
};

// A checkpoint that a plan starts from and that a member cannot read.
struct UnreadableCheckpoint {
  uint64_t plan_epoch = 0;
  int64_t step = 0;
  std::string folder;
  std::string directory;  // where the job writes; empty: no checkpoints
  std::string why;        // "server 1: FILE: byte ..."
};

// The checkpoints of a job: takes the members' reports, names the manifests to
// write, and tells the job's state where the next plan starts. A plain object:
// its owner locks.
class JobCheckpoints {
 public:
  // `state` must outlive this object.
  explicit JobCheckpoints(JobState* state) : state_(*state) {}

  // A new plan is in force.
  void BeginPlan();

  // Takes the reports of a heartbeat and returns how many, from the front, are
  // decided. The sender keeps the others, in case a restarted coordinator needs
  // them again. `saved`: every change so far is on disk.
  // `best_step`: of the best weights so far; 0: none are kept.
  uint32_t Take(const v1::HeartbeatRequest& request, bool saved,
                int64_t best_step);

  // NextManifest returns the next manifest to write, if any; Written takes the
  // result of writing it. Written returns false if a new plan has replaced the
  // manifest's plan, so its steps no longer count.
  std::optional<PendingManifest> NextManifest();
  bool Written(const PendingManifest& pending, const std::string& folder,
               const absl::Status& status, int64_t now_micros);
  // Takes the directories of checkpoints that have failed since the last call.
  std::vector<std::string> TakeFailed();

  // TakeUnreadable returns the checkpoint that a member of the newest plan
  // cannot read, if any. GoBack takes the older checkpoint to use instead; no
  // folder: the job's beginning.
  std::optional<UnreadableCheckpoint> TakeUnreadable();
  void GoBack(const UnreadableCheckpoint& lost, int64_t step,
              const std::string& folder);

  // Whether there is a manifest to write or an unreadable checkpoint.
  bool HasWork() const {
    return ledger_.Next().has_value() || unreadable_.has_value();
  }
  // Whether the job leaves a checkpoint of its last step although no other rule
  // requires one.
  bool WritesAtEnd() const;
  // Whether a checkpoint may still become complete: one up to this step, which
  // all workers have finished, or that of the best weights (0: none are kept).
  bool Awaits(int64_t last_step, int64_t best_step) const;
  const CheckpointLedger& ledger() const { return ledger_; }
  std::vector<std::string> TakeNotices() { return ledger_.TakeNotices(); }
  // Seconds that each checkpoint took, measured at its slowest writer.
  const Histogram& seconds() const { return seconds_; }

 private:
  // Whether the report is of the plan in force. A file that was reported under
  // an earlier plan belongs to another computation of its step.
  bool IsOfPlan(const v1::CheckpointReport& report) const;
  // A plan writes no file for its start step: a report of it means that the
  // checkpoint that the plan starts from cannot be read.
  bool IsUnreadable(const v1::CheckpointReport& report) const;
  // Whether the job already continues from another checkpoint.
  bool HasGoneBack() const;

  JobState& state_;
  CheckpointLedger ledger_;
  std::optional<UnreadableCheckpoint> unreadable_;
  Histogram seconds_{Histogram::SecondsBounds()};
};

}  // namespace tributary
