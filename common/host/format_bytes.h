// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace tributary {

// Returns a size in a form for people: "512 B", "1.5 KiB", "3.0 GiB".
std::string FormatBytes(uint64_t bytes);

}  // namespace tributary
