// SPDX-License-Identifier: Apache-2.0
#include "common/telemetry/log_line.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/status/printable.h"

namespace tributary {
namespace {

std::string Text(const LogRecord& record, absl::string_view time) {
  std::string line = absl::StrCat(time, " ", record.level, " ", record.role);
  if (record.index >= 0) absl::StrAppend(&line, "-", record.index);
  absl::StrAppend(&line, record.role.empty() ? "" : ": ",
                  Printable(record.message), "\n");
  return line;
}

std::string JsonLine(const LogRecord& record, const std::string& time) {
  using Json = nlohmann::ordered_json;
  Json json = {{"time", time}, {"level", std::string(record.level)}};
  if (!record.role.empty()) json["role"] = std::string(record.role);
  if (record.index >= 0) json["index"] = record.index;
  json["message"] = std::string(record.message);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// The text at `key` of a line that is a JSON object; nullopt: there is none.
std::optional<std::string> JsonField(absl::string_view line, const char* key) {
  if (!absl::StartsWith(line, "{")) return std::nullopt;
  const nlohmann::json json =
      nlohmann::json::parse(line.begin(), line.end(), /*cb=*/nullptr,
                            /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains(key) || !json[key].is_string()) {
    return std::nullopt;
  }
  return json[key].get<std::string>();
}

}  // namespace

std::string FormatLogLine(LogFormat format, const LogRecord& record) {
  const std::string time = absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", record.time,
                                            absl::UTCTimeZone());
  return format == LogFormat::kJson ? JsonLine(record, time)
                                    : Text(record, time);
}

std::optional<absl::Time> TimeOfLine(absl::string_view line) {
  const std::string text =
      JsonField(line, "time")
          .value_or(std::string(line.substr(0, line.find(' '))));
  absl::Time time;
  if (absl::ParseTime(absl::RFC3339_full, text, &time, nullptr)) return time;
  return std::nullopt;
}

std::string MessageOf(absl::string_view line) {
  if (std::optional<std::string> message = JsonField(line, "message")) {
    return *std::move(message);
  }
  // The parts of a text line: the time, the level, role and index, the message.
  const std::vector<absl::string_view> parts =
      absl::StrSplit(line, absl::MaxSplits(' ', 3));
  absl::Time time;
  if (parts.size() == 4 && absl::EndsWith(parts[2], ":") &&
      absl::ParseTime(absl::RFC3339_full, parts[0], &time, nullptr)) {
    return std::string(parts[3]);
  }
  return std::string(line);
}

}  // namespace tributary
