// SPDX-License-Identifier: Apache-2.0
#include "worker/train/data/raw_data.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tributary {

void Rounding::Add(double number, float rounded) {
  if (std::isnan(number)) return;  // missing
  ++count;
  most = std::max(most, std::abs(number - rounded));
  least = std::min(least, number);
  greatest = std::max(greatest, number);
}

void Rounding::Add(const Rounding& other) {
  count += other.count;
  most = std::max(most, other.most);
  least = std::min(least, other.least);
  greatest = std::max(greatest, other.greatest);
  in_float64 |= other.in_float64;
}

bool Rounding::is_tiny() const {
  if (count == 0) return false;
  const double range = greatest - least;
  return (range > 0 ? range : std::abs(greatest)) < kLeast;
}

void AddRounding(const std::vector<Rounding>& part,
                 std::vector<Rounding>* all) {
  if (all->size() < part.size()) all->resize(part.size());
  for (size_t i = 0; i < part.size(); ++i) (*all)[i].Add(part[i]);
}

void RawData::AppendNumber(double number, bool exact) {
  if (!offsets.empty()) number -= offset(numbers.size() % numeric_width);
  const auto rounded = static_cast<float>(number);
  if (rounded != number || !exact) {
    rounding.resize(numeric_width);
    Rounding& of_column = rounding[numbers.size() % numeric_width];
    if (rounded != number) of_column.Add(number, rounded);
    of_column.in_float64 |= !exact;
  }
  numbers.push_back(rounded);
}

void Targets::Greatest(int64_t label, const std::string& place) {
  if (label <= greatest_class) return;
  greatest_class = label;
  greatest_place = place;
}

void Targets::FindGreatest(
    const std::function<std::string(int64_t index)>& place) {
  const auto found = std::max_element(labels.begin(), labels.end());
  if (found == labels.end() || *found <= greatest_class) return;
  Greatest(*found, place(found - labels.begin()));
}

absl::Status Targets::Append(double value, bool exact) {
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
        return absl::InvalidArgumentError(absl::StrCat(
            "wanted 0 or 1 as label, got ", value,
            "; if there are two classes, write them as 0 and 1, as in (y ",
            value < 0                    ? "> 0"
            : value == std::floor(value) ? absl::StrCat("== ", value)
                                         : "> 0.5",
            ").astype(\"u1\")"));
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
  if (values.back() != value) rounding.Add(value, values.back());
  rounding.in_float64 |= !exact;
  return absl::OkStatus();
}

void AppendRows(const RawData& part, int64_t rows, RawData* all) {
  const bool first = all->rows == 0;
  const auto append = [&](const auto& more, auto* values) {
    if (first) values->reserve(more.size() / part.rows * rows);
    values->insert(values->end(), more.begin(), more.end());
  };
  append(part.bytes, &all->bytes);
  append(part.numbers, &all->numbers);
  append(part.codes, &all->codes);
  append(part.targets.labels, &all->targets.labels);
  append(part.targets.values, &all->targets.values);
  AddRounding(part.rounding, &all->rounding);
  all->targets.rounding.Add(part.targets.rounding);
  all->targets.Greatest(part.targets.greatest_class,
                        part.targets.greatest_place);
  all->rows += part.rows;
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
