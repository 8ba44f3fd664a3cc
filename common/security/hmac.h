// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tributary {

// HMAC-SHA256 (RFC 2104, FIPS 180-4) of `text`: 32 bytes. Each purpose begins
// its texts with its own words, so that no value is valid for another purpose.
std::string HmacSha256(absl::string_view key, absl::string_view text);

}  // namespace tributary
