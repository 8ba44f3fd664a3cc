// SPDX-License-Identifier: Apache-2.0
#include "coordinator/run/event_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/status/status_macros.h"
#include "common/wire/crc32c/crc32c.h"
#include "tributary/v1/tensorboard.pb.h"

namespace tributary {
namespace {

// Limit of records kept while the disk is full.
constexpr size_t kMaxKeptBytes = 16 << 20;

void AppendLittleEndian(uint64_t value, int bytes, std::string* out) {
  for (int i = 0; i < bytes; ++i) {
    out->push_back(static_cast<char>(value >> (8 * i) & 0xff));
  }
}

uint32_t MaskedCrc32c(const std::string& data) {
  return MaskCrc32c(Crc32c(data.data(), data.size()));
}

}  // namespace

std::string EncodeRecord(const std::string& data) {
  std::string length;
  AppendLittleEndian(data.size(), 8, &length);
  std::string record = length;
  AppendLittleEndian(MaskedCrc32c(length), 4, &record);
  record += data;
  AppendLittleEndian(MaskedCrc32c(data), 4, &record);
  return record;
}

absl::StatusOr<std::unique_ptr<EventFile>> EventFile::Create(
    const std::string& folder, double wall_seconds) {
  char host[256] = "localhost";
  gethostname(host, sizeof(host) - 1);
  const std::string path = absl::StrFormat(
      "%s/events.out.tfevents.%.0f.%s", folder, std::floor(wall_seconds), host);
  TRIBUTARY_ASSIGN_OR_RETURN(RecordFile records,
                             RecordFile::Open(path, kMaxKeptBytes));
  std::unique_ptr<EventFile> file(new EventFile(std::move(records)));
  v1::TensorBoardEvent version;
  version.set_wall_time(wall_seconds);
  version.set_file_version("brain.Event:2");
  file->file_.Add(EncodeRecord(version.SerializeAsString()));
  const absl::Status status = file->Flush();
  if (!status.ok() && !absl::IsResourceExhausted(status)) return status;
  return file;
}

void EventFile::Add(int64_t step, double wall_seconds,
                    const std::map<std::string, double>& values_by_tag) {
  v1::TensorBoardEvent event;
  event.set_wall_time(wall_seconds);
  event.set_step(step);
  for (const auto& [tag, value] : values_by_tag) {
    v1::TensorBoardSummary::Value* scalar =
        event.mutable_summary()->add_value();
    scalar->set_tag(tag);
    scalar->set_simple_value(static_cast<float>(value));
  }
  file_.Add(EncodeRecord(event.SerializeAsString()));
}

}  // namespace tributary
