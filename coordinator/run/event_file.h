// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "coordinator/run/record_file.h"

namespace tributary {

// Writes scalars for TensorBoard. The file is a sequence of TFRecords. Each
// consists of the length (8 bytes, little-endian), its masked CRC-32C, the
// bytes of a TensorBoardEvent and their masked CRC-32C.
class EventFile {
 public:
  // Creates events.out.tfevents.SECONDS.HOST in `folder`.
  static absl::StatusOr<std::unique_ptr<EventFile>> Create(
      const std::string& folder, double wall_seconds);

  // Adds one event with these values. Flush writes it.
  void Add(int64_t step, double wall_seconds,
           const std::map<std::string, double>& values_by_tag);
  // Errors as RecordFile::Flush.
  absl::Status Flush() { return file_.Flush(); }
  const RecordFile& file() const { return file_; }

 private:
  explicit EventFile(RecordFile file) : file_(std::move(file)) {}

  RecordFile file_;
};

// Encodes `data` as one TFRecord.
std::string EncodeRecord(const std::string& data);

}  // namespace tributary
