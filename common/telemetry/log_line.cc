#include "common/telemetry/log_line.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace tributary {
namespace {

std::string Text(const LogRecord& record, absl::string_view time) {
  std::string line = absl::StrCat(time, " ", record.level, " ", record.role);
  if (record.index >= 0) absl::StrAppend(&line, "-", record.index);
  absl::StrAppend(&line, record.role.empty() ? "" : ": ", record.message, "\n");
  return line;
}

std::string Json(const LogRecord& record, const std::string& time) {
  using Json = nlohmann::ordered_json;
  Json json = {{"time", time}, {"level", std::string(record.level)}};
  if (!record.role.empty()) json["role"] = std::string(record.role);
  if (record.index >= 0) json["index"] = record.index;
  json["message"] = std::string(record.message);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string FormatLogLine(LogFormat format, const LogRecord& record) {
  const std::string time = absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", record.time,
                                            absl::UTCTimeZone());
  return format == LogFormat::kJson ? Json(record, time) : Text(record, time);
}

}  // namespace tributary
