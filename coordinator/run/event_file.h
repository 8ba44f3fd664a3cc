#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "coordinator/run/record_file.h"

namespace tributary {

// Writes scalars for TensorBoard. The file is a sequence of TFRecords, each the
// length (8 bytes, little-endian), its masked CRC-32C, the bytes of a
// TensorBoardEvent, their masked CRC-32C.
class EventFile {
 public:
  // Creates events.out.tfevents.SECONDS.HOST in `folder`.
  static absl::StatusOr<std::unique_ptr<EventFile>> Create(
      const std::string& folder, double wall_seconds);

  // All with one step and time; written by Flush.
  void Add(int64_t step, double wall_seconds,
           const std::map<std::string, double>& values_by_tag);
  // As RecordFile::Flush.
  absl::Status Flush() { return file_.Flush(); }
  const RecordFile& file() const { return file_; }

 private:
  explicit EventFile(RecordFile file) : file_(std::move(file)) {}

  RecordFile file_;
};

// One TFRecord around `data`.
std::string EncodeRecord(const std::string& data);

}  // namespace tributary
