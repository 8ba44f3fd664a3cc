// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/tensor.h"

namespace tributary {

// Parse amounts with units from a command line. InvalidArgument says what is
// valid.

// Bytes per second: "1Gbit", "100mbit", "12.5MB", each optionally with "/s".
absl::StatusOr<double> ParseRate(absl::string_view text);
// Seconds: "0.2ms", "50us", "1s".
absl::StatusOr<double> ParseSeconds(absl::string_view text);
// Bytes: "256kB", "4MiB", "1000".
absl::StatusOr<double> ParseBytes(absl::string_view text);
// Extents: "28x28", "3x32x32", "64".
absl::StatusOr<Shape> ParseShape(absl::string_view text);

// "1.23 s", "45.6 ms", "789 us"; three digits.
std::string SecondsText(double seconds);

}  // namespace tributary
