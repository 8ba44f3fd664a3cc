// SPDX-License-Identifier: Apache-2.0
#include "coordinator/run/evaluation_file.h"

#include <filesystem>
#include <map>
#include <system_error>

#include "common/files/file_status.h"
#include "common/status/status_macros.h"
#include "coordinator/run/run_record.h"

namespace tributary {

absl::StatusOr<std::vector<EvaluationRecord>> EvaluationFile::Read(
    BadLines* bad) {
  std::vector<EvaluationRecord> evaluations;
  std::error_code error;
  if (!std::filesystem::exists(path(), error)) return evaluations;
  TRIBUTARY_RETURN_IF_ERROR(CutToWholeLines(path()));
  std::map<std::string, int64_t> last;  // last step of each set
  *bad = ForEachLine(path(), 0, [&](absl::string_view line) {
    std::optional<EvaluationRecord> read = ReadEvaluationText(line);
    if (!read) return false;
    const auto [found, first] = last.emplace(read->set, read->step);
    if (!first && read->step <= found->second) return false;
    found->second = read->step;
    evaluations.push_back(*std::move(read));
    return true;
  });
  return evaluations;
}

absl::Status EvaluationFile::Save(
    const std::vector<EvaluationRecord>& evaluations) {
  waiting_.insert(waiting_.end(), evaluations.begin(), evaluations.end());
  if (!file_) {
    TRIBUTARY_ASSIGN_OR_RETURN(file_,
                               RecordFile::Open(path(), /*max_kept=*/16 << 20));
    TRIBUTARY_RETURN_IF_ERROR(SyncFolder(folder_));
  }
  for (const EvaluationRecord& evaluation : waiting_) {
    file_->Add(EvaluationText(evaluation) + "\n");
    synced_ = false;
  }
  waiting_.clear();
  if (synced_) return absl::OkStatus();
  TRIBUTARY_RETURN_IF_ERROR(file_->Flush());
  TRIBUTARY_RETURN_IF_ERROR(file_->Sync());
  synced_ = true;
  return absl::OkStatus();
}

}  // namespace tributary
