// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// A member that writes a file of each checkpoint.
struct CheckpointWriter {
  v1::Role role = v1::ROLE_SERVER;
  uint32_t index = 0;

  std::string Name() const;  // "server 1", "rank 2"

  friend auto operator<=>(const CheckpointWriter&,
                          const CheckpointWriter&) = default;
};

// Tracks which servers and ranks have written their file of each checkpoint. A
// checkpoint is complete once all files and the manifest are written. Each
// writer reports its steps in order and may skip reports: a report of a later
// step means that the earlier checkpoints it did not report have failed. A
// plain object: events go in, answers come out, and it does no I/O.
class CheckpointLedger {
 public:
  // Limit of checkpoints that wait for files. Beyond it the oldest counts as
  // failed, or the second oldest if the oldest has the best weights.
  static constexpr size_t kMaxOpen = 16;
  static constexpr size_t kMaxTextBytes = 4096;

  // Starts a plan after `start_step` and forgets the reports of earlier plans.
  // `holders`: the members that write a file.
  void Begin(int64_t start_step, std::vector<CheckpointWriter> holders);

  // The step of the best weights so far; 0: none.
  void SetBest(int64_t step) { best_step_ = step; }

  // Adds a report. Ignores a repeated report, and a report of a member that is
  // not a holder. A failure concerns its own step only: earlier checkpoints
  // stay if they are complete or may still become so.
  void Add(const CheckpointWriter& writer, const v1::CheckpointReport& report);

  // The member has reported its checkpoints up to this step, to an earlier
  // coordinator at least.
  void Pass(const CheckpointWriter& writer, int64_t step);

  // The oldest step that has all files but no manifest; nullopt if there is
  // none. If servers write shards, the files of ranks are residuals.
  struct Complete {
    int64_t step = 0;
    std::vector<v1::CheckpointFile> files;      // by shard
    std::vector<v1::CheckpointFile> residuals;  // by rank
    std::vector<std::string> state_names;
  };
  std::optional<Complete> Next() const;
  // Records whether the manifest of Next() was written.
  void Settle(int64_t step, const absl::Status& status, int64_t now_micros);

  // True while this step's checkpoint has reports and is neither complete nor
  // failed.
  bool Undecided(int64_t step) const {
    const auto found = entries_.find(step);
    return found != entries_.end() && !found->second.failed;
  }

  // True while this step's checkpoint, which is due, may still become complete.
  bool Awaits(int64_t step) const;
  // Like Awaits, for any step up to `last_step`, when a checkpoint is due every
  // `every_steps` steps.
  bool AwaitsAny(int64_t last_step, int64_t every_steps) const;

  int64_t newest_step() const { return newest_step_; }  // 0: none yet
  int64_t newest_micros() const { return newest_micros_; }
  uint64_t failures() const { return failures_; }
  // Why the newest checkpoint failed; empty if it was written.
  const std::string& error() const { return error_; }
  v1::Cause cause() const { return cause_; }          // of that error
  int64_t error_step() const { return error_step_; }  // of this plan; 0: none
  // The longest times of the writers of the newest checkpoint.
  double pause_seconds() const { return pause_seconds_; }
  double write_seconds() const { return write_seconds_; }
  // Takes the steps whose checkpoints have failed since the last call; their
  // files can be deleted.
  std::vector<int64_t> TakeFailed();
  // Takes the messages about failures since the last call.
  std::vector<std::string> TakeNotices();

 private:
  struct Entry {
    std::map<CheckpointWriter, v1::CheckpointReport> reports;  // with a file
    bool failed = false;  // kept until all writers have passed it or it is old
  };

  // True when `writer` has reported this step, or a later one instead.
  bool HasPassed(const CheckpointWriter& writer, int64_t step) const;
  std::string HolderNoun() const;  // "servers", "ranks", "servers and ranks"
  void Fail(int64_t step, const std::string& why,
            v1::Cause cause = v1::CAUSE_UNSPECIFIED);
  void FailWhatIsPassed();
  void Bound();

  std::vector<CheckpointWriter> holders_;
  std::map<int64_t, Entry> entries_;  // by step, all after settled_step_
  std::map<CheckpointWriter, int64_t> reported_;  // the highest reported step
  int64_t best_step_ = 0;
  int64_t settled_step_ = 0;  // the newest complete one, or the plan's start
  int64_t newest_step_ = 0;
  int64_t newest_micros_ = 0;
  uint64_t failures_ = 0;
  std::string error_;
  v1::Cause cause_ = v1::CAUSE_UNSPECIFIED;
  int64_t error_step_ = 0;  // the latest that failed under this plan
  double pause_seconds_ = 0;
  double write_seconds_ = 0;
  std::vector<int64_t> failed_;
  std::vector<std::string> notices_;
};

}  // namespace tributary
