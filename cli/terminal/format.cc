// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/format.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tributary {

std::string FormatCount(double count) {
  if (!std::isfinite(count)) return "-";
  if (std::abs(count) < 999.5) return absl::StrFormat("%.0f", count);
  if (std::abs(count) < 999.95e3) return absl::StrFormat("%.1fk", count / 1e3);
  if (std::abs(count) < 999.95e6) return absl::StrFormat("%.1fM", count / 1e6);
  return absl::StrFormat("%.1fG", count / 1e9);
}

std::string FormatDuration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e9) return "-";
  const int64_t whole = std::llround(seconds);
  const int64_t hours = whole / 3600;
  const int64_t minutes = whole / 60 % 60;
  if (hours > 0) {
    return absl::StrFormat("%d:%02d:%02d", hours, minutes, whole % 60);
  }
  return absl::StrFormat("%d:%02d", minutes, whole % 60);
}

std::string FormatElapsed(double seconds) {
  return seconds >= 0 && seconds < 59.95 ? absl::StrFormat("%.1f s", seconds)
                                         : FormatDuration(seconds);
}

std::string FormatMetric(double value) {
  if (std::isnan(value)) return "nan";  // whatever its sign
  const double size = std::abs(value);
  return size >= 1e-3 && size < 10 ? absl::StrFormat("%.4f", value)
                                   : absl::StrFormat("%.4g", value);
}

}  // namespace tributary
