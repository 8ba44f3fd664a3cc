// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tributary {

inline constexpr char kNobodyListens[] = "nobody listens there";

// Returns why nobody answers at HOST:PORT, as a new TCP connection shows:
// kNobodyListens, "cannot look up HOST", "that host does not answer".
// Empty: something listens there. Takes up to `timeout`, plus the time that the
// look-up of the name takes.
std::string WhyNobodyAnswers(absl::string_view address, absl::Duration timeout);

}  // namespace tributary
