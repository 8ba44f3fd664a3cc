#pragma once

#include <string>

#include "tributary/v1/coordinator_service.pb.h"

namespace tributary {

// Who is there, how far they are and what waits for whom, for a person.
std::string StatusText(const v1::JobStatusResponse& status);

}  // namespace tributary
