#include "server/coordinator/checkpoint_ledger.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tributary {

void CheckpointLedger::Begin(int64_t start_step, std::vector<uint32_t> holders,
                             std::string writer) {
  holders_ = std::move(holders);
  writer_ = std::move(writer);
  open_.clear();
  settled_step_ = start_step;
}

void CheckpointLedger::Add(uint32_t shard, const v1::CheckpointReport& report) {
  // The file of one that holds nothing would stand for another's that is
  // missing.
  if (std::find(holders_.begin(), holders_.end(), shard) == holders_.end()) {
    return;
  }
  if (report.step() <= settled_step_) {
    // Another server's file had failed before: this one is to be removed, too.
    if (report.has_file()) failed_.push_back(report.step());
    return;
  }
  if (!report.has_file()) {
    Fail(report.step(), absl::StrCat(writer_, " ", shard, ": ",
                                     report.error().substr(0, kMaxTextBytes)));
    return;
  }
  if (report.ByteSizeLong() > kMaxTextBytes ||
      report.state_names_size() > kMaxStates) {
    Fail(report.step(),
         absl::StrCat(writer_, " ", shard, " reports it in ",
                      report.ByteSizeLong(), " bytes and ",
                      report.state_names_size(), " states; wanted at most ",
                      kMaxTextBytes, " and ", kMaxStates));
    return;
  }
  open_[report.step()][shard] = report;
  if (open_.size() > kMaxOpen) GiveUpOldest();
}

void CheckpointLedger::GiveUpOldest() {
  const auto& [step, reports] = *open_.begin();
  Fail(step, absl::StrCat("only ", reports.size(), " of ", holders_.size(),
                          " servers have written it, and ", open_.size() - 1,
                          " later ones wait"));
}

void CheckpointLedger::Fail(int64_t step, const std::string& why) {
  ++failures_;
  failed_.push_back(step);
  notices_.push_back(
      absl::StrCat("the checkpoint of step ", step, " failed: ", why));
  settled_step_ = std::max(settled_step_, step);
  open_.erase(open_.begin(), open_.upper_bound(settled_step_));
}

std::optional<CheckpointLedger::Complete> CheckpointLedger::Next() const {
  for (const auto& [step, reports] : open_) {
    if (reports.size() < holders_.size()) continue;
    Complete complete;
    complete.step = step;
    for (const auto& [shard, report] : reports) {
      complete.files.push_back(report.file());
      complete.state_names.assign(report.state_names().begin(),
                                  report.state_names().end());
    }
    return complete;
  }
  return std::nullopt;
}

void CheckpointLedger::Settle(int64_t step, const absl::Status& status,
                              int64_t now_micros) {
  const auto found = open_.find(step);
  if (found == open_.end()) return;
  if (!status.ok()) {
    return Fail(step, std::string(status.message()));
  }
  newest_step_ = step;
  newest_micros_ = now_micros;
  pause_seconds_ = write_seconds_ = 0;
  for (const auto& [shard, report] : found->second) {
    pause_seconds_ = std::max(pause_seconds_, report.pause_seconds());
    write_seconds_ = std::max(write_seconds_, report.write_seconds());
  }
  settled_step_ = std::max(settled_step_, step);
  open_.erase(open_.begin(), open_.upper_bound(step));
}

bool CheckpointLedger::Open(int64_t step) const { return settled_step_ < step; }

std::vector<int64_t> CheckpointLedger::TakeFailed() {
  return std::exchange(failed_, {});
}

std::vector<std::string> CheckpointLedger::TakeNotices() {
  return std::exchange(notices_, {});
}

}  // namespace tributary
