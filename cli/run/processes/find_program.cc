// SPDX-License-Identifier: Apache-2.0
#include "cli/run/processes/find_program.h"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tributary {

absl::StatusOr<std::string> FindProgram(const std::string& name) {
  std::error_code error;
  const std::filesystem::path self =
      std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string path = (self.parent_path() / name).string();
  if (error || access(path.c_str(), X_OK) != 0) {
    return absl::NotFoundError(absl::StrCat(
        path, " is not there or not a program; it belongs beside tributary"));
  }
  return path;
}

absl::StatusOr<std::string> FindInPath(const std::string& name) {
  std::vector<std::string> candidates = {name};
  if (!absl::StrContains(name, '/')) {
    const char* const folders = getenv("PATH");
    candidates.clear();
    for (absl::string_view folder :
         absl::StrSplit(folders == nullptr ? "/usr/bin:/bin" : folders, ':')) {
      candidates.push_back(absl::StrCat(folder, "/", name));
    }
  }
  std::error_code error;
  for (const std::string& path : candidates) {
    if (std::filesystem::is_regular_file(path, error) &&
        access(path.c_str(), X_OK) == 0) {
      return path;
    }
  }
  return absl::NotFoundError(
      absl::StrCat("there is no program ", name, " on this machine"));
}

}  // namespace tributary
