#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tributary {

// OK when `address` reads host:port with a port of at most 65535.
absl::Status CheckAddress(absl::string_view address);

}  // namespace tributary
