// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// Shows a person the members, their progress and who waits for whom.
std::string StatusText(const v1::JobStatusResponse& status);

// Control sequences that draw `text` over the previous text of a terminal:
// start at the corner, clear each line to its end, then clear everything below.
std::string RedrawnInPlace(const std::string& text);

}  // namespace tributary
