// SPDX-License-Identifier: Apache-2.0
#include "cli/jobs/run_outcome.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint_directory.h"
#include "common/host/small_file.h"
#include "common/status/shell_text.h"
#include "common/status/status_macros.h"

namespace tributary {
namespace {

bool HasCheckpoint(const std::string& run) {
  const auto found = ListCheckpoints(run + "/checkpoints");
  return found.ok() && absl::c_any_of(*found, [](const CheckpointInfo& info) {
           return info.complete();
         });
}

// Names `run` in a command that continues from the run's own directory,
// `recorded`; empty: its checkpoints were removed. A command that continues
// from another folder stays.
std::string ContinuedAt(const std::string& run, const std::string& recorded,
                        std::string command) {
  const std::string before = ShellText({"--resume", recorded});
  const size_t at = command.find(before);
  if (recorded.empty() || at == std::string::npos) return command;
  const size_t end = at + before.size();
  if (end < command.size() && command[end] != ' ') return command;
  if (!HasCheckpoint(run)) return "";
  return command.replace(at, before.size(),
                         ShellText({"--resume", AbsolutePath(run)}));
}

}  // namespace

std::string AbsolutePath(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

std::string WithThousands(int64_t number) {
  const std::string digits = absl::StrCat(number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    const bool between = i > 0 && digits[i - 1] != '-';
    if (between && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string SkippedText(int64_t skipped, int64_t steps) {
  return absl::StrCat(WithThousands(skipped), " of ", WithThousands(steps),
                      steps == 1 ? " step" : " steps",
                      " changed nothing, because a gradient was not finite");
}

std::string RunOutcome::Text() const {
  std::string text = status == "interrupted" ? "stopped" : status;
  absl::StrAppend(&text, " after step ", WithThousands(steps));
  if (total_steps > 0) {
    absl::StrAppend(&text, " of ", WithThousands(total_steps));
  }
  if (skipped_steps > 0) {
    absl::StrAppend(&text, " (", SkippedText(skipped_steps, steps), ")");
  }
  if (!message.empty()) absl::StrAppend(&text, ": ", message);
  return text;
}

absl::StatusOr<RunOutcome> ReadRunOutcome(const std::string& run_directory) {
  const std::string path = run_directory + "/summary.json";
  TRIBUTARY_RETURN_IF_ERROR(CheckReadable(path));
  if (!std::ifstream(path)) {
    return absl::NotFoundError(absl::StrCat(path, " is not there"));
  }
  const nlohmann::json json = nlohmann::json::parse(
      ReadText(path), /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return absl::DataLossError(absl::StrCat(path, " is damaged"));
  }
  const auto text = [&json](const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_string() ? found->get<std::string>()
                                                     : std::string();
  };
  const auto number_of = [](const nlohmann::json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_number_integer()
               ? found->get<int64_t>()
               : int64_t{0};
  };
  const auto number = [&](const char* key) { return number_of(json, key); };
  const auto best = json.find("best");
  return RunOutcome{
      .name = text("name"),
      .status = text("status"),
      .message = text("message"),
      .cause = text("cause"),
      .steps = number("steps"),
      .total_steps = number("total_steps"),
      .skipped_steps = number("skipped_steps"),
      .checkpoint_step = number("checkpoint_step"),
      .best_step = best != json.end() && best->is_object()
                       ? number_of(*best, "step")
                       : 0,
      .resume_command = ContinuedAt(run_directory, text("run_directory"),
                                    text("resume_command"))};
}

}  // namespace tributary
