#include "cli/find_program.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

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

}  // namespace tributary
