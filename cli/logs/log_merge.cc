// SPDX-License-Identifier: Apache-2.0
#include "cli/logs/log_merge.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status/printable.h"
#include "common/status/quoted.h"
#include "common/telemetry/log_line.h"

namespace tributary {
namespace fs = std::filesystem;
namespace {

constexpr char kLog[] = ".log";

struct TimedLine {
  absl::Time time;
  std::string text;
};

}  // namespace

bool LogFilter::Takes(absl::string_view file_name) const {
  if (!absl::ConsumeSuffix(&file_name, kLog)) return false;
  const size_t dash = file_name.rfind('-');
  int64_t number = -1;
  absl::string_view name = file_name;
  if (dash != absl::string_view::npos &&
      absl::SimpleAtoi(file_name.substr(dash + 1), &number)) {
    name = file_name.substr(0, dash);
  }
  return (role.empty() || name == role) && (!index || number == *index);
}

absl::StatusOr<absl::Time> ParseSince(absl::string_view text, absl::Time now) {
  absl::Duration ago;
  if (absl::ParseDuration(text, &ago) && ago >= absl::ZeroDuration()) {
    return now - ago;
  }
  absl::Time time;
  if (absl::ParseTime(absl::RFC3339_full, text, &time, nullptr)) return time;
  return absl::InvalidArgumentError(
      absl::StrCat("--since wants how long ago, as in 10m, or a time, as in "
                   "2026-11-21T08:23:08Z, got ",
                   Quoted(text)));
}

std::vector<std::string> LoggedProcesses(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == kLog) {
      names.push_back(entry.path().stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> LogMerge::Take(bool at_end) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename().string();
    if (filter_.Takes(name)) {
      files_.try_emplace(entry.path().stem().string(), entry.path().string());
    }
  }
  std::vector<TimedLine> lines;
  for (auto& [process, file] : files_) {
    const std::vector<std::string> taken =
        at_end ? file.follower.TakeRest() : file.follower.TakeLines();
    for (const std::string& line : taken) {
      const std::optional<absl::Time> time = TimeOfLine(line);
      if (time) file.time = *time;
      if (file.time < filter_.since && file.time > absl::InfinitePast()) {
        continue;
      }
      lines.push_back(
          {file.time,
           Printable(time ? line : absl::StrCat(process, ": ", line))});
    }
  }
  std::stable_sort(
      lines.begin(), lines.end(),
      [](const TimedLine& a, const TimedLine& b) { return a.time < b.time; });
  std::vector<std::string> texts;
  texts.reserve(lines.size());
  for (TimedLine& line : lines) texts.push_back(std::move(line.text));
  return texts;
}

}  // namespace tributary
