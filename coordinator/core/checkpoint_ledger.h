#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// Which servers, or ranks, have written their file of which checkpoint, and
// what became of it: a checkpoint exists once all files are there and the
// manifest is written. Each of them reports its steps in order and may leave
// reports out: a report of a later step says that the earlier checkpoints
// without a report of it have failed. State in, answer out.
class CheckpointLedger {
 public:
  // Checkpoints that may wait for a server's file; one more, and the oldest has
  // failed.
  static constexpr size_t kMaxOpen = 16;
  static constexpr int kMaxStates = 16;  // common/checkpoint/shard_file.h
  static constexpr size_t kMaxTextBytes = 4096;

  // A plan begins after `start_step`: reports of an earlier plan are forgotten.
  // `holders`: the shards that hold anything; the others write no file.
  // `writer`: what a sentence calls them.
  void Begin(int64_t start_step, std::vector<uint32_t> holders,
             std::string writer = "server");

  // A report from one of them, as often as it comes; others' are ignored. A
  // failure concerns its own step: earlier ones that are written, or may still
  // be, stay.
  void Add(uint32_t shard, const v1::CheckpointReport& report);

  // The oldest step of which every file is there and no manifest, with its
  // files by shard; none: nothing to write.
  struct Complete {
    int64_t step = 0;
    std::vector<v1::CheckpointFile> files;
    std::vector<std::string> state_names;
  };
  std::optional<Complete> Next() const;
  // What became of Next()'s manifest.
  void Settle(int64_t step, const absl::Status& status, int64_t now_micros);

  // True while this step's checkpoint has reports and is neither whole nor
  // failed.
  bool Undecided(int64_t step) const {
    const auto found = entries_.find(step);
    return found != entries_.end() && !found->second.failed;
  }

  // True while a checkpoint that is due every `every_steps`, of a step up to
  // `last_step`, may still become whole.
  bool Awaits(int64_t last_step, int64_t every_steps) const;

  int64_t newest_step() const { return newest_step_; }  // 0: none yet
  int64_t newest_micros() const { return newest_micros_; }
  uint64_t failures() const { return failures_; }
  // Of the newest: the longest of its servers.
  double pause_seconds() const { return pause_seconds_; }
  double write_seconds() const { return write_seconds_; }
  // Steps whose checkpoint has failed, since the last call: what was written of
  // it is of no use.
  std::vector<int64_t> TakeFailed();
  // Sentences about failures since the last call.
  std::vector<std::string> TakeNotices();

 private:
  struct Entry {
    std::map<uint32_t, v1::CheckpointReport> reports;  // with a file; by shard
    bool failed = false;  // stays until all have reported or it is long ago
  };

  // True when `shard` has reported this step, or a later one instead.
  bool HasPassed(uint32_t shard, int64_t step) const;
  void Fail(int64_t step, const std::string& why);
  void FailWhatIsPassed();
  void Bound();

  std::vector<uint32_t> holders_;
  std::string writer_;
  std::map<int64_t, Entry> entries_;      // by step, all after settled_step_
  std::map<uint32_t, int64_t> reported_;  // the highest step, by shard
  int64_t settled_step_ = 0;  // the newest whole one, or where the plan begins
  int64_t newest_step_ = 0;
  int64_t newest_micros_ = 0;
  uint64_t failures_ = 0;
  double pause_seconds_ = 0;
  double write_seconds_ = 0;
  std::vector<int64_t> failed_;
  std::vector<std::string> notices_;
};

}  // namespace tributary
