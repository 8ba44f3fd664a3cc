#pragma once

#include <string>

#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// Who is there, how far they are and what waits for whom, for a person.
std::string StatusText(const v1::JobStatusResponse& status);

// The same for a program: one JSON object with its line end, on one line or
// indented. Keys are the message's field names, enums are words, a number that
// is none (a diverged loss) is null.
std::string StatusJson(const v1::JobStatusResponse& status, bool one_line);

// `text` over what was drawn before, on a terminal: from the corner, each line
// cleared to its end, then all below.
std::string RedrawnInPlace(const std::string& text);

}  // namespace tributary
