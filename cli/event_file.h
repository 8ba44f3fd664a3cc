#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/run/unique_fd.h"

namespace tributary {

// Writes scalars for TensorBoard. The file is a sequence of TFRecords, each the
// length (8 bytes, little-endian), its masked CRC-32C, the bytes of a
// TensorBoardEvent, their masked CRC-32C.
class EventFile {
 public:
  // Creates events.out.tfevents.SECONDS.HOST in `folder`.
  static absl::StatusOr<std::unique_ptr<EventFile>> Create(
      const std::string& folder, double wall_seconds);

  // All with one step and time; buffered.
  void Add(int64_t step, double wall_seconds,
           const std::map<std::string, double>& values_by_tag);
  absl::Status Flush();

 private:
  EventFile(std::string path, UniqueFd fd)
      : path_(std::move(path)), fd_(std::move(fd)) {}

  const std::string path_;
  UniqueFd fd_;
  std::string buffer_;
};

// One TFRecord around `data`.
std::string EncodeRecord(const std::string& data);

}  // namespace tributary
