// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tributary {

// The name of a checkpoint's folder: "step-000000000020".
std::string CheckpointFolderName(int64_t step);

// The step in the last part of a path; nullopt: the folder has another name.
std::optional<int64_t> StepOfFolder(const std::string& path);

}  // namespace tributary
