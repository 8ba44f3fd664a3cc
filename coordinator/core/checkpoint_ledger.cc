// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/checkpoint_ledger.h"
#include "common/base/limits.h"
#include "common/status/cause.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tributary {

std::string CheckpointWriter::Name() const {
  return absl::StrCat(role == v1::ROLE_SERVER ? "server " : "rank ", index);
}

void CheckpointLedger::Begin(int64_t start_step,
                             std::vector<CheckpointWriter> holders) {
  holders_ = std::move(holders);
  entries_.clear();
  reported_.clear();
  failed_.clear();  // the new plan may be writing these steps already
  error_step_ = 0;  // the next one that is written counts as newer
  settled_step_ = start_step;
}

bool CheckpointLedger::HasPassed(const CheckpointWriter& writer,
                                 int64_t step) const {
  const auto found = reported_.find(writer);
  return found != reported_.end() && found->second >= step;
}

std::string CheckpointLedger::HolderNoun() const {
  const auto any = [this](v1::Role role) {
    return std::any_of(
        holders_.begin(), holders_.end(),
        [role](const auto& holder) { return holder.role == role; });
  };
  if (!any(v1::ROLE_WORKER)) return "servers";
  return any(v1::ROLE_SERVER) ? "servers and ranks" : "ranks";
}

void CheckpointLedger::Add(const CheckpointWriter& writer,
                           const v1::CheckpointReport& report) {
  // A file of a member that is not a holder must not count in place of a
  // missing file.
  if (std::find(holders_.begin(), holders_.end(), writer) == holders_.end()) {
    return;
  }
  const int64_t step = report.step();
  if (HasPassed(writer, step)) return;  // a repetition
  reported_[writer] = step;
  if (step <= settled_step_) {
    // A file older than a complete checkpoint is not needed.
    if (report.has_file()) failed_.push_back(step);
    return;
  }
  Entry& entry = entries_[step];
  if (entry.failed) {
    // Another writer's file had failed before, so this one is deleted too.
    if (report.has_file()) failed_.push_back(step);
  } else if (!report.has_file()) {
    Fail(step,
         absl::StrCat(writer.Name(), ": ",
                      report.error().substr(0, kMaxTextBytes)),
         report.error_cause());
  } else if (report.ByteSizeLong() > kMaxTextBytes ||
             report.state_names_size() > kMaxStates) {
    Fail(step,
         absl::StrCat(writer.Name(), " reports it in ", report.ByteSizeLong(),
                      " bytes and ", report.state_names_size(),
                      " states; wanted at most ", kMaxTextBytes, " and ",
                      kMaxStates));
  } else {
    entry.reports[writer] = report;
  }
  FailWhatIsPassed();
  Bound();
}

void CheckpointLedger::Pass(const CheckpointWriter& writer, int64_t step) {
  if (std::find(holders_.begin(), holders_.end(), writer) == holders_.end() ||
      HasPassed(writer, step)) {
    return;
  }
  reported_[writer] = step;
  FailWhatIsPassed();
}

void CheckpointLedger::FailWhatIsPassed() {
  for (const auto& [step, entry] : entries_) {
    if (entry.failed) continue;
    for (const CheckpointWriter& writer : holders_) {
      if (entry.reports.count(writer) > 0 || !HasPassed(writer, step)) continue;
      Fail(step, absl::StrCat(writer.Name(), " has written that of step ",
                              reported_[writer], " without it"));
      break;
    }
  }
}

void CheckpointLedger::Bound() {
  std::vector<int64_t> open;
  for (const auto& [step, entry] : entries_) {
    if (!entry.failed) open.push_back(step);
  }
  if (open.size() > kMaxOpen) {
    const auto written = [this](int64_t step) {
      return entries_[step].reports.size();
    };
    // If all members have written the oldest one, its manifest is being written
    // now.
    const int64_t step =
        *std::find_if(open.begin(), open.end(), [&](int64_t one) {
          return one != best_step_ &&
                 (one != open[0] || written(one) < holders_.size());
        });
    const std::string others =
        absl::StrCat(", and ", open.size() - 1, " other checkpoints wait");
    Fail(step,
         written(step) < holders_.size()
             ? absl::StrCat("only ", written(step), " of ", holders_.size(),
                            " ", HolderNoun(), " have written it", others)
             : absl::StrCat("its manifest is not written yet", others));
  }
  // A late report for an erased step fails the step again: the other writers
  // have passed it.
  while (entries_.size() > 2 * kMaxOpen) {
    entries_.erase(
        std::find_if(entries_.begin(), entries_.end(),
                     [](const auto& entry) { return entry.second.failed; }));
  }
}

void CheckpointLedger::Fail(int64_t step, const std::string& why,
                            v1::Cause cause) {
  ++failures_;
  failed_.push_back(step);
  error_ = why;
  cause_ = cause;
  error_step_ = std::max(error_step_, step);
  notices_.push_back(
      absl::StrCat("the checkpoint of step ", step, " failed: ", why));
  entries_[step] = {.reports = {}, .failed = true};
}

std::optional<CheckpointLedger::Complete> CheckpointLedger::Next() const {
  for (const auto& [step, entry] : entries_) {
    if (entry.failed || entry.reports.size() < holders_.size()) continue;
    Complete complete;
    complete.step = step;
    // Servers come before ranks.
    const v1::Role first = entry.reports.begin()->first.role;
    for (const auto& [writer, report] : entry.reports) {
      if (writer.role != first) {
        complete.residuals.push_back(report.file());
        continue;
      }
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
  const auto found = entries_.find(step);
  if (found == entries_.end() || found->second.failed) return;
  if (!status.ok()) {
    return Fail(step, std::string(status.message()), CauseOf(status));
  }
  newest_step_ = step;
  newest_micros_ = now_micros;
  if (step > error_step_) {
    error_.clear();
    cause_ = v1::CAUSE_UNSPECIFIED;
  }
  pause_seconds_ = write_seconds_ = 0;
  for (const auto& [writer, report] : found->second.reports) {
    pause_seconds_ = std::max(pause_seconds_, report.pause_seconds());
    write_seconds_ = std::max(write_seconds_, report.write_seconds());
  }
  settled_step_ = step;
  // All writers have reported this step, so no earlier step is open any more.
  entries_.erase(entries_.begin(), entries_.upper_bound(step));
}

bool CheckpointLedger::Awaits(int64_t step) const {
  if (step <= settled_step_) return false;
  const auto found = entries_.find(step);
  if (found != entries_.end()) return !found->second.failed;
  // A writer that has reported a later step will never report this one.
  return std::none_of(holders_.begin(), holders_.end(),
                      [this, step](const CheckpointWriter& writer) {
                        return HasPassed(writer, step);
                      });
}

bool CheckpointLedger::AwaitsAny(int64_t last_step, int64_t every_steps) const {
  for (int64_t step = last_step / every_steps * every_steps;
       step > settled_step_; step -= every_steps) {
    if (Awaits(step)) return true;
  }
  return false;
}

std::vector<int64_t> CheckpointLedger::TakeFailed() {
  return std::exchange(failed_, {});
}

std::vector<std::string> CheckpointLedger::TakeNotices() {
  return std::exchange(notices_, {});
}

}  // namespace tributary
