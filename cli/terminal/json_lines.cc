// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/json_lines.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/host/small_file.h"

namespace tributary {

absl::Status ForEachJsonLine(
    const std::string& path,
    const std::function<void(const nlohmann::json& json)>& use) {
  const std::string text = ReadText(path);
  int line = 0;
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    ++line;
    const nlohmann::json json =
        nlohmann::json::parse(text.begin() + static_cast<long>(begin),
                              text.begin() + static_cast<long>(end), nullptr,
                              /*allow_exceptions=*/false);
    if (!json.is_object()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ":", line, ": wanted a JSON object"));
    }
    use(json);
  }
  return absl::OkStatus();
}

}  // namespace tributary
