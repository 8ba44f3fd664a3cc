// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/unique_fd.h"

namespace tributary {

// Open and extend files that grow during a run and can be read at any time.
// Errors name the path and the system's reason.
absl::StatusOr<UniqueFd> OpenForAppending(const std::string& path);
absl::Status AppendTo(int fd, const std::string& path, absl::string_view bytes);

}  // namespace tributary
