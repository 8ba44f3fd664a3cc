// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/status.h"

namespace tributary {

// Calls use(object) for every line of the file. A missing file has no lines,
// and a last line without its end is ignored. InvalidArgument: a line is not a
// JSON object; the message names it.
absl::Status ForEachJsonLine(
    const std::string& path,
    const std::function<void(const nlohmann::json& json)>& use);

}  // namespace tributary
