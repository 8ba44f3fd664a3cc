// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/core/trace/trace_collector.h"
#include "coordinator/run/record_file.h"

namespace tributary {

// Returns the lines of trace.jsonl for a batch, each with its end
// (docs/run-directory.md). They are far shorter than 64 KiB, so that a line
// which a killed coordinator wrote only in part is noticed.
std::vector<std::string> TraceLines(const TraceBatch& batch);

// trace.jsonl of a run directory. Its first line creates it, and it takes no
// more lines once it has reached its limit. When the disk is full, its lines
// are dropped first, like those of the timeline.
class TraceFile {
 public:
  static constexpr uint64_t kMaxBytes = 64 << 20;

  // Continues the file of an earlier coordinator, if there is one.
  explicit TraceFile(std::string path, uint64_t max_bytes = kMaxBytes);

  // Creates the file if it is missing. Errors as RecordFile::Open.
  absl::Status Add(const TraceBatch& batch);
  // Errors as RecordFile::Flush.
  absl::Status Flush() { return file_ ? file_->Flush() : absl::OkStatus(); }
  int64_t given_up() const { return file_ ? file_->given_up() : 0; }

 private:
  const std::string path_;
  const uint64_t max_bytes_;
  uint64_t bytes_ = 0;  // written, or waiting to be written
  bool full_ = false;
  std::optional<RecordFile> file_;  // empty: nothing was added
};

}  // namespace tributary
