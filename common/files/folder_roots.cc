// SPDX-License-Identifier: Apache-2.0
#include "common/files/folder_roots.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tributary {
namespace {

namespace fs = std::filesystem;

// Returns the absolute path with its links followed; empty if it cannot be
// followed, for example because its links form a ring.
fs::path Followed(const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  if (error) return {};
  fs::path followed = fs::weakly_canonical(absolute, error);
  return error ? fs::path() : followed;
}

bool IsBelow(const fs::path& path, const fs::path& root) {
  if (path.empty() || root.empty()) return false;
  // A root that is written with a slash at its end has an empty last part.
  const fs::path whole = root.has_filename() ? root : root.parent_path();
  const auto [end, at] =
      std::mismatch(whole.begin(), whole.end(), path.begin(), path.end());
  return end == whole.end();
}

}  // namespace

absl::Status CheckBelow(const std::string& path,
                        const std::vector<std::string>& roots,
                        absl::string_view option) {
  if (roots.empty()) return absl::OkStatus();
  const fs::path followed = Followed(path);
  for (const std::string& root : roots) {
    if (IsBelow(followed, Followed(root))) return absl::OkStatus();
  }
  return absl::PermissionDeniedError(absl::StrCat(
      "the job names ", absl::Utf8SafeCEscape(path), ", and this process has ",
      option, " ", absl::StrJoin(roots, " and ")));
}

}  // namespace tributary
