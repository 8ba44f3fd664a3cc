// SPDX-License-Identifier: Apache-2.0
#include "common/checkpoint/files/folder_name.h"

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"

namespace tributary {
namespace {

constexpr char kPrefix[] = "step-";

}  // namespace

std::string CheckpointFolderName(int64_t step) {
  return absl::StrFormat("%s%012d", kPrefix, step);
}

std::optional<int64_t> StepOfFolder(const std::string& path) {
  std::filesystem::path folder = std::filesystem::path(path).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();  // a trailing "/"
  const std::string name = folder.filename().string();
  int64_t step = 0;
  if (!absl::StartsWith(name, kPrefix) ||
      !absl::SimpleAtoi(name.substr(sizeof(kPrefix) - 1), &step) || step < 0 ||
      CheckpointFolderName(step) != name) {
    return std::nullopt;
  }
  return step;
}

}  // namespace tributary
