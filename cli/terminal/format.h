// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tributary {

// Formats numbers for people.

// "950", "45.2k", "1.3M".
std::string FormatCount(double count);
// "0:07", "12:34", "1:02:03"; "-" when unknown (negative or not finite).
std::string FormatDuration(double seconds);
// Like FormatDuration, with tenths of seconds below a minute: "2.3 s", "12:34".
std::string FormatElapsed(double seconds);
// "0.7900", "12.35", "1.234e-05": four decimals from 0.001 up to 10, otherwise
// at most four significant digits.
std::string FormatMetric(double value);

}  // namespace tributary
