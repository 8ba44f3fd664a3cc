// SPDX-License-Identifier: Apache-2.0
#include "coordinator/run/metrics_file.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include "common/files/atomic_file.h"
#include "common/host/small_file.h"
#include "common/status/status_macros.h"
#include "coordinator/core/state_file.h"
#include "coordinator/run/run_record.h"

namespace tributary {
namespace {

constexpr char kMetricsFile[] = "/metrics.jsonl";
constexpr char kTotalsFile[] = "/coordinator.totals";

absl::StatusOr<RecordFile> OpenLines(const std::string& folder) {
  return RecordFile::Open(folder + kMetricsFile, /*max_kept=*/64 << 20);
}

// Returns totals without a step if there are none or they are damaged.
v1::RecordedTotals ReadTotals(const std::string& folder) {
  v1::RecordedTotals totals;
  if (!ReadChecked(ReadText(folder + kTotalsFile), &totals)) totals.Clear();
  return totals;
}

// Whether a line of the file ends with this byte.
bool ALineEndsAt(const std::string& path, uint64_t bytes) {
  if (bytes == 0) return true;
  std::ifstream stream(path, std::ios::binary);
  stream.seekg(static_cast<std::streamoff>(bytes - 1));
  return stream.get() == '\n';
}

}  // namespace

absl::StatusOr<MetricsFile> MetricsFile::Create(const std::string& folder) {
  TRIBUTARY_ASSIGN_OR_RETURN(RecordFile file, OpenLines(folder));
  return MetricsFile(folder, std::move(file));
}

absl::StatusOr<MetricsFile> MetricsFile::Open(const std::string& folder,
                                              const EarlierSteps& earlier) {
  if (std::error_code error;
      std::filesystem::exists(folder + kMetricsFile, error)) {
    TRIBUTARY_RETURN_IF_ERROR(CutToWholeLines(folder + kMetricsFile));
  }
  TRIBUTARY_ASSIGN_OR_RETURN(MetricsFile metrics, Create(folder));
  metrics.ReadEarlier(earlier);
  return metrics;
}

void MetricsFile::ReadEarlier(const EarlierSteps& earlier) {
  const std::string path = folder_ + kMetricsFile;
  totals_ = ReadTotals(folder_);
  const int64_t known = saved_step_ = totals_.step();
  if (known > 0 && earlier.on_shown) earlier.on_shown(totals_.shown());
  totals_.clear_shown();
  // If lines that the totals sum up are gone, reads the whole file.
  const uint64_t from =
      ALineEndsAt(path, totals_.bytes()) ? totals_.bytes() : 0;
  bad_lines_ = ForEachLine(path, from, [&](absl::string_view line) {
    const std::optional<StepRecord> record = ReadMetricsLine(line);
    if (!record) return false;
    if (from == 0 && record->step <= known) return true;
    AddToTotals(*record);
    if (earlier.on_step) earlier.on_step(*record);
    return true;
  });
}

void MetricsFile::AddToTotals(const StepRecord& record) {
  totals_.set_step(record.step);
  if (record.epoch > 0) totals_.set_epoch(record.epoch);
  if (record.loss && record.samples > 0) totals_.set_loss(*record.loss);
  totals_.set_samples(totals_.samples() + record.samples);
  if (record.skipped) totals_.set_skipped_steps(totals_.skipped_steps() + 1);
  totals_.set_training_seconds(totals_.training_seconds() +
                               record.seconds.step);
}

void MetricsFile::Add(const StepRecord& record) {
  AddToTotals(record);
  file_.Add(MetricsLine(record) + "\n");
}

absl::Status MetricsFile::SaveTotals(const v1::StepsShown& shown) {
  if (file_.keeps() || totals_.step() == saved_step_) return absl::OkStatus();
  // After a power cut the totals must not sum up lines that are not there.
  TRIBUTARY_RETURN_IF_ERROR(file_.Sync());
  v1::RecordedTotals totals = totals_;
  TRIBUTARY_ASSIGN_OR_RETURN(const uint64_t bytes, file_.Size());
  totals.set_bytes(bytes);
  *totals.mutable_shown() = shown;
  TRIBUTARY_RETURN_IF_ERROR(
      WriteFileAtomically(folder_ + kTotalsFile, Checked(totals)));
  saved_step_ = totals.step();
  return absl::OkStatus();
}

RecordedSteps MetricsFile::Recorded() const {
  std::optional<double> loss;
  if (totals_.has_loss()) loss = totals_.loss();
  return {.step = totals_.step(),
          .epoch = totals_.epoch(),
          .loss = loss,
          .samples = totals_.samples(),
          .training_seconds = totals_.training_seconds(),
          .skipped_steps = totals_.skipped_steps()};
}

}  // namespace tributary
