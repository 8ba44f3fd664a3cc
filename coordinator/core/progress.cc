// SPDX-License-Identifier: Apache-2.0
#include "coordinator/core/progress.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/base/timeline_step.h"

namespace tributary {
namespace {

// Times must be finite. A loss may be anything, because training can diverge.
bool IsDuration(double seconds) {
  return std::isfinite(seconds) && seconds >= 0;
}

absl::Status CheckReport(uint32_t rank, const v1::StepReport& report,
                         int64_t wanted_step) {
  if (report.step() != wanted_step) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", rank, " reports step ", report.step(),
                     " where step ", wanted_step, " follows"));
  }
  if (report.epoch() < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", rank, " reports epoch ", report.epoch(),
                     " in step ", report.step(), "; epochs count from 1"));
  }
  for (const StepSecondsField& field : kStepSeconds) {
    const double seconds = (report.*field.get)();
    if (!IsDuration(seconds)) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", rank, " reports ", seconds, " seconds in step ",
                       report.step()));
    }
  }
  if (report.spans_size() > kMaxStepSpans) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rank ", rank, " reports ", report.spans_size(), " spans in step ",
        report.step(), ", wanted at most ", kMaxStepSpans));
  }
  return absl::OkStatus();
}

}  // namespace

Progress::Progress(int num_workers, int64_t start_step, int64_t skipped_steps)
    : ranks_(num_workers), skipped_steps_(skipped_steps) {
  for (Rank& rank : ranks_) rank.last_step = start_step;
  latest_.step = start_step;
}

void Progress::Continue(const RecordedSteps& recorded) {
  total_samples_ = recorded.samples;
  training_seconds_ = recorded.training_seconds;
  skipped_steps_.Continue(recorded.skipped_steps);
  if (recorded.step <= latest_.step) return;
  for (Rank& rank : ranks_) rank.last_step = recorded.step;
  latest_.step = recorded.step;
  latest_.epoch = recorded.epoch;
  latest_.loss = recorded.loss;
}

absl::Status Progress::StartAt(uint32_t rank_index, int64_t start_step) {
  Rank& rank = ranks_[rank_index];
  if (start_step < 0 || start_step > kMaxStep) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", rank_index, " begins after step ", start_step,
                     ", wanted 0 to ", kMaxStep));
  }
  const auto room =
      static_cast<int64_t>(kMaxWaitingReports - rank.waiting.size());
  if (start_step - rank.last_step > room) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", rank_index, " begins after step ", start_step,
                     ", its last report is of step ", rank.last_step));
  }
  while (rank.last_step < start_step) {
    v1::StepReport lost;
    lost.set_step(++rank.last_step);
    rank.waiting.push_back(lost);
  }
  MergeComplete();
  return absl::OkStatus();
}

void Progress::Close(int64_t step) {
  const int64_t last = std::max(step, furthest_step());
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    // An error means that the gap exceeds kMaxWaitingReports: the gap stays.
    (void)StartAt(rank, last);
  }
}

int64_t Progress::furthest_step() const {
  int64_t furthest = 0;
  for (const Rank& rank : ranks_) {
    furthest = std::max(furthest, rank.last_step);
  }
  return furthest;
}

absl::StatusOr<uint32_t> Progress::Add(
    uint32_t rank_index,
    const google::protobuf::RepeatedPtrField<v1::StepReport>& reports) {
  Rank& rank = ranks_[rank_index];
  int64_t wanted = rank.last_step + 1;
  for (const v1::StepReport& report : reports) {
    if (report.step() >= 1 && report.step() < wanted) continue;  // seen before
    if (absl::Status status = CheckReport(rank_index, report, wanted);
        !status.ok()) {
      return status;
    }
    ++wanted;
  }
  uint32_t settled = 0;
  for (const v1::StepReport& report : reports) {
    if (report.step() > rank.last_step) {
      if (rank.waiting.size() >= kMaxWaitingReports ||
          records_.size() >= kMaxWaitingReports) {
        break;
      }
      rank.waiting.push_back(report);
      // Bounds the size of a waiting report, whatever the member sent.
      rank.waiting.back().DiscardUnknownFields();
      rank.last_report = rank.waiting.back();
      rank.last_report.clear_spans();
      if (!IsTimelineStep(report.step())) rank.waiting.back().clear_spans();
      rank.last_step = report.step();
      MergeComplete();
    }
    ++settled;
  }
  return settled;
}

void Progress::MergeComplete() {
  const auto has_reported = [](const Rank& rank) {
    return !rank.waiting.empty();
  };
  while (std::all_of(ranks_.begin(), ranks_.end(), has_reported)) {
    const std::optional<double> known_loss = latest_.loss;
    latest_ = MergeFront();
    total_samples_ += latest_.samples;
    training_seconds_ += latest_.seconds.step;
    if (latest_.skipped) skipped_steps_.Add(latest_.step);
    records_.push_back(latest_);
    if (!latest_.loss) latest_.loss = known_loss;
    latest_.ranks.clear();
  }
}

StepRecord Progress::MergeFront() {
  StepRecord record;
  record.step = ranks_[0].waiting.front().step();
  // Used when all reports are lost.
  record.epoch = std::max<int64_t>(1, latest_.epoch);
  size_t reported = 0;
  for (const Rank& rank : ranks_) {
    const v1::StepReport& report = rank.waiting.front();
    if (report.epoch() == 0 || ++reported > 1) continue;
    record.epoch = report.epoch();
    record.learning_rate = report.learning_rate();
  }
  record.lost_reports = ranks_.size() - reported;
  const double share = 1.0 / static_cast<double>(std::max<size_t>(1, reported));
  std::vector<uint32_t> samples;
  double loss_sum = 0;  // summed in rank order: the same in every run
  uint64_t loss_samples = 0;
  double least_wait = std::numeric_limits<double>::infinity();
  for (Rank& rank : ranks_) {
    const v1::StepReport& report = rank.waiting.front();
    if (!report.no_loss()) {
      loss_sum += report.loss_sum();
      loss_samples += report.samples();
    }
    record.samples += report.samples();
    samples.push_back(report.gradient_sample());
    AddSeconds(report, share, &record.seconds);
    record.bytes_sent += report.bytes_sent();
    record.bytes_received += report.bytes_received();
    record.skipped |= report.skipped();
    if (report.epoch() > 0) {
      least_wait = std::min(least_wait, report.wait_seconds());
    }
  }
  equal_ranks_.Add(samples);
  if (reported > 0) {
    record.peer_seconds = std::max(0.0, record.seconds.wait - least_wait);
  }
  for (Rank& rank : ranks_) {
    if (IsTimelineStep(record.step)) {
      record.ranks.push_back(std::move(rank.waiting.front()));
    }
    rank.waiting.pop_front();
  }
  if (loss_samples > 0) {
    record.loss = loss_sum / static_cast<double>(loss_samples);
  } else if (record.samples == 0 && reported > 0) {
    record.loss = latest_.loss;
  }
  record.samples_per_second = Rate(record);
  return record;
}

// Returns samples per second over the steps in the window, which always holds
// the newest step. The sum is new each time: a running sum of seconds would
// drift.
double Progress::Rate(const StepRecord& record) {
  recent_.push_back({record.samples, record.seconds.step});
  recent_samples_ += record.samples;
  double seconds = 0;
  size_t kept = 0;
  for (auto it = recent_.rbegin(); it != recent_.rend(); ++it, ++kept) {
    if (kept > 0 && seconds + it->seconds > kWindowSeconds) break;
    seconds += it->seconds;
  }
  while (recent_.size() > kept) {
    recent_samples_ -= recent_.front().samples;
    recent_.pop_front();
  }
  return seconds > 0 ? static_cast<double>(recent_samples_) / seconds : 0;
}

std::vector<std::string> Progress::TakeNotices() {
  std::vector<std::string> notices = skipped_steps_.TakeNotices();
  if (std::string equal = equal_ranks_.TakeNotice(); !equal.empty()) {
    notices.push_back(std::move(equal));
  }
  return notices;
}

std::vector<StepRecord> Progress::Take() { return std::exchange(records_, {}); }

}  // namespace tributary
