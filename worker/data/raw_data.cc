// SPDX-License-Identifier: Apache-2.0
#include "worker/data/raw_data.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tributary {

absl::Status Targets::Append(double value) {
  constexpr double kMaxClass = std::numeric_limits<int32_t>::max();
  switch (kind) {
    case TargetKind::kClass:
      if (!(value >= 0 && value <= kMaxClass) || value != std::floor(value)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "wanted a class (an integer from 0) as label, got ", value));
      }
      labels.push_back(static_cast<int64_t>(value));
      return absl::OkStatus();
    case TargetKind::kBinary:
      if (value != 0 && value != 1) {
        return absl::InvalidArgumentError(
            absl::StrCat("wanted 0 or 1 as label, got ", value));
      }
      break;
    case TargetKind::kReal:
      if (!std::isfinite(static_cast<float>(value))) {
        return absl::InvalidArgumentError(
            absl::StrCat("wanted a finite float32 as label, got ", value));
      }
      break;
  }
  values.push_back(static_cast<float>(value));
  return absl::OkStatus();
}

absl::StatusOr<RowRange> ResolveRange(const RowRange& range, int64_t available,
                                      const std::string& name) {
  if (range.first < 0 || range.count < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": wanted first_row and rows from 0, got ",
                     range.first, " and ", range.count));
  }
  if (range.first >= available || range.count > available - range.first) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": wanted ",
        range.count > 0 ? absl::StrCat(range.count, " rows") : "the rows",
        " from row ", range.first, " on, but there are ", available));
  }
  return RowRange{range.first,
                  range.count > 0 ? range.count : available - range.first};
}

std::string ShapeText(const Shape& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

}  // namespace tributary
