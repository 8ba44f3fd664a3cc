// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// The status of a job for a program: one JSON object and a newline, on one line
// or indented. Keys are the message's field names, enums are words, and a
// number that is not finite (a diverged loss) is null. Bytes that are not UTF-8
// become U+FFFD.
std::string StatusJson(const v1::JobStatusResponse& status, bool one_line);

}  // namespace tributary
