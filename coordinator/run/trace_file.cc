// SPDX-License-Identifier: Apache-2.0
#include "coordinator/run/trace_file.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "common/wire/identity/role_name.h"

namespace tributary {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kEventsALine = 256;
constexpr size_t kMaxKept = 16 << 20;  // while the disk is full
constexpr char kFull[] = "{\"full\":true}\n";

Json EventJson(const TraceEvent& event) {
  return {std::string(TraceKindName(event.kind)),
          event.step + 1,
          event.shard,
          event.block,
          event.rank,
          event.begin_micros,
          event.end_micros,
          event.bytes};
}

}  // namespace

std::vector<std::string> TraceLines(const TraceBatch& batch) {
  std::vector<std::string> lines;
  size_t begin = 0;
  do {
    const size_t end = std::min(batch.events.size(), begin + kEventsALine);
    Json events = Json::array();
    for (size_t i = begin; i < end; ++i) {
      events.push_back(EventJson(batch.events[i]));
    }
    const Json line = {
        {"role", RoleName(batch.role)},
        {"index", batch.index},
        {"incarnation", batch.incarnation},
        {"host", batch.host},
        {"clock", absl::StrCat(absl::Hex(batch.clock, absl::kZeroPad16))},
        {"offset_micros", batch.offset.offset_micros},
        {"uncertainty_micros", batch.offset.uncertainty_micros},
        {"recorded", batch.recorded},
        {"dropped", batch.dropped},
        {"first", batch.first + begin},
        {"events", std::move(events)}};
    lines.push_back(line.dump(-1, ' ', false, Json::error_handler_t::replace) +
                    "\n");
    begin = end;
  } while (begin < batch.events.size());
  return lines;
}

TraceFile::TraceFile(std::string path, uint64_t max_bytes)
    : path_(std::move(path)), max_bytes_(max_bytes) {
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(path_, error);
  if (!error) bytes_ = size;
  full_ = bytes_ >= max_bytes_;
}

absl::Status TraceFile::Add(const TraceBatch& batch) {
  if (full_) return absl::OkStatus();
  if (!file_) {
    TRIBUTARY_ASSIGN_OR_RETURN(file_, RecordFile::Open(path_, kMaxKept));
  }
  for (std::string& line : TraceLines(batch)) {
    if (bytes_ + line.size() > max_bytes_) {
      full_ = true;
      line = kFull;
    }
    bytes_ += line.size();
    file_->Add(std::move(line));
    if (full_) break;
  }
  return absl::OkStatus();
}

}  // namespace tributary
