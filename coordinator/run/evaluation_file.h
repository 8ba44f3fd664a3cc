// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/core/evaluation/evaluations.h"
#include "coordinator/run/record_file.h"
#include "coordinator/run/whole_lines.h"

namespace tributary {

// evaluations.jsonl of a run: a line for each complete evaluation. A line is on
// the disk before the workers learn that the evaluation is complete.
class EvaluationFile {
 public:
  // The first evaluation creates the file.
  explicit EvaluationFile(std::string folder) : folder_(std::move(folder)) {}

  // Reads what an earlier coordinator has saved, in the order of steps of each
  // set. Lines that cannot be read are left out and counted in `bad`.
  absl::StatusOr<std::vector<EvaluationRecord>> Read(BadLines* bad);
  // Adds evaluations and waits until they are on the disk. After an error this
  // object keeps them: call it again, without new ones, to retry. Errors as
  // RecordFile::Flush.
  absl::Status Save(const std::vector<EvaluationRecord>& evaluations);

 private:
  std::string path() const { return folder_ + "/evaluations.jsonl"; }

  const std::string folder_;
  std::optional<RecordFile> file_;
  std::vector<EvaluationRecord> waiting_;  // until the file is opened
  bool synced_ = true;
};

}  // namespace tributary
