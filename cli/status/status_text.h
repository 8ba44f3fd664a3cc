// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// Shows a person the members, their progress and who waits for whom.
std::string StatusText(const v1::JobStatusResponse& status);

// The same for a program: one JSON object and a newline, on one line or
// indented. Keys are the message's field names, enums are words, and a number
// that is not finite (a diverged loss) is null.
std::string StatusJson(const v1::JobStatusResponse& status, bool one_line);

// Control sequences that draw `text` over the previous text of a terminal:
// start at the corner, clear each line to its end, then clear everything below.
std::string RedrawnInPlace(const std::string& text);

}  // namespace tributary
