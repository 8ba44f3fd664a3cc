// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tributary {

// Why a call to HOST:PORT found nobody, as far as a new TCP connection shows:
// "nobody listens there", "cannot look up HOST", "that host does not answer".
// Empty: something listens there. Takes up to `timeout`, and the time that the
// look-up of the name takes.
std::string WhyNobodyAnswers(absl::string_view address, absl::Duration timeout);

}  // namespace tributary
